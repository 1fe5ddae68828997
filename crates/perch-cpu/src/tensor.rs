//! Activations, and the disjoint parts of them that threads write.

use std::ops::Range;

/// Activations `[rows, width]` in single precision, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) data: Vec<f32>,
}

impl Tensor {
    pub(crate) fn zeros(rows: usize, width: usize) -> Self {
        Self { rows, width, data: vec![0.0; rows * width] }
    }

    pub(crate) fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.width..(row + 1) * self.width]
    }
}

/// A slice that several threads write, each its own part.
pub(crate) struct Shared<'a> {
    start: *mut f32,
    len: usize,
    slice: std::marker::PhantomData<&'a mut [f32]>,
}

// SAFETY: The only access is `part`, whose caller promises that no two threads hold overlapping parts.
#[expect(unsafe_code, reason = "rows and columns of a result are written by several threads")]
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    pub(crate) fn new(slice: &'a mut [f32]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), slice: std::marker::PhantomData }
    }

    /// The elements in `range`.
    ///
    /// # Safety
    /// No other part that overlaps `range` may be alive.
    #[expect(unsafe_code, reason = "see the type")]
    #[expect(clippy::mut_from_ref, reason = "the caller promises that parts do not overlap")]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [f32] {
        assert!(range.start <= range.end && range.end <= self.len, "a part must lie within its slice");
        // SAFETY: The range lies within the slice, which is borrowed mutably for 'a; the caller excludes overlaps.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
