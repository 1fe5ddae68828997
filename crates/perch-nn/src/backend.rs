//! The operations that a decoder is made of.

use std::ops::Range;

use perch_model::spec::{Activation, RopeSpec};
use perch_model::weights::{DenseView, MatrixView};

use crate::BackendError;
use crate::sampling::SamplingParams;

/// What executes a decoder: where tensors live and how they are computed.
///
/// Tensors are activations `[rows, width]`, one row a token of the step, all sequences of the step one after
/// another. They stay where the backend keeps them; nothing but [`read`](Backend::read) and
/// [`read_tensor`](Backend::read_tensor) brings values to the host, and nothing else may wait for the device.
/// A lazy backend may only note an operation down; it computes from [`submit`](Backend::submit) on.
pub trait Backend: 'static {
    /// Activations `[rows, width]`.
    type Tensor;
    /// A weight matrix, or several stacked by rows, in whatever layout the backend multiplies fastest.
    type Matrix;
    /// A norm's weight.
    type Vector;
    /// Rotary frequencies, ready to use.
    type Rope;
    /// Keys and values of one layer of one sequence, updated in place.
    type Cache;
    /// Token ids on the device, one a row.
    type Tokens: Clone;
    /// Sampling state of one sequence: settings, penalties' counts, random state.
    type Sampler;

    /// Takes up matrices that are multiplied with the same input, stacked by rows in the order given.
    /// Forms may differ between parts.
    fn matrix(&self, parts: &[MatrixView<'_>]) -> Result<Self::Matrix, BackendError>;
    /// Takes up a norm's weight.
    fn vector(&self, weight: DenseView<'_>) -> Result<Self::Vector, BackendError>;
    /// Prepares rotary positions.
    fn rope(&self, spec: &RopeSpec) -> Self::Rope;
    /// An empty cache.
    fn cache(&self, shape: CacheShape) -> Self::Cache;
    /// Sampling state for a sequence that starts with `prompt`.
    fn sampler(&self, params: &SamplingParams, prompt: &[u32]) -> Self::Sampler;

    /// The ids of a step's rows, in the order given.
    fn tokens(&self, parts: &[TokenSource<'_, Self::Tokens>]) -> Self::Tokens;
    /// Rows of `table` by id: `[rows, columns of table]`.
    fn embed(&self, table: &Self::Matrix, tokens: &Self::Tokens) -> Result<Self::Tensor, BackendError>;
    /// `x / sqrt(mean(x²) + epsilon) * weight` for each row (Zhang & Sennrich 2019, arXiv:1910.07467).
    fn rms_norm(&self, x: &Self::Tensor, weight: &Self::Vector, epsilon: f32) -> Self::Tensor;
    /// `x · matrixᵀ + bias`: `[rows, matrix rows]`.
    fn matmul(&self, x: &Self::Tensor, matrix: &Self::Matrix) -> Self::Tensor;
    /// Causal self-attention. `qkv` holds, side by side in each row, all query heads, all key heads and all
    /// value heads; the result holds all heads' outputs, `[rows, heads * head_size]`.
    ///
    /// For each span: norms and rotates queries and keys at the positions that follow what the span's cache
    /// holds, appends keys and values to the cache, attends.
    fn attention(
        &self,
        qkv: Self::Tensor,
        attention: &Attention<'_, Self>,
        spans: &mut [AttentionSpan<'_, Self>],
    ) -> Result<Self::Tensor, BackendError>;
    /// `activation(left half) * right half` of each row: `[rows, width / 2]`.
    fn gate(&self, gate_up: Self::Tensor, activation: Activation) -> Self::Tensor;
    /// `x + y`.
    fn add(&self, x: Self::Tensor, y: &Self::Tensor) -> Self::Tensor;
    /// The given rows of `x`, in order.
    fn rows(&self, x: &Self::Tensor, rows: &[usize]) -> Self::Tensor;
    /// Chooses one token for each row of `logits`; row `i` with `samplers[i]`, whose state moves on.
    fn sample(&self, logits: &Self::Tensor, samplers: &mut [&mut Self::Sampler]) -> Self::Tokens;

    /// Starts computing `tokens` and everything that it depends on, without waiting.
    fn submit(&self, tokens: &Self::Tokens) -> Result<(), BackendError>;
    /// Waits for `tokens` and brings them to the host.
    fn read(&self, tokens: &Self::Tokens) -> Result<Vec<u32>, BackendError>;
    /// Waits for `x` and brings it to the host, row by row.
    fn read_tensor(&self, x: &Self::Tensor) -> Result<Vec<f32>, BackendError>;
    /// Waits for what spans wrote into their caches, so that no work is left open behind a step without output.
    fn settle(&self, caches: &[&Self::Cache]) -> Result<(), BackendError>;
}

/// Where a row's token comes from.
#[derive(Debug)]
pub enum TokenSource<'a, T> {
    /// Known on the host.
    Host(&'a [u32]),
    /// Row `row` of an earlier step's sampled tokens, perhaps still being computed.
    Device {
        /// The earlier step's tokens.
        tokens: &'a T,
        /// Which of its rows.
        row: usize,
    },
}

impl<T> TokenSource<'_, T> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Host(ids) => ids.len(),
            Self::Device { .. } => 1,
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The parameters of one layer's attention that are the same for all sequences.
pub struct Attention<'a, B: Backend + ?Sized> {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_size: usize,
    /// Factor on `q · k`.
    pub scale: f32,
    /// How many positions a position sees, itself included; `None` sees all.
    pub window: Option<usize>,
    /// Weight and epsilon of the norm over each query head.
    pub q_norm: Option<(&'a B::Vector, f32)>,
    /// Weight and epsilon of the norm over each key head.
    pub k_norm: Option<(&'a B::Vector, f32)>,
    /// Rotary positions.
    pub rope: &'a B::Rope,
}

/// One sequence's part of a step.
pub struct AttentionSpan<'a, B: Backend + ?Sized> {
    /// Its rows.
    pub rows: Range<usize>,
    /// Its cache in this layer; the first row's position is the number of positions that it has taken in.
    pub cache: &'a mut B::Cache,
}

/// What a cache is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_size: usize,
    /// Only this many positions are ever looked at again, where the layer has a window.
    pub window: Option<usize>,
}
