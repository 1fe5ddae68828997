//! How `config.json` says that matrices are quantised.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::ModelError;

const FILE: &str = "config.json";

/// Group quantisation of a model's matrices: a default and what single layers do instead.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quantization {
    /// What holds for layers that are not listed.
    pub default: Option<QuantizedForm>,
    /// By tensor name without its last part.
    pub layers: BTreeMap<String, QuantizedForm>,
}

/// MLX affine group quantisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantizedForm {
    /// Bits a code: 2, 3, 4, 5, 6 or 8.
    pub bits: u8,
    /// Elements that share a scale and an offset: 32, 64 or 128.
    pub group_size: usize,
}

impl Quantization {
    /// Reads `quantization` as MLX writes it, or `quantization_config` where it means the same.
    ///
    /// # Errors
    /// A method or a size that this build does not run, by name.
    pub fn from_config(config: &Map<String, Value>) -> Result<Self, ModelError> {
        let present = |key: &str| config.get(key).filter(|value| !value.is_null());
        let (key, value) = match (present("quantization"), present("quantization_config")) {
            (Some(value), _) => ("quantization", value),
            (None, Some(value)) => ("quantization_config", value),
            (None, None) => return Ok(Self::default()),
        };
        let Some(map) = value.as_object() else {
            return Err(ModelError::damaged(FILE, format!("{key} is {value}, expected an object")));
        };
        if let Some(method) = map.get("quant_method").and_then(Value::as_str) {
            return Err(ModelError::unsupported(
                FILE,
                format!(
                    "the weights are quantised by {method}; Perch reads MLX group quantisation and plain floats"
                ),
            ));
        }
        let mut quantization = Self { default: Some(form(key, map)?), layers: BTreeMap::new() };
        for (name, value) in map {
            if let Some(layer) = value.as_object() {
                quantization.layers.insert(name.clone(), form(&format!("{key}.{name}"), layer)?);
            }
        }
        Ok(quantization)
    }

    /// The form of the matrix `name` (without `.weight`), which has scales beside it.
    ///
    /// # Errors
    /// When the configuration says nothing about it.
    pub fn form_of(&self, name: &str) -> Result<QuantizedForm, ModelError> {
        self.layers.get(name).copied().or(self.default).ok_or_else(|| {
            ModelError::damaged(FILE, format!("{name} is quantised, but the key quantization is missing"))
        })
    }
}

fn form(key: &str, map: &Map<String, Value>) -> Result<QuantizedForm, ModelError> {
    let mode = map.get("mode").filter(|mode| !mode.is_null());
    if let Some(mode) = mode.filter(|mode| mode.as_str() != Some("affine")) {
        return Err(ModelError::unsupported(
            FILE,
            format!("{key}.mode is {mode}; this build runs affine group quantisation"),
        ));
    }
    let number = |name: &str, allowed: &[u64]| match map.get(name).and_then(Value::as_u64) {
        Some(value) if allowed.contains(&value) => Ok(value),
        _ => Err(ModelError::unsupported(
            FILE,
            format!("{key}.{name} is {}, expected one of {allowed:?}", map.get(name).unwrap_or(&Value::Null)),
        )),
    };
    let bits = number("bits", &[2, 3, 4, 5, 6, 8])? as u8;
    let group_size = number("group_size", &[32, 64, 128])? as usize;
    Ok(QuantizedForm { bits, group_size })
}
