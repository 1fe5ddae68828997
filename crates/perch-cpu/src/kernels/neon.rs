//! Kernels for 64-bit ARM.
#![expect(unsafe_code, reason = "vector loads take pointers")]

use std::arch::aarch64::*;
use std::arch::asm;

use perch_model::weights::Float;

use crate::packed::{BLOCK, CodeKind, Packed, ROWS, Rounded};

/// See [`super::packed_rows`].
///
/// # Safety
/// `weights` is one row group of `packed`. `x` holds at least `first + out.len()` rows of `packed.columns`
/// elements, rounded with `packed.group_size`.
#[target_feature(enable = "neon")]
pub(super) unsafe fn packed_rows(
    packed: &Packed,
    weights: &[u8],
    x: &Rounded,
    first: usize,
    out: &mut [[f32; ROWS]],
) {
    for (index, out) in out.iter_mut().enumerate() {
        // SAFETY: The caller's promise is passed on.
        *out = unsafe { packed_row::<false>(packed, weights, x, first + index) };
    }
}

/// As [`packed_rows`], with the dot product instructions.
///
/// # Safety
/// As [`packed_rows`], and the machine has them.
#[target_feature(enable = "neon,dotprod")]
pub(super) unsafe fn packed_rows_dot(
    packed: &Packed,
    weights: &[u8],
    x: &Rounded,
    first: usize,
    out: &mut [[f32; ROWS]],
) {
    for (index, out) in out.iter_mut().enumerate() {
        // SAFETY: The caller's promise is passed on.
        *out = unsafe { packed_row::<true>(packed, weights, x, first + index) };
    }
}

/// # Safety
/// As [`packed_rows`]; with `DOT`, the machine has the dot product instructions.
#[inline(always)]
unsafe fn packed_row<const DOT: bool>(
    packed: &Packed,
    weights: &[u8],
    x: &Rounded,
    row: usize,
) -> [f32; ROWS] {
    let columns = packed.columns;
    let groups = columns / packed.group_size;
    let blocks = packed.group_size / BLOCK;
    let codes = &x.codes[row * columns..(row + 1) * columns];
    let scales = &x.scales[row * (columns / BLOCK)..];
    let sums = &x.sums[row * groups..];
    let scale_bytes = ROWS * packed.scales.size();
    // SAFETY: `at` walks through the row group: a group's blocks, then eight scales and eight offsets.
    unsafe {
        let mut at = weights.as_ptr();
        let mut totals = [vdupq_n_f32(0.0); 2];
        for (group, &sum) in sums.iter().enumerate().take(groups) {
            let mut dots = [vdupq_n_f32(0.0); 2];
            for block in 0..blocks {
                let index = group * blocks + block;
                let x = codes.as_ptr().add(index * BLOCK);
                let products = block_products::<DOT>(packed.codes, at, x);
                at = at.add(packed.codes.block_bytes());
                for half in 0..2 {
                    dots[half] = vfmaq_n_f32(dots[half], vcvtq_f32_s32(products[half]), scales[index]);
                }
            }
            let scale = load_floats(packed.scales, at);
            let mut offset = load_floats(packed.scales, at.add(scale_bytes));
            at = at.add(2 * scale_bytes);
            for half in 0..2 {
                if packed.codes == CodeKind::Signed {
                    offset[half] = vfmaq_n_f32(offset[half], scale[half], 128.0);
                }
                totals[half] = vfmaq_f32(totals[half], scale[half], dots[half]);
                totals[half] = vfmaq_n_f32(totals[half], offset[half], sum);
            }
        }
        let mut out = [0.0; ROWS];
        vst1q_f32(out.as_mut_ptr(), totals[0]);
        vst1q_f32(out.as_mut_ptr().add(4), totals[1]);
        out
    }
}

/// Integer products of a block: rows 0 to 3 and rows 4 to 7.
///
/// # Safety
/// `weights` points to a block of codes, `x` to 32 codes.
#[inline(always)]
unsafe fn block_products<const DOT: bool>(
    kind: CodeKind,
    weights: *const u8,
    x: *const i8,
) -> [int32x4_t; 2] {
    // SAFETY: A block has four or eight vectors of 32 bytes, and `x` eight times four codes.
    unsafe {
        let mut sums = [vdupq_n_s32(0); 2];
        let x_at = |vector: usize| {
            vreinterpretq_s8_s32(vdupq_n_s32(x.add(vector * 4).cast::<i32>().read_unaligned()))
        };
        if kind == CodeKind::Nibble {
            let mask = vdupq_n_u8(15);
            for vector in 0..4 {
                let (low, high) = (x_at(vector), x_at(vector + 4));
                for (half, sum) in sums.iter_mut().enumerate() {
                    let both = vld1q_u8(weights.add(vector * 32 + half * 16));
                    *sum = add_products::<DOT>(*sum, vreinterpretq_s8_u8(vandq_u8(both, mask)), low);
                    *sum = add_products::<DOT>(*sum, vreinterpretq_s8_u8(vshrq_n_u8::<4>(both)), high);
                }
            }
        } else {
            for vector in 0..8 {
                let x = x_at(vector);
                for (half, sum) in sums.iter_mut().enumerate() {
                    let codes = vld1q_s8(weights.add(vector * 32 + half * 16).cast());
                    *sum = add_products::<DOT>(*sum, codes, x);
                }
            }
        }
        sums
    }
}

/// Adds to each lane the products of its four pairs of codes.
///
/// # Safety
/// With `DOT`, the machine has the dot product instructions.
#[inline(always)]
unsafe fn add_products<const DOT: bool>(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: The instructions read and write registers only; the caller promises that they exist.
    unsafe {
        if DOT {
            asm!(
                ".arch_extension dotprod",
                "sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b",
                sums = inout(vreg) sums,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
            sums
        } else {
            let low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
            let high = vpaddlq_s16(vmull_high_s8(a, b));
            vaddq_s32(sums, vpaddq_s32(low, high))
        }
    }
}

/// Eight floats.
///
/// # Safety
/// `at` points to eight elements of that type.
#[inline(always)]
unsafe fn load_floats(float: Float, at: *const u8) -> [float32x4_t; 2] {
    // SAFETY: The caller gives eight elements.
    unsafe {
        match float {
            Float::F32 => [vld1q_f32(at.cast()), vld1q_f32(at.cast::<f32>().add(4))],
            Float::Bf16 => {
                let halves = vld1q_u16(at.cast());
                let low = vshll_n_u16::<16>(vget_low_u16(halves));
                let high = vshll_n_u16::<16>(vget_high_u16(halves));
                [vreinterpretq_f32_u32(low), vreinterpretq_f32_u32(high)]
            }
            Float::F16 => {
                let wide: [f32; 8] = std::array::from_fn(|i| {
                    half::f16::from_le_bytes([*at.add(2 * i), *at.add(2 * i + 1)]).to_f32()
                });
                [vld1q_f32(wide.as_ptr()), vld1q_f32(wide.as_ptr().add(4))]
            }
        }
    }
}
