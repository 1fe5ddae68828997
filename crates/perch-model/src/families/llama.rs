//! Llama 1 to 3 (arXiv:2302.13971, arXiv:2407.21783).

use super::standard::{self, Standard};
use crate::config::Config;
use crate::error::ModelError;
use crate::spec::DecoderSpec;

pub(super) fn spec(config: &Config) -> Result<DecoderSpec, ModelError> {
    let bias = config.flag_or("attention_bias", false)?;
    standard::spec(
        config,
        &Standard {
            kv_heads: config.size("num_attention_heads")?,
            head_size: None,
            qkv_bias: bias,
            output_bias: bias,
            mlp_bias: config.flag_or("mlp_bias", false)?,
            qk_norm: false,
            max_context: 2048,
            windows: Vec::new(),
        },
    )
}
