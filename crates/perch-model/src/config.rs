//! `config.json` with typed access: every complaint names the key and what was expected.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::ModelError;

/// Name of the file.
pub(crate) const FILE: &str = "config.json";

/// A model's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    map: Map<String, Value>,
}

impl Config {
    /// Reads `config.json` in `folder`.
    ///
    /// # Errors
    /// A missing or unreadable file, or one that holds no JSON object.
    pub fn read(folder: &Path) -> Result<Self, ModelError> {
        Self::parse(&read_text(folder, FILE)?)
    }

    /// Reads the text of a `config.json`.
    ///
    /// # Errors
    /// Text that is no JSON object.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(Self { map }),
            Ok(_) => Err(ModelError::damaged(FILE, "it holds no JSON object")),
            Err(error) => Err(ModelError::damaged(FILE, format!("it is not JSON: {error}"))),
        }
    }

    /// All keys.
    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    /// The value of a key; `null` is as good as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// A size that must be there: at least 1 and small enough that products of sizes stay far from overflow.
    pub(crate) fn size(&self, key: &str) -> Result<usize, ModelError> {
        self.optional_size(key)?.ok_or_else(|| ModelError::damaged(FILE, format!("the key {key} is missing")))
    }

    pub(crate) fn size_or(&self, key: &str, default: usize) -> Result<usize, ModelError> {
        Ok(self.optional_size(key)?.unwrap_or(default))
    }

    pub(crate) fn optional_size(&self, key: &str) -> Result<Option<usize>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_u64() {
            Some(size @ 1..=0x0100_0000) => Ok(Some(size as usize)),
            _ => Err(wrong(key, value, "a whole number from 1 to 16777216")),
        }
    }

    pub(crate) fn number_or(&self, key: &str, default: f64) -> Result<f64, ModelError> {
        let Some(value) = self.get(key) else { return Ok(default) };
        value.as_f64().filter(|n| n.is_finite()).ok_or_else(|| wrong(key, value, "a number"))
    }

    pub(crate) fn flag_or(&self, key: &str, default: bool) -> Result<bool, ModelError> {
        let Some(value) = self.get(key) else { return Ok(default) };
        value.as_bool().ok_or_else(|| wrong(key, value, "true or false"))
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<&str>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| wrong(key, value, "a string"))
    }

    /// An object as a configuration of its own.
    pub(crate) fn object(&self, key: &str) -> Result<Option<Config>, ModelError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Config { map: map.clone() })),
            Some(value) => Err(wrong(key, value, "an object")),
        }
    }

    /// Refuses a setting that would change the result and that this build does not know.
    pub(crate) fn only(&self, key: &str, allowed: &Value) -> Result<(), ModelError> {
        match self.get(key) {
            Some(value) if value != allowed => Err(ModelError::unsupported(
                FILE,
                format!("{key} is {value}; this build runs this family with {allowed} only"),
            )),
            _ => Ok(()),
        }
    }

    /// Token ids given as one number or as a list.
    pub(crate) fn tokens(&self, key: &str) -> Result<Vec<u32>, ModelError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        list.iter()
            .map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()))
            .collect::<Option<Vec<u32>>>()
            .ok_or_else(|| wrong(key, value, "a token id or a list of them"))
    }
}

/// Reads a text file of a model folder.
pub(crate) fn read_text(folder: &Path, file: &str) -> Result<String, ModelError> {
    let path = folder.join(file);
    std::fs::read_to_string(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            ModelError::MissingFile { folder: folder.to_owned(), file: file.to_owned() }
        }
        std::io::ErrorKind::InvalidData => ModelError::damaged(file, "it is not UTF-8 text"),
        _ => ModelError::Io { path, source },
    })
}

fn wrong(key: &str, value: &Value, expected: &str) -> ModelError {
    let mut shown = value.to_string();
    if shown.len() > 80 {
        shown = format!("{}…", shown.chars().take(80).collect::<String>());
    }
    ModelError::damaged(FILE, format!("{key} is {shown}, expected {expected}"))
}
