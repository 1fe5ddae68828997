//! Model families: how each one's `config.json` maps to a [`DecoderSpec`] and what its tensors are called.
//!
//! A family whose layers exist already is one file here and one line in [`FAMILIES`].

mod llama;
mod mistral;
mod qwen2;
mod qwen3;
mod rope;
mod standard;

use crate::config::{Config, FILE};
use crate::error::ModelError;
use crate::spec::DecoderSpec;

/// A family of models.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// `model_type` in `config.json`.
    pub model_type: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// Maps its configuration.
    spec: fn(&Config) -> Result<DecoderSpec, ModelError>,
}

/// Every family that Perch runs.
pub const FAMILIES: &[Family] = &[
    Family { model_type: "llama", name: "Llama", spec: llama::spec },
    Family { model_type: "mistral", name: "Mistral", spec: mistral::spec },
    Family { model_type: "qwen2", name: "Qwen2", spec: qwen2::spec },
    Family { model_type: "qwen3", name: "Qwen3", spec: qwen3::spec },
];

impl Family {
    /// The family of a configuration.
    ///
    /// # Errors
    /// One that Perch does not run, with those that it does.
    pub fn of(config: &Config) -> Result<&'static Family, ModelError> {
        let Some(model_type) = config.text("model_type")? else {
            return Err(ModelError::damaged(FILE, "the key model_type is missing"));
        };
        FAMILIES.iter().find(|family| family.model_type == model_type).ok_or_else(|| {
            let known: Vec<_> = FAMILIES.iter().map(|family| family.model_type).collect();
            ModelError::unsupported(
                FILE,
                format!("the family {model_type:?} is not known to this build; it runs {}", known.join(", ")),
            )
        })
    }

    /// The decoder that a configuration of this family describes.
    ///
    /// # Errors
    /// A key that is missing, of a wrong type, or that asks for something this build does not run.
    pub fn spec(&self, config: &Config) -> Result<DecoderSpec, ModelError> {
        (self.spec)(config)
    }
}
