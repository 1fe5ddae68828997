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
//! exact but for the rounding of `x`.

use half::{bf16, f16};
use perch_model::weights::{DenseView, Float};

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

    /// Repacks a matrix of MLX codes. Rows that fill up the last eight are zero.
    pub(crate) fn new(
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
        let row_groups = rows.div_ceil(ROWS);
        packed.data = vec![0; row_groups * packed.row_group_bytes()];
        let groups = columns / group_size;
        let row_bytes = columns * usize::from(bits) / 8;
        let (group_bytes, block_bytes) = (packed.group_bytes(), packed.codes.block_bytes());
        let mut row_codes = vec![0u8; columns];
        for row in 0..rows {
            unpack(&codes[row * row_bytes..(row + 1) * row_bytes], bits, &mut row_codes);
            let start = row / ROWS * packed.row_group_bytes();
            let lane = row % ROWS;
            for group in 0..groups {
                let at = start + group * group_bytes;
                for block in 0..group_size / BLOCK {
                    let from = group * group_size + block * BLOCK;
                    let block_at = at + block * block_bytes;
                    let out = &mut packed.data[block_at..block_at + block_bytes];
                    place(packed.codes, &row_codes[from..from + BLOCK], lane, out);
                }
                let scales_at = at + group_size / BLOCK * block_bytes;
                let size = packed.scales.size();
                let index = row * groups + group;
                for (view, at) in [(scales, scales_at), (offsets, scales_at + ROWS * size)] {
                    let out = &mut packed.data[at + lane * size..at + (lane + 1) * size];
                    copy_float(view, index, out);
                }
            }
        }
        packed
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
fn place(kind: CodeKind, codes: &[u8], lane: usize, block: &mut [u8]) {
    for (column, &code) in codes.iter().enumerate() {
        let (vector, byte) = (column / 4, lane * 4 + column % 4);
        match kind {
            CodeKind::Nibble => block[vector % 4 * 32 + byte] |= if vector < 4 { code } else { code << 4 },
            CodeKind::Byte => block[vector * 32 + byte] = code,
            CodeKind::Signed => block[vector * 32 + byte] = code.wrapping_sub(128),
        }
    }
}

/// Unpacks a little-endian stream of codes of `bits` bits.
fn unpack(bytes: &[u8], bits: u8, out: &mut [u8]) {
    let (mut held, mut count, mut bytes) = (0u32, 0u8, bytes.iter());
    let mask = (1u32 << bits) - 1;
    for out in out {
        while count < bits {
            held |= u32::from(bytes.next().copied().unwrap_or(0)) << count;
            count += 8;
        }
        *out = (held & mask) as u8;
        held >>= bits;
        count -= bits;
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
                    *code = (x * inverse).round_ties_even() as i8;
                    total += i32::from(*code);
                }
                rounded.scales.push(scale);
                sum += scale * total as f32;
            }
            rounded.sums.push(sum);
        }
        rounded
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
