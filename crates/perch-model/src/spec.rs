//! What a decoder is, as plain data: every width, every tensor's name and shape.
//!
//! A [`DecoderSpec`] is the complete list of what a forward pass does and which tensors it needs.
//! Whoever holds one can check a folder, estimate its memory or run it, without knowing its family.

use std::sync::Arc;

/// A whole decoder: embedding, layers, final norm, head.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderSpec {
    /// Rows of the embedding, and logits per position. May exceed the tokenizer's size (padding rows).
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Longest context in tokens that the model was made for.
    pub max_context: usize,
    /// Token embedding, `[vocab_size, hidden_size]`.
    pub embedding: LinearSpec,
    /// Layers in the order in which they run.
    pub layers: Vec<LayerSpec>,
    /// Norm before the head.
    pub final_norm: NormSpec,
    /// Output projection `[vocab_size, hidden_size]`; `None` when the embedding is used again (tied head).
    pub head: Option<LinearSpec>,
}

impl DecoderSpec {
    /// Every matrix, in the order in which a forward pass meets it.
    pub fn linears(&self) -> Vec<&LinearSpec> {
        let layers = self.layers.iter().flat_map(|layer| {
            let (attention, mlp) = (&layer.attention, &layer.mlp);
            [&attention.q, &attention.k, &attention.v, &attention.o, &mlp.gate, &mlp.up, &mlp.down]
        });
        std::iter::once(&self.embedding).chain(layers).chain(&self.head).collect()
    }

    /// Every norm, in the order in which a forward pass meets it.
    pub fn norms(&self) -> Vec<&NormSpec> {
        let layers = self.layers.iter().flat_map(|layer| {
            let attention = &layer.attention;
            [
                Some(&layer.attention_norm),
                attention.q_norm.as_ref(),
                attention.k_norm.as_ref(),
                Some(&layer.mlp_norm),
            ]
        });
        layers.flatten().chain([&self.final_norm]).collect()
    }
}

/// One layer: norm, attention, residual add, norm, MLP, residual add.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSpec {
    /// Norm before attention.
    pub attention_norm: NormSpec,
    /// Self-attention.
    pub attention: AttentionSpec,
    /// Norm before the MLP.
    pub mlp_norm: NormSpec,
    /// Feed-forward part.
    pub mlp: MlpSpec,
}

/// Grouped-query self-attention with rotary positions.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionSpec {
    /// Query projection, `hidden_size` to `heads * head_size`.
    pub q: LinearSpec,
    /// Key projection, `hidden_size` to `kv_heads * head_size`.
    pub k: LinearSpec,
    /// Value projection, `hidden_size` to `kv_heads * head_size`.
    pub v: LinearSpec,
    /// Output projection, `heads * head_size` to `hidden_size`.
    pub o: LinearSpec,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_size: usize,
    /// RMS norm over each query head before rotation, of width `head_size`.
    pub q_norm: Option<NormSpec>,
    /// RMS norm over each key head before rotation, of width `head_size`.
    pub k_norm: Option<NormSpec>,
    /// Rotary positions.
    pub rope: RopeSpec,
    /// Factor on `q · k` before the softmax.
    pub scale: f32,
    /// A position sees itself and the `window - 1` before it; `None` sees everything before it.
    pub window: Option<usize>,
}

/// Rotary position embedding in the half-split layout: dimension `i` turns with dimension `i + n`,
/// where `n` is the number of frequencies.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeSpec {
    /// Angle per position for each pair, all scaling applied.
    pub inverse_frequencies: Arc<[f32]>,
}

/// Gated feed-forward: `down(activation(gate(x)) * up(x))`.
#[derive(Debug, Clone, PartialEq)]
pub struct MlpSpec {
    /// Gate projection, `hidden_size` to the inner width.
    pub gate: LinearSpec,
    /// Up projection, `hidden_size` to the inner width.
    pub up: LinearSpec,
    /// Down projection, inner width to `hidden_size`.
    pub down: LinearSpec,
    /// What is applied to the gate.
    pub activation: Activation,
}

/// Activation of a gated MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
}

/// A matrix of weights `[output, input]`, perhaps with a bias `[output]`.
///
/// The tensors are `{name}.weight`, `{name}.bias`, and for a quantised matrix `{name}.scales` and `{name}.biases`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearSpec {
    /// Tensor name without its last part.
    pub name: String,
    /// Columns: width of what it is multiplied with.
    pub input: usize,
    /// Rows: width of the result.
    pub output: usize,
    /// Whether `{name}.bias` is added.
    pub bias: bool,
}

/// RMS norm with a weight a dimension: `x / sqrt(mean(x²) + epsilon) * weight`.
#[derive(Debug, Clone, PartialEq)]
pub struct NormSpec {
    /// Full tensor name of the weight.
    pub name: String,
    /// Width.
    pub size: usize,
    /// Added to the mean square.
    pub epsilon: f32,
}
