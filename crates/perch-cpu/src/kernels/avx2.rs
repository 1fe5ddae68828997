//! Kernels for x86-64 with AVX2, FMA and F16C.
#![expect(unsafe_code, reason = "vector loads take pointers")]

use std::arch::x86_64::*;

use perch_model::weights::Float;

use super::{TILE, portable};
use crate::packed::{BLOCK, CodeKind, Packed, ROWS, Rounded};

/// How far ahead of a matrix-vector product weights are fetched, in bytes.
const PREFETCH: usize = 2048;

/// See [`super::packed_rows`].
///
/// # Safety
/// The machine has AVX2, FMA and F16C. `weights` is one row group of `packed`. `x` holds at least
/// `first + out.len()` rows of `packed.columns` elements, rounded with `packed.group_size`.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn packed_rows(
    packed: &Packed,
    weights: &[u8],
    x: &Rounded,
    first: usize,
    out: &mut [[f32; ROWS]],
) {
    // SAFETY: The caller's promise is passed on; the tile's length matches the constant.
    unsafe {
        match out.len() {
            1 => packed_tile::<1>(packed, weights, x, first, out),
            2 => packed_tile::<2>(packed, weights, x, first, out),
            3 => packed_tile::<3>(packed, weights, x, first, out),
            TILE => packed_tile::<TILE>(packed, weights, x, first, out),
            _ => {}
        }
    }
}

/// # Safety
/// As [`packed_rows`], with `out.len() == M`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn packed_tile<const M: usize>(
    packed: &Packed,
    weights: &[u8],
    x: &Rounded,
    first: usize,
    out: &mut [[f32; ROWS]],
) {
    let columns = packed.columns;
    let groups = columns / packed.group_size;
    let blocks = packed.group_size / BLOCK;
    let block_bytes = packed.codes.block_bytes();
    let scale_bytes = ROWS * packed.scales.size();
    let mut at = weights.as_ptr();
    let codes: [*const i8; M] = std::array::from_fn(|i| x.codes[(first + i) * columns..].as_ptr());
    let scales: [&[f32]; M] = std::array::from_fn(|i| &x.scales[(first + i) * (columns / BLOCK)..]);
    let sums: [&[f32]; M] = std::array::from_fn(|i| &x.sums[(first + i) * groups..]);
    let mut totals = [_mm256_setzero_ps(); M];
    #[expect(clippy::needless_range_loop, reason = "the index goes into the sums of every row of the tile")]
    for group in 0..groups {
        let mut dots = [_mm256_setzero_ps(); M];
        for block in 0..blocks {
            let index = group * blocks + block;
            if M == 1 {
                // One activation row is over before the weights arrive, and the hardware's own prefetching stops
                // at the end of each page. An address past the end is never read, only hinted at.
                for line in (0..block_bytes).step_by(64) {
                    _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(PREFETCH + line).cast());
                }
            }
            // SAFETY: `at` walks through the row group block by block, and each row of `x` has `columns` codes.
            let products = unsafe {
                let x = std::array::from_fn(|i| codes[i].add(index * BLOCK));
                let products = match packed.codes {
                    CodeKind::Nibble => nibble_block::<M>(at, x),
                    CodeKind::Byte => byte_block::<M, false>(at, x),
                    CodeKind::Signed => byte_block::<M, true>(at, x),
                };
                at = at.add(block_bytes);
                products
            };
            for i in 0..M {
                dots[i] = _mm256_fmadd_ps(
                    _mm256_cvtepi32_ps(products[i]),
                    _mm256_set1_ps(scales[i][index]),
                    dots[i],
                );
            }
        }
        // SAFETY: Eight scales and eight offsets stand behind a group's blocks.
        let (scale, mut offset) = unsafe {
            let scale = load_floats(packed.scales, at);
            let offset = load_floats(packed.scales, at.add(scale_bytes));
            at = at.add(2 * scale_bytes);
            (scale, offset)
        };
        if packed.codes == CodeKind::Signed {
            offset = _mm256_fmadd_ps(scale, _mm256_set1_ps(128.0), offset);
        }
        for i in 0..M {
            totals[i] = _mm256_fmadd_ps(scale, dots[i], totals[i]);
            totals[i] = _mm256_fmadd_ps(offset, _mm256_set1_ps(sums[i][group]), totals[i]);
        }
    }
    for (out, total) in out.iter_mut().zip(totals) {
        // SAFETY: `out` has eight elements.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), total) };
    }
}

/// Integer products of a block of four-bit codes, a lane a weight row.
///
/// # Safety
/// `weights` points to 128 bytes, each of `x` to 32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn nibble_block<const M: usize>(weights: *const u8, x: [*const i8; M]) -> [__m256i; M] {
    let mask = _mm256_set1_epi8(15);
    let ones = _mm256_set1_epi16(1);
    // Eight products of pairs are at most 8 · 2 · 15 · 127 = 30480 and fit into 16 bits.
    let mut pairs = [_mm256_setzero_si256(); M];
    for vector in 0..4 {
        // SAFETY: The caller gives 4 · 32 bytes of weights and 32 codes a row.
        unsafe {
            let both = _mm256_loadu_si256(weights.add(vector * 32).cast());
            let low = _mm256_and_si256(both, mask);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), mask);
            for i in 0..M {
                let x_low = _mm256_set1_epi32(x[i].add(vector * 4).cast::<i32>().read_unaligned());
                let x_high = _mm256_set1_epi32(x[i].add(16 + vector * 4).cast::<i32>().read_unaligned());
                let sum =
                    _mm256_add_epi16(_mm256_maddubs_epi16(low, x_low), _mm256_maddubs_epi16(high, x_high));
                pairs[i] = _mm256_add_epi16(pairs[i], sum);
            }
        }
    }
    pairs.map(|pairs| _mm256_madd_epi16(pairs, ones))
}

/// Integer products of a block of byte codes, a lane a weight row.
///
/// # Safety
/// `weights` points to 256 bytes, each of `x` to 32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn byte_block<const M: usize, const SIGNED: bool>(
    weights: *const u8,
    x: [*const i8; M],
) -> [__m256i; M] {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_si256(); M];
    for vector in 0..8 {
        // SAFETY: The caller gives 8 · 32 bytes of weights and 32 codes a row.
        unsafe {
            let codes = _mm256_loadu_si256(weights.add(vector * 32).cast());
            let magnitudes = if SIGNED { _mm256_abs_epi8(codes) } else { codes };
            for i in 0..M {
                let mut x = _mm256_set1_epi32(x[i].add(vector * 4).cast::<i32>().read_unaligned());
                if SIGNED {
                    x = _mm256_sign_epi8(x, codes);
                }
                // A pair is at most 2 · 128 · 127 = 32512 and fits into 16 bits.
                let pairs = _mm256_maddubs_epi16(magnitudes, x);
                sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs, ones));
            }
        }
    }
    sums
}

/// Eight floats.
///
/// # Safety
/// `at` points to eight elements of that type.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn load_floats(float: Float, at: *const u8) -> __m256 {
    // SAFETY: The caller gives eight elements.
    unsafe {
        match float {
            Float::F32 => _mm256_loadu_ps(at.cast()),
            Float::F16 => _mm256_cvtph_ps(_mm_loadu_si128(at.cast())),
            Float::Bf16 => {
                let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
            }
        }
    }
}

/// See [`super::dense_row`].
///
/// # Safety
/// The machine has AVX2, FMA and F16C; each of `x` has as many elements as `weights`; `out` as many as `x`.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn dense_row(float: Float, weights: &[u8], x: &[&[f32]], out: &mut [f32]) {
    // SAFETY: The caller's promise is passed on; the tile's length matches the constant.
    unsafe {
        match x.len() {
            1 => dense_tile::<1>(float, weights, x, out),
            2 => dense_tile::<2>(float, weights, x, out),
            3 => dense_tile::<3>(float, weights, x, out),
            TILE => dense_tile::<TILE>(float, weights, x, out),
            _ => {}
        }
    }
}

/// # Safety
/// As [`dense_row`], with `x.len() == M`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn dense_tile<const M: usize>(float: Float, weights: &[u8], x: &[&[f32]], out: &mut [f32]) {
    let size = float.size();
    let columns = weights.len() / size;
    let whole = columns / 16 * 16;
    // Two sums a row keep two multiply-adds in flight.
    let mut sums = [[_mm256_setzero_ps(); 2]; M];
    for column in (0..whole).step_by(16) {
        // SAFETY: `column + 16` is at most `columns`, which is the length of the weights and of each row.
        unsafe {
            let first = load_floats(float, weights.as_ptr().add(column * size));
            let second = load_floats(float, weights.as_ptr().add((column + 8) * size));
            for i in 0..M {
                let x = x[i].as_ptr().add(column);
                sums[i][0] = _mm256_fmadd_ps(first, _mm256_loadu_ps(x), sums[i][0]);
                sums[i][1] = _mm256_fmadd_ps(second, _mm256_loadu_ps(x.add(8)), sums[i][1]);
            }
        }
    }
    for i in 0..M {
        let mut lanes = [0.0f32; 8];
        // SAFETY: `lanes` has eight elements.
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), _mm256_add_ps(sums[i][0], sums[i][1])) };
        let mut rest = [0.0];
        portable::dense_row(float, &weights[whole * size..], &[&x[i][whole..]], &mut rest);
        out[i] = lanes.iter().sum::<f32>() + rest[0];
    }
}

/// See [`portable::attend`].
///
/// # Safety
/// The machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn attend(head: &portable::Head<'_>, scores: &mut Vec<f32>, out: &mut [f32]) {
    portable::attend(head, scores, out);
}
