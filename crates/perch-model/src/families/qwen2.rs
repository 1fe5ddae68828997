//! Qwen2 and Qwen2.5 (arXiv:2407.10671): biases on query, key and value.

use super::standard::{self, Standard};
use crate::config::Config;
use crate::error::ModelError;
use crate::spec::DecoderSpec;

pub(super) fn spec(config: &Config) -> Result<DecoderSpec, ModelError> {
    standard::spec(
        config,
        &Standard {
            kv_heads: 32,
            head_size: None,
            qkv_bias: true,
            output_bias: false,
            mlp_bias: false,
            qk_norm: false,
            max_context: 32_768,
            windows: standard::qwen_windows(config)?,
        },
    )
}
