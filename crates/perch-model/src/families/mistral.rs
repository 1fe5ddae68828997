//! Mistral (arXiv:2310.06825): every layer sees a window of positions, unless `sliding_window` is null.

use super::standard::{self, Standard};
use crate::config::Config;
use crate::error::ModelError;
use crate::spec::DecoderSpec;

pub(super) fn spec(config: &Config) -> Result<DecoderSpec, ModelError> {
    // Absent means 4096, null means none: the family's own defaults tell the two apart.
    let window = match config.map().get("sliding_window") {
        None => Some(4096),
        Some(_) => config.optional_size("sliding_window")?,
    };
    let layers = config.size("num_hidden_layers")?.min(10_000);
    standard::spec(
        config,
        &Standard {
            kv_heads: 8,
            head_size: None,
            qkv_bias: false,
            output_bias: false,
            mlp_bias: false,
            qk_norm: false,
            max_context: 131_072,
            windows: vec![window; layers],
        },
    )
}
