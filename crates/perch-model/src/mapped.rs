//! A file mapped into memory for reading: the only `unsafe` of this crate.

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file, read by the operating system when they are touched.
#[derive(Debug)]
pub(crate) struct MappedFile {
    map: memmap2::Mmap,
}

impl MappedFile {
    /// Maps `path` read-only. The file's length is fixed here; what is appended later is not seen.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: The map is read-only and private to this value. Another program that shortens the file while it
        // is mapped would make reads beyond its new end fault; model files are written once and renamed into
        // place, deleting one keeps its bytes alive for as long as it is mapped, and Perch never writes to them.
        #[expect(unsafe_code, reason = "mapping a file has no safe interface")]
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(Self { map })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}
