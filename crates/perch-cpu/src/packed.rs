//! Group-quantised weights in the layout that the kernels read.
//!
//! Eight rows lie interleaved, so that one 32-byte vector holds four consecutive columns of each: integer products
//! then add up in one lane a row, and no lane is ever summed across. The codes of a block (8 rows by 32 columns)
//! are eight such vectors; codes of up to four bits lie two to a byte, vector `i` in the low and vector `i + 4` in
//! the high half. Behind each group's blocks stand its eight scales and eight offsets, in the file's own type, so
//! that nothing is rounded and a row group is one stream of memory.
//!
//! Activations are quantised to eight bits by blocks of 32, each with a scale and the sum of its codes. With
//! `w = s·q + b` and `x ≈ t·p`, a row's product is `Σ_groups s · Σ_blocks t·(q·p) + b · Σ_blocks t·Σp`, which is
//! exact but for the rounding of `x`. For narrow matrices, what rounding took away is rounded and multiplied as well.

use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};
use perch_model::weights::{DenseView, Float};

use crate::tensor::Tensor;

use crate::pool::Pool;

/// Rows that lie interleaved.
pub(crate) const ROWS: usize = 8;
/// Columns of a block, and elements that share an activation scale.
pub(crate) const BLOCK: usize = 32;

/// A quantised matrix.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) group_size: usize,
    pub(crate) codes: CodeKind,
    pub(crate) scales: Float,
    /// Row groups one behind another, each of `row_group_bytes`.
    pub(crate) data: Vec<u8>,
}

/// How a code lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeKind {
    /// Half a byte, 0 to 15.
    Nibble,
    /// A byte, 0 to 63.
    Byte,
    /// A byte, 0 to 255, less 128.
    Signed,
}

impl CodeKind {
    fn of_bits(bits: u8) -> Self {
        match bits {
            0..=4 => Self::Nibble,
            5..=6 => Self::Byte,
            _ => Self::Signed,
        }
    }

    /// Bytes of a block of codes.
    pub(crate) fn block_bytes(self) -> usize {
        match self {
            Self::Nibble => ROWS * BLOCK / 2,
            Self::Byte | Self::Signed => ROWS * BLOCK,
        }
    }
}

impl Packed {
    /// Bytes of one group of eight rows: its blocks, scales and offsets.
    pub(crate) fn group_bytes(&self) -> usize {
        self.group_size / BLOCK * self.codes.block_bytes() + 2 * ROWS * self.scales.size()
    }

    /// Bytes of eight rows.
    pub(crate) fn row_group_bytes(&self) -> usize {
        self.columns / self.group_size * self.group_bytes()
    }

    /// Repacks a matrix of MLX codes on all threads. Rows that fill up the last eight are zero.
    pub(crate) fn new(
        pool: &Pool,
        (rows, columns): (usize, usize),
        bits: u8,
        group_size: usize,
        codes: &[u8],
        scales: DenseView<'_>,
        offsets: DenseView<'_>,
    ) -> Self {
        let mut packed = Self {
            rows,
            columns,
            group_size,
            codes: CodeKind::of_bits(bits),
            scales: if scales.float == offsets.float { scales.float } else { Float::F32 },
            data: Vec::new(),
        };
        let bytes = packed.row_group_bytes();
        let mut data = vec![0; rows.div_ceil(ROWS) * bytes];
        let row_bytes = columns * usize::from(bits) / 8;
        let row_groups: Vec<_> = data.chunks_exact_mut(bytes).map(Mutex::new).collect();
        pool.ranges(row_groups.len(), 16, &|range| {
            let mut row_codes = vec![0u8; columns];
            for row_group in range {
                let mut out = row_groups[row_group].lock().unwrap_or_else(PoisonError::into_inner);
                for row in row_group * ROWS..rows.min((row_group + 1) * ROWS) {
                    unpack(&codes[row * row_bytes..(row + 1) * row_bytes], bits, &mut row_codes);
                    packed.place_row(row, &row_codes, scales, offsets, &mut out);
                }
            }
        });
        drop(row_groups);
        packed.data = data;
        packed
    }

    /// Writes one row's codes, scales and offsets into its row group.
    fn place_row(
        &self,
        row: usize,
        codes: &[u8],
        scales: DenseView<'_>,
        offsets: DenseView<'_>,
        out: &mut [u8],
    ) {
        let (lane, size) = (row % ROWS, self.scales.size());
        let block_bytes = self.codes.block_bytes();
        let groups = codes.chunks_exact(self.group_size).zip(out.chunks_exact_mut(self.group_bytes()));
        for (group, (codes, out)) in groups.enumerate() {
            let (blocks, floats) = out.split_at_mut(self.group_size / BLOCK * block_bytes);
            for (codes, block) in codes.as_chunks().0.iter().zip(blocks.chunks_exact_mut(block_bytes)) {
                place(self.codes, codes, lane, block);
            }
            let index = row * (self.columns / self.group_size) + group;
            let (scale, offset) = floats.split_at_mut(ROWS * size);
            copy_float(scales, index, &mut scale[lane * size..(lane + 1) * size]);
            copy_float(offsets, index, &mut offset[lane * size..(lane + 1) * size]);
        }
    }

    /// One row as floats.
    pub(crate) fn row(&self, row: usize, out: &mut [f32]) {
        let lane = row % ROWS;
        let start = row / ROWS * self.row_group_bytes();
        let block_bytes = self.codes.block_bytes();
        for (group, out) in out.chunks_exact_mut(self.group_size).enumerate() {
            let at = start + group * self.group_bytes();
            let (scale, offset) = self.scale_and_offset(&self.data[at..], lane);
            for (block, out) in out.chunks_exact_mut(BLOCK).enumerate() {
                let block_at = at + block * block_bytes;
                let codes = &self.data[block_at..block_at + block_bytes];
                for (column, out) in out.iter_mut().enumerate() {
                    *out = scale * f32::from(code(self.codes, codes, lane, column)) + offset;
                }
            }
        }
    }

    /// Scale and offset of one row in the group that begins at `bytes`, for the codes as they lie in memory.
    pub(crate) fn scale_and_offset(&self, bytes: &[u8], lane: usize) -> (f32, f32) {
        let scales = self.group_size / BLOCK * self.codes.block_bytes();
        let float = |index: usize| {
            let at = scales + index * self.scales.size();
            float_at(self.scales, &bytes[at..at + self.scales.size()])
        };
        let (scale, offset) = (float(lane), float(ROWS + lane));
        match self.codes {
            CodeKind::Signed => (scale, offset + 128.0 * scale),
            CodeKind::Nibble | CodeKind::Byte => (scale, offset),
        }
    }
}

/// The code of one row and column of a block.
pub(crate) fn code(kind: CodeKind, block: &[u8], lane: usize, column: usize) -> i16 {
    let (vector, byte) = (column / 4, lane * 4 + column % 4);
    match kind {
        CodeKind::Nibble => {
            let byte = block[vector % 4 * 32 + byte];
            i16::from(if vector < 4 { byte & 15 } else { byte >> 4 })
        }
        CodeKind::Byte => i16::from(block[vector * 32 + byte]),
        CodeKind::Signed => i16::from(block[vector * 32 + byte] as i8),
    }
}

/// Writes 32 codes of one row into a block.
fn place(kind: CodeKind, codes: &[u8; BLOCK], lane: usize, block: &mut [u8]) {
    let quads = codes.as_chunks::<4>().0;
    for (vector, out) in block.chunks_exact_mut(32).enumerate() {
        let quad: [u8; 4] = match kind {
            CodeKind::Nibble => std::array::from_fn(|i| quads[vector][i] | quads[vector + 4][i] << 4),
            CodeKind::Byte => quads[vector],
            CodeKind::Signed => quads[vector].map(|code| code.wrapping_sub(128)),
        };
        out[lane * 4..lane * 4 + 4].copy_from_slice(&quad);
    }
}

/// Unpacks a little-endian stream of codes of `bits` bits.
fn unpack(bytes: &[u8], bits: u8, out: &mut [u8]) {
    // Eight codes fill `bits` bytes. The number of bits is a constant in each branch, which makes it a few shifts.
    match bits {
        2 => unpack_bits::<2>(bytes, out),
        3 => unpack_bits::<3>(bytes, out),
        4 => unpack_bits::<4>(bytes, out),
        5 => unpack_bits::<5>(bytes, out),
        6 => unpack_bits::<6>(bytes, out),
        _ => unpack_bits::<8>(bytes, out),
    }
}

#[inline(always)]
fn unpack_bits<const BITS: usize>(bytes: &[u8], out: &mut [u8]) {
    let mask = ((1u16 << BITS) - 1) as u8;
    for (bytes, out) in bytes.as_chunks::<BITS>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        let mut held = [0; 8];
        held[..BITS].copy_from_slice(bytes);
        let held = u64::from_le_bytes(held);
        *out = std::array::from_fn(|i| (held >> (i * BITS)) as u8 & mask);
    }
}

fn copy_float(view: DenseView<'_>, index: usize, out: &mut [u8]) {
    let size = view.float.size();
    let bytes = &view.bytes[index * size..(index + 1) * size];
    if out.len() == size {
        out.copy_from_slice(bytes);
    } else {
        out.copy_from_slice(&float_at(view.float, bytes).to_le_bytes());
    }
}

fn float_at(float: Float, bytes: &[u8]) -> f32 {
    match (float, bytes) {
        (Float::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
        (Float::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f32(),
        (Float::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f32(),
        _ => f32::NAN,
    }
}

/// Activations rounded to eight bits, row by row.
#[derive(Debug, Default)]
pub(crate) struct Rounded {
    /// `[rows, columns]`.
    pub(crate) codes: Vec<i8>,
    /// `[rows, columns / 32]`: what a code of one is worth.
    pub(crate) scales: Vec<f32>,
    /// `[rows, columns / group]`: sum of the rounded values of a group.
    pub(crate) sums: Vec<f32>,
}

/// Added to a small number, this leaves the nearest integer in the lowest bits of the sum: a float of this size has no
/// bits for fractions. The compiler makes vectors of it on every machine, unlike of the rounding functions.
const ROUNDING: f32 = 12_582_912.0;

impl Rounded {
    /// Rounds rows of `columns` elements whose sums are needed by groups of `group_size`.
    pub(crate) fn new(x: &[f32], group_size: usize) -> Self {
        let mut rounded = Self {
            codes: vec![0; x.len()],
            scales: Vec::with_capacity(x.len() / BLOCK),
            sums: Vec::with_capacity(x.len() / group_size),
        };
        let groups = x.chunks_exact(group_size).zip(rounded.codes.chunks_exact_mut(group_size));
        for (x, codes) in groups {
            let mut sum = 0.0;
            for (x, codes) in x.chunks_exact(BLOCK).zip(codes.chunks_exact_mut(BLOCK)) {
                let largest = x.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
                // Values that are not finite must stay visible: a maximum would drop them.
                let largest = if x.iter().sum::<f32>().is_finite() { largest } else { f32::NAN };
                let scale = largest / 127.0;
                let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
                let mut total = 0i32;
                for (x, code) in x.iter().zip(codes) {
                    *code = (x * inverse + ROUNDING).to_bits() as i8;
                    total += i32::from(*code);
                }
                rounded.scales.push(scale);
                sum += scale * total as f32;
            }
            rounded.sums.push(sum);
        }
        rounded
    }

    /// What rounding took away from `x`.
    pub(crate) fn rest_of(&self, x: &Tensor) -> Tensor {
        let codes = self.codes.chunks_exact(BLOCK).zip(&self.scales);
        let mut rest = x.clone();
        for (rest, (codes, scale)) in rest.data.chunks_exact_mut(BLOCK).zip(codes) {
            for (rest, code) in rest.iter_mut().zip(codes) {
                *rest -= scale * f32::from(*code);
            }
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_every_width_are_unpacked() {
        for bits in [2u8, 3, 4, 5, 6, 8] {
            let codes: Vec<u8> = (0..64u32).map(|i| ((i * 37 + 11) % (1 << bits)) as u8).collect();
            let mut stream = vec![0u8; 64 * usize::from(bits) / 8];
            for (index, &code) in codes.iter().enumerate() {
                for bit in 0..usize::from(bits) {
                    let at = index * usize::from(bits) + bit;
                    stream[at / 8] |= (code >> bit & 1) << (at % 8);
                }
            }
            let mut out = vec![0; 64];
            unpack(&stream, bits, &mut out);
            assert_eq!(out, codes, "{bits} bits");
        }
    }
}
