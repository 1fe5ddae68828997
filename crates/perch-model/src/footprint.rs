//! How much memory a model takes, from its description alone.

use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use crate::spec::{DecoderSpec, LinearSpec};
use crate::weights::{Float, MatrixForm};

/// Bytes of one key or value element in a cache (single precision, as the CPU backend keeps it).
const CACHE_ELEMENT: u64 = 4;

/// Positions that one step may bring at most; bounds the activations.
const STEP: u64 = 512;

/// Memory of a loaded model.
#[derive(Debug, Clone, PartialEq)]
pub struct Footprint {
    /// Weights as they lie in memory, in bytes.
    pub weight_bytes: u64,
    /// Activations of the largest step and the logits, in bytes.
    pub activation_bytes: u64,
    /// Cache bytes a position, and the window within which positions are kept, for each layer.
    layers: Vec<(u64, Option<u64>)>,
}

impl Footprint {
    /// The footprint of `spec` with the weights of `checkpoint`. Reads headers only.
    ///
    /// # Errors
    /// A tensor that is missing or misshapen.
    pub fn of(spec: &DecoderSpec, checkpoint: &Checkpoint) -> Result<Self, ModelError> {
        let mut weight_bytes = 0;
        for linear in spec.linears() {
            weight_bytes += matrix_bytes(linear, checkpoint)?;
        }
        weight_bytes += spec.norms().iter().map(|norm| norm.size as u64 * 4).sum::<u64>();
        let layers = spec.layers.iter().map(|layer| {
            let attention = &layer.attention;
            let bytes = 2 * (attention.kv_heads * attention.head_size) as u64 * CACHE_ELEMENT;
            (bytes, attention.window.map(|window| window as u64))
        });
        // The residual stream, the widest pair of projections and what they give, in single precision.
        let widest =
            spec.linears().iter().skip(1).map(|linear| linear.output.max(linear.input)).max().unwrap_or(0);
        let activation_bytes =
            STEP * 4 * (2 * spec.hidden_size as u64 + 3 * widest as u64) + 4 * spec.vocab_size as u64;
        Ok(Self { weight_bytes, activation_bytes, layers: layers.collect() })
    }

    /// Cache of one sequence of `context` tokens, in bytes.
    pub fn cache_bytes(&self, context: usize) -> u64 {
        let context = context as u64;
        self.layers
            .iter()
            .map(|(bytes, window)| bytes * window.map_or(context, |window| window.min(context)))
            .sum()
    }

    /// Everything together for one sequence of `context` tokens, in bytes.
    pub fn total(&self, context: usize) -> u64 {
        self.weight_bytes + self.activation_bytes + self.cache_bytes(context)
    }
}

fn matrix_bytes(linear: &LinearSpec, checkpoint: &Checkpoint) -> Result<u64, ModelError> {
    let view = checkpoint.matrix(linear)?;
    let elements = view.rows as u64 * view.columns as u64;
    let weights = match view.form {
        MatrixForm::Dense(dense) => elements * dense.float.size() as u64,
        // Codes of up to four bits lie in half a byte, others in one; scales and offsets in the file's own type,
        // in single precision where the two differ.
        MatrixForm::Affine { bits, group_size, scales, offsets, .. } => {
            let codes = if bits <= 4 { elements / 2 } else { elements };
            let float = if scales.float == offsets.float { scales.float } else { Float::F32 };
            codes + elements / group_size as u64 * 2 * float.size() as u64
        }
    };
    Ok(weights + if linear.bias { linear.output as u64 * 4 } else { 0 })
}
