//! The CPU backend: SIMD kernels chosen when the program runs, one persistent pool of threads.
//!
//! Dense weights stay in their type and are widened in registers; activations are single precision. Quantised
//! weights stay quantised: see `packed`. Everything is computed when it is asked for.

mod attention;
mod kernels;
mod matrix;
mod packed;
mod pool;
mod tensor;

use std::sync::Arc;

use perch_model::spec::{Activation, RopeSpec};
use perch_model::weights::{DenseView, MatrixView};
use perch_nn::backend::{Attention, AttentionSpan, CacheShape, TokenSource};
use perch_nn::sampling::{HostSampler, SamplingParams};
use perch_nn::{Backend, BackendError};

pub use attention::Cache;
pub use kernels::Simd;
pub use matrix::Matrix;
pub use tensor::Tensor;

use pool::Pool;
use tensor::Shared;

/// The CPU as a backend.
pub struct Cpu {
    pool: Pool,
    simd: Simd,
}

impl Cpu {
    /// A backend with its own threads: as many as given, or one for each core.
    pub fn new(threads: Option<usize>) -> Self {
        Self::with_simd(threads, Simd::detect())
    }

    /// As [`new`](Self::new), with an instruction set that is not the best one, for comparisons.
    pub fn with_simd(threads: Option<usize>, simd: Simd) -> Self {
        Self { pool: Pool::new(threads.unwrap_or_else(Self::default_threads).max(1)), simd }
    }

    /// Threads that compute unless told otherwise: one for each core that this process may use.
    pub fn default_threads() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Threads that compute.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }
}

impl Backend for Cpu {
    type Tensor = Tensor;
    type Matrix = Matrix;
    type Vector = Vec<f32>;
    type Rope = RopeSpec;
    type Cache = Cache;
    /// `None` where the logits were not finite, so that there is no token.
    type Tokens = Arc<[Option<u32>]>;
    type Sampler = HostSampler;

    fn matrix(&self, parts: &[MatrixView<'_>]) -> Result<Matrix, BackendError> {
        Ok(Matrix::new(&self.pool, parts))
    }

    fn vector(&self, weight: DenseView<'_>) -> Result<Vec<f32>, BackendError> {
        Ok(weight.to_f32())
    }

    fn rope(&self, spec: &RopeSpec) -> RopeSpec {
        spec.clone()
    }

    fn cache(&self, shape: CacheShape) -> Cache {
        Cache::new(shape)
    }

    fn sampler(&self, params: &SamplingParams, prompt: &[u32]) -> HostSampler {
        HostSampler::new(params, prompt)
    }

    fn tokens(&self, parts: &[TokenSource<'_, Self::Tokens>]) -> Self::Tokens {
        let mut ids = Vec::new();
        for part in parts {
            match part {
                TokenSource::Host(part) => ids.extend(part.iter().copied().map(Some)),
                TokenSource::Device { tokens, row } => ids.push(tokens.get(*row).copied().flatten()),
            }
        }
        ids.into()
    }

    fn embed(&self, table: &Matrix, tokens: &Self::Tokens) -> Result<Tensor, BackendError> {
        let mut out = Tensor::zeros(tokens.len(), table.columns());
        for (token, row) in tokens.iter().zip(out.data.chunks_exact_mut(table.columns())) {
            table.row(token.ok_or(BackendError::NotFinite)? as usize, row);
        }
        Ok(out)
    }

    fn rms_norm(&self, x: &Tensor, weight: &Vec<f32>, epsilon: f32) -> Tensor {
        let mut out = x.clone();
        let width = x.width;
        let shared = Shared::new(&mut out.data);
        self.pool.ranges(x.rows, 16, &|rows| {
            for row in rows {
                // SAFETY: Each row is one thread's.
                #[expect(unsafe_code, reason = "threads write disjoint parts of one result")]
                let row = unsafe { shared.part(row * width..(row + 1) * width) };
                rms_norm_row(row, weight, epsilon);
            }
        });
        out
    }

    fn matmul(&self, x: &Tensor, matrix: &Matrix) -> Tensor {
        matrix.multiply(&self.pool, self.simd, x)
    }

    fn attention(
        &self,
        qkv: Tensor,
        attention: &Attention<'_, Self>,
        spans: &mut [AttentionSpan<'_, Self>],
    ) -> Result<Tensor, BackendError> {
        Ok(attention::attention(self, qkv, attention, spans))
    }

    fn gate(&self, gate_up: Tensor, activation: Activation) -> Tensor {
        let Activation::Silu = activation;
        let width = gate_up.width / 2;
        let mut out = Tensor::zeros(gate_up.rows, width);
        let shared = Shared::new(&mut out.data);
        self.pool.ranges(gate_up.data.len() / 2, 2048, &|range| {
            // SAFETY: The ranges do not overlap.
            #[expect(unsafe_code, reason = "threads write disjoint parts of one result")]
            let out = unsafe { shared.part(range.clone()) };
            for (index, out) in range.zip(out) {
                let at = index / width * 2 * width + index % width;
                let (gate, up) = (gate_up.data[at], gate_up.data[at + width]);
                *out = gate / (1.0 + (-gate).exp()) * up;
            }
        });
        out
    }

    fn add(&self, mut x: Tensor, y: &Tensor) -> Tensor {
        for (x, y) in x.data.iter_mut().zip(&y.data) {
            *x += y;
        }
        x
    }

    fn rows(&self, x: &Tensor, rows: &[usize]) -> Tensor {
        let data = rows.iter().flat_map(|&row| x.row(row)).copied().collect();
        Tensor { rows: rows.len(), width: x.width, data }
    }

    fn sample(&self, logits: &Tensor, samplers: &mut [&mut HostSampler]) -> Self::Tokens {
        let mut logits = logits.clone();
        let rows = logits.data.chunks_exact_mut(logits.width);
        rows.zip(samplers).map(|(row, sampler)| sampler.sample(row).ok()).collect()
    }

    fn submit(&self, _tokens: &Self::Tokens) -> Result<(), BackendError> {
        Ok(())
    }

    fn read(&self, tokens: &Self::Tokens) -> Result<Vec<u32>, BackendError> {
        tokens.iter().map(|token| token.ok_or(BackendError::NotFinite)).collect()
    }

    fn read_tensor(&self, x: &Tensor) -> Result<Vec<f32>, BackendError> {
        if x.data.iter().all(|value| value.is_finite()) {
            Ok(x.data.clone())
        } else {
            Err(BackendError::NotFinite)
        }
    }

    fn settle(&self, _caches: &[&Cache]) -> Result<(), BackendError> {
        Ok(())
    }
}

/// Norms one row in place.
fn rms_norm_row(row: &mut [f32], weight: &[f32], epsilon: f32) {
    let mut sums = [0.0f32; 16];
    let chunks = row.chunks_exact(16);
    let rest: f32 = chunks.remainder().iter().map(|x| x * x).sum();
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += x * x;
        }
    }
    let mean = (sums.iter().sum::<f32>() + rest) / row.len() as f32;
    let factor = (mean + epsilon).sqrt().recip();
    for (x, weight) in row.iter_mut().zip(weight) {
        *x = *x * factor * weight;
    }
}
