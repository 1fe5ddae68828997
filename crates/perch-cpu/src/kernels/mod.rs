//! The inner loops, in a version for each instruction set, chosen when the program runs.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod portable;

use perch_model::weights::Float;

use crate::packed::{Packed, ROWS, Rounded};

/// Activation rows that a kernel takes at once.
pub(crate) const TILE: usize = 4;

/// An instruction set that the kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simd {
    /// Plain Rust.
    Portable,
    /// x86-64 with AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 64-bit ARM.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// 64-bit ARM with the dot product instructions, as every Apple Silicon chip has.
    #[cfg(target_arch = "aarch64")]
    NeonDot,
}

impl Simd {
    /// The best that this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
        {
            return Self::Avx2;
        }
        #[cfg(target_arch = "aarch64")]
        return if std::arch::is_aarch64_feature_detected!("dotprod") { Self::NeonDot } else { Self::Neon };
        #[cfg(not(target_arch = "aarch64"))]
        Self::Portable
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "no vector instructions",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "AVX2",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "NEON",
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot => "NEON with dot products",
        }
    }
}

/// Products of eight interleaved weight rows with up to [`TILE`] activation rows from `first` on.
/// `out[i]` are the eight results of activation row `first + i`.
pub(crate) fn packed_rows(
    simd: Simd,
    packed: &Packed,
    row_group: usize,
    x: &Rounded,
    first: usize,
    out: &mut [[f32; ROWS]],
) {
    let bytes = packed.row_group_bytes();
    let weights = &packed.data[row_group * bytes..(row_group + 1) * bytes];
    let last = first + out.len();
    assert!(
        out.len() <= TILE && last * packed.columns <= x.codes.len(),
        "rows must lie within the activations"
    );
    match simd {
        Simd::Portable => portable::packed_rows(packed, weights, x, first, out),
        // SAFETY: The set was detected. `weights` is a whole row group by `Packed`'s layout, and `x` holds codes, a
        // scale for each block and a sum for each group of all rows up to `last`, as just asserted.
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "vector instructions")]
        Simd::Avx2 => unsafe { avx2::packed_rows(packed, weights, x, first, out) },
        // SAFETY: As above; NEON is part of the base instruction set.
        #[cfg(target_arch = "aarch64")]
        #[expect(unsafe_code, reason = "vector instructions")]
        Simd::Neon => unsafe { neon::packed_rows(packed, weights, x, first, out) },
        // SAFETY: As above; the dot product instructions were detected.
        #[cfg(target_arch = "aarch64")]
        #[expect(unsafe_code, reason = "vector instructions")]
        Simd::NeonDot => unsafe { neon::packed_rows_dot(packed, weights, x, first, out) },
    }
}

/// Products of one dense weight row with up to [`TILE`] activation rows of the same length.
pub(crate) fn dense_row(simd: Simd, float: Float, weights: &[u8], x: &[&[f32]], out: &mut [f32]) {
    let columns = weights.len() / float.size();
    assert!(
        x.len() <= TILE && out.len() == x.len() && x.iter().all(|x| x.len() == columns),
        "lengths must match"
    );
    match simd {
        // SAFETY: The set was detected, and all lengths were just compared.
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "vector instructions")]
        Simd::Avx2 => unsafe { avx2::dense_row(float, weights, x, out) },
        _ => portable::dense_row(float, weights, x, out),
    }
}

/// One head's attention: see [`portable::Head`].
pub(crate) fn attend(simd: Simd, head: &portable::Head<'_>, scores: &mut Vec<f32>, out: &mut [f32]) {
    match simd {
        // SAFETY: The set was detected; the function is safe code compiled for it.
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "vector instructions")]
        Simd::Avx2 => unsafe { avx2::attend(head, scores, out) },
        _ => portable::attend(head, scores, out),
    }
}
