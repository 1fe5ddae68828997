//! Qwen3, dense (arXiv:2505.09388): norms over query and key heads instead of biases.

use super::standard::{self, Standard};
use crate::config::Config;
use crate::error::ModelError;
use crate::spec::DecoderSpec;

pub(super) fn spec(config: &Config) -> Result<DecoderSpec, ModelError> {
    let bias = config.flag_or("attention_bias", false)?;
    standard::spec(
        config,
        &Standard {
            kv_heads: 32,
            head_size: Some(128),
            qkv_bias: bias,
            output_bias: bias,
            mlp_bias: false,
            qk_norm: true,
            max_context: 32_768,
            windows: standard::qwen_windows(config)?,
        },
    )
}
