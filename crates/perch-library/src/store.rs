//! `library.json`, written whole and at once.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Added, LibraryError};

const FILE: &str = "library.json";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    models: Vec<Added>,
}

/// What the file holds. A file that makes no sense is renamed, and the second value says so.
pub(crate) fn read(data_folder: &Path) -> Result<(Vec<Added>, Option<LibraryError>), LibraryError> {
    let path = data_folder.join(FILE);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Vec::new(), None)),
        Err(source) => return Err(LibraryError::Io { path, source }),
    };
    let reason = match serde_json::from_slice::<Stored>(&text) {
        Ok(stored) if stored.version == VERSION => return Ok((stored.models, None)),
        Ok(stored) => format!("version {}, expected {VERSION}", stored.version),
        Err(error) => error.to_string(),
    };
    let kept = free_name(data_folder)?;
    std::fs::rename(&path, &kept).map_err(|source| LibraryError::Io { path, source })?;
    Ok((Vec::new(), Some(LibraryError::SetAside { reason, kept })))
}

/// Replaces the file: after a crash there is the old one or the new one.
pub(crate) fn write(data_folder: &Path, models: &[Added]) -> Result<(), LibraryError> {
    let path = data_folder.join(FILE);
    let stored = Stored { version: VERSION, models: models.to_vec() };
    let save = || -> std::io::Result<()> {
        let mut text = serde_json::to_vec_pretty(&stored)?;
        text.push(b'\n');
        let mut file = tempfile::NamedTempFile::new_in(data_folder)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&path)?;
        Ok(())
    };
    save().map_err(|source| LibraryError::Io { path: path.clone(), source })
}

/// A name beside the file that nothing has yet, so that an earlier damaged file is not lost either.
fn free_name(data_folder: &Path) -> Result<PathBuf, LibraryError> {
    let mut number = 1;
    loop {
        let kept = data_folder.join(format!("{FILE}.damaged-{number}"));
        match kept.try_exists() {
            Ok(false) => return Ok(kept),
            Ok(true) => number += 1,
            Err(source) => return Err(LibraryError::Io { path: kept, source }),
        }
    }
}
