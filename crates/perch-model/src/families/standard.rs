//! The layout that llama, mistral, qwen2 and qwen3 share: RMS norms before attention and MLP, rotary positions,
//! grouped-query attention, a gated SiLU MLP, and Hugging Face's tensor names.

use serde_json::json;

use super::rope;
use crate::config::{Config, FILE};
use crate::error::ModelError;
use crate::spec::{Activation, AttentionSpec, DecoderSpec, LayerSpec, LinearSpec, MlpSpec, NormSpec};

/// What differs between the families of this layout.
pub(super) struct Standard {
    /// Key and value heads where `num_key_value_heads` is absent.
    pub(super) kv_heads: usize,
    /// Width of a head where `head_dim` is absent; `None` divides the hidden size by the heads.
    pub(super) head_size: Option<usize>,
    /// Biases of the query, key and value projections.
    pub(super) qkv_bias: bool,
    /// Bias of the attention's output projection.
    pub(super) output_bias: bool,
    /// Biases of the MLP.
    pub(super) mlp_bias: bool,
    /// Norms over query and key heads.
    pub(super) qk_norm: bool,
    /// Longest context where `max_position_embeddings` is absent.
    pub(super) max_context: usize,
    /// Window of each layer; empty where there are none.
    pub(super) windows: Vec<Option<usize>>,
}

/// Maps the keys that the families share.
pub(super) fn spec(config: &Config, family: &Standard) -> Result<DecoderSpec, ModelError> {
    config.only("hidden_act", &json!("silu"))?;
    config.only("partial_rotary_factor", &json!(1.0))?;
    let hidden = config.size("hidden_size")?;
    let inner = config.size("intermediate_size")?;
    let vocab_size = config.size("vocab_size")?;
    let layers = config.size("num_hidden_layers")?;
    if layers > 10_000 {
        return Err(ModelError::damaged(
            FILE,
            format!("num_hidden_layers is {layers}, expected at most 10000"),
        ));
    }
    let heads = config.size("num_attention_heads")?;
    let kv_heads = config.size_or("num_key_value_heads", family.kv_heads)?;
    let head_size = match (config.optional_size("head_dim")?, family.head_size) {
        (Some(size), _) | (None, Some(size)) => size,
        (None, None) if hidden % heads == 0 => hidden / heads,
        (None, None) => {
            return Err(ModelError::damaged(
                FILE,
                format!("hidden_size {hidden} does not divide by num_attention_heads {heads}"),
            ));
        }
    };
    if !heads.is_multiple_of(kv_heads) {
        return Err(ModelError::damaged(
            FILE,
            format!("num_attention_heads {heads} does not divide by num_key_value_heads {kv_heads}"),
        ));
    }
    if !head_size.is_multiple_of(2) {
        return Err(ModelError::damaged(FILE, format!("head_dim is {head_size}, expected an even number")));
    }
    let epsilon = config.number_or("rms_norm_eps", 1e-6)? as f32;
    let rope = rope::spec(config, head_size)?;

    let linear = |name: String, input, output, bias| LinearSpec { name, input, output, bias };
    let norm = |name: String, size| NormSpec { name, size, epsilon };
    let layer = |index: usize| {
        let at = |part: &str| format!("model.layers.{index}.{part}");
        let qk_norm = |name: &str| family.qk_norm.then(|| norm(at(name), head_size));
        LayerSpec {
            attention_norm: norm(at("input_layernorm.weight"), hidden),
            attention: AttentionSpec {
                q: linear(at("self_attn.q_proj"), hidden, heads * head_size, family.qkv_bias),
                k: linear(at("self_attn.k_proj"), hidden, kv_heads * head_size, family.qkv_bias),
                v: linear(at("self_attn.v_proj"), hidden, kv_heads * head_size, family.qkv_bias),
                o: linear(at("self_attn.o_proj"), heads * head_size, hidden, family.output_bias),
                heads,
                kv_heads,
                head_size,
                q_norm: qk_norm("self_attn.q_norm.weight"),
                k_norm: qk_norm("self_attn.k_norm.weight"),
                rope: rope.clone(),
                scale: (head_size as f32).sqrt().recip(),
                window: family.windows.get(index).copied().flatten(),
            },
            mlp_norm: norm(at("post_attention_layernorm.weight"), hidden),
            mlp: MlpSpec {
                gate: linear(at("mlp.gate_proj"), hidden, inner, family.mlp_bias),
                up: linear(at("mlp.up_proj"), hidden, inner, family.mlp_bias),
                down: linear(at("mlp.down_proj"), inner, hidden, family.mlp_bias),
                activation: Activation::Silu,
            },
        }
    };
    let tied = config.flag_or("tie_word_embeddings", false)?;
    Ok(DecoderSpec {
        vocab_size,
        hidden_size: hidden,
        max_context: config.size_or("max_position_embeddings", family.max_context)?,
        embedding: linear("model.embed_tokens".to_owned(), hidden, vocab_size, false),
        layers: (0..layers).map(layer).collect(),
        final_norm: norm("model.norm.weight".to_owned(), hidden),
        head: (!tied).then(|| linear("lm_head".to_owned(), hidden, vocab_size, false)),
    })
}

/// The windows of the Qwen families: by `layer_types` where it stands, else for layers from
/// `max_window_layers` on, and only with `use_sliding_window`.
pub(super) fn qwen_windows(config: &Config) -> Result<Vec<Option<usize>>, ModelError> {
    let layers = config.size("num_hidden_layers")?.min(10_000);
    if !config.flag_or("use_sliding_window", false)? {
        return Ok(Vec::new());
    }
    let window = config.size_or("sliding_window", 4096)?;
    if let Some(types) = config.get("layer_types") {
        let names: Option<Vec<&str>> =
            types.as_array().and_then(|list| list.iter().map(serde_json::Value::as_str).collect());
        return match names {
            Some(names)
                if names.len() == layers
                    && names.iter().all(|n| matches!(*n, "full_attention" | "sliding_attention")) =>
            {
                Ok(names.iter().map(|name| (*name == "sliding_attention").then_some(window)).collect())
            }
            _ => Err(ModelError::damaged(
                FILE,
                format!(
                    "layer_types must list full_attention or sliding_attention for each of {layers} layers"
                ),
            )),
        };
    }
    let first = match config.get("max_window_layers") {
        // Zero is a valid count here, unlike for a size.
        Some(value) if value.as_u64() == Some(0) => 0,
        _ => config.size_or("max_window_layers", 28)?,
    };
    Ok((0..layers).map(|index| (index >= first).then_some(window)).collect())
}
