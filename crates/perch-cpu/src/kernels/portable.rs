//! Kernels in plain Rust, written so that the compiler can use whatever vectors the target has.

use half::{bf16, f16};
use perch_model::weights::Float;

use crate::packed::{BLOCK, Packed, ROWS, Rounded, code};

/// See [`super::packed_rows`].
pub(crate) fn packed_rows(
    packed: &Packed,
    weights: &[u8],
    x: &Rounded,
    first: usize,
    out: &mut [[f32; ROWS]],
) {
    let (columns, group_size) = (packed.columns, packed.group_size);
    let block_bytes = packed.codes.block_bytes();
    let group_bytes = packed.group_bytes();
    for (index, out) in out.iter_mut().enumerate() {
        let row = first + index;
        *out = [0.0; ROWS];
        for group in 0..columns / group_size {
            let mut sums = [0.0f32; ROWS];
            for block in 0..group_size / BLOCK {
                let column = group * group_size + block * BLOCK;
                let at = group * group_bytes + block * block_bytes;
                let codes = &weights[at..at + block_bytes];
                let x_codes = &x.codes[row * columns + column..row * columns + column + BLOCK];
                let scale = x.scales[(row * columns + column) / BLOCK];
                for (lane, sum) in sums.iter_mut().enumerate() {
                    let dot: i32 = x_codes
                        .iter()
                        .enumerate()
                        .map(|(column, &x)| i32::from(code(packed.codes, codes, lane, column)) * i32::from(x))
                        .sum();
                    *sum += scale * dot as f32;
                }
            }
            let x_sum = x.sums[row * (columns / group_size) + group];
            for (lane, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
                let (scale, offset) = packed.scale_and_offset(&weights[group * group_bytes..], lane);
                *out += scale * sum + offset * x_sum;
            }
        }
    }
}

/// See [`super::dense_row`].
pub(crate) fn dense_row(float: Float, weights: &[u8], x: &[&[f32]], out: &mut [f32]) {
    for (x, out) in x.iter().zip(out) {
        *out = match float {
            Float::F32 => products(weights, x, |b: [u8; 4]| f32::from_le_bytes(b)),
            Float::F16 => products(weights, x, |b: [u8; 2]| f16::from_le_bytes(b).to_f32()),
            Float::Bf16 => products(weights, x, |b: [u8; 2]| bf16::from_le_bytes(b).to_f32()),
        };
    }
}

#[inline(always)]
fn products<const SIZE: usize>(weights: &[u8], x: &[f32], widen: impl Fn([u8; SIZE]) -> f32) -> f32 {
    let (weights, _) = weights.as_chunks::<SIZE>();
    let mut sums = [0.0f32; 8];
    let (w8, x8) = (weights.chunks_exact(8), x.chunks_exact(8));
    let rest: f32 = w8.remainder().iter().zip(x8.remainder()).map(|(&w, &x)| widen(w) * x).sum();
    for (w, x) in w8.zip(x8) {
        for lane in 0..8 {
            sums[lane] += widen(w[lane]) * x[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// One query head of one position and the keys and values that it sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    /// The query, rotated.
    pub(crate) query: &'a [f32],
    /// Keys, one behind another.
    pub(crate) keys: &'a [f32],
    /// Values, one behind another.
    pub(crate) values: &'a [f32],
    /// Factor on `q · k`.
    pub(crate) scale: f32,
}

/// `softmax(scale · q·kᵀ) · v`; `scores` is room to work in.
#[inline(always)]
pub(crate) fn attend(head: &Head<'_>, scores: &mut Vec<f32>, out: &mut [f32]) {
    let size = head.query.len();
    scores.clear();
    scores.extend(head.keys.chunks_exact(size).map(|key| head.scale * dot(head.query, key)));
    let most = scores.iter().fold(f32::NEG_INFINITY, |most, &score| most.max(score));
    let mut total = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        total += *score;
    }
    out.fill(0.0);
    for (&weight, value) in scores.iter().zip(head.values.chunks_exact(size)) {
        for (out, value) in out.iter_mut().zip(value) {
            *out += weight * value;
        }
    }
    let inverse = 1.0 / total;
    for out in out {
        *out *= inverse;
    }
}

#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 16];
    let (a16, b16) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: f32 = a16.remainder().iter().zip(b16.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a16.zip(b16) {
        for lane in 0..16 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}
