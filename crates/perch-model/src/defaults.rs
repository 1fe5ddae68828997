//! What a model's makers recommend for generation.

use std::path::Path;

use crate::config::{Config, read_text};
use crate::error::ModelError;
use crate::tokenizer::Tokenizer;

const FILE: &str = "generation_config.json";

/// Recommended settings; `None` where the model says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerationDefaults {
    /// Sampling temperature; 0 where the model asks for greedy decoding.
    pub temperature: Option<f32>,
    /// Number of most likely tokens that are kept.
    pub top_k: Option<usize>,
    /// Probability mass that is kept.
    pub top_p: Option<f32>,
    /// Least probability relative to the most likely token.
    pub min_p: Option<f32>,
    /// Penalty on tokens that were seen.
    pub repetition_penalty: Option<f32>,
    /// Tokens that end a reply.
    pub end_tokens: Vec<u32>,
}

impl GenerationDefaults {
    /// Reads `generation_config.json` where there is one; end tokens also from the configuration and from the
    /// tokenizer's own end token (`eos_token` of `tokenizer_config.json`), since files often name only some.
    ///
    /// # Errors
    /// A file that is there but is damaged.
    pub fn read(
        folder: &Path,
        config: &Config,
        tokenizer: Option<&Tokenizer>,
        eos_token: Option<&str>,
    ) -> Result<Self, ModelError> {
        let generation = match read_text(folder, FILE) {
            Ok(text) => Some(Config::parse(&text).map_err(|error| in_file(&error))?),
            Err(ModelError::MissingFile { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut defaults = Self::default();
        if let Some(generation) = &generation {
            defaults.read_settings(generation).map_err(|error| in_file(&error))?;
        }
        let mut end_tokens = match &generation {
            Some(generation) => generation.tokens("eos_token_id").map_err(|error| in_file(&error))?,
            None => Vec::new(),
        };
        end_tokens.extend(config.tokens("eos_token_id")?);
        end_tokens.extend(eos_token.zip(tokenizer).and_then(|(token, tokenizer)| tokenizer.id(token)));
        end_tokens.sort_unstable();
        end_tokens.dedup();
        defaults.end_tokens = end_tokens;
        Ok(defaults)
    }

    fn read_settings(&mut self, generation: &Config) -> Result<(), ModelError> {
        let number = |key: &str| -> Result<Option<f32>, ModelError> {
            generation.get(key).map(|_| generation.number_or(key, 0.0).map(|n| n as f32)).transpose()
        };
        let sample =
            generation.get("do_sample").map(|_| generation.flag_or("do_sample", false)).transpose()?;
        self.temperature = if sample == Some(false) { Some(0.0) } else { number("temperature")? };
        self.top_p = number("top_p")?;
        self.min_p = number("min_p")?;
        self.repetition_penalty = number("repetition_penalty")?;
        self.top_k = number("top_k")?.map(|k| k.max(0.0) as usize);
        Ok(())
    }
}

/// The reader speaks of `config.json`; this says which file it really was.
fn in_file(error: &ModelError) -> ModelError {
    match error {
        ModelError::Damaged { reason, .. } => ModelError::damaged(FILE, reason.clone()),
        other => ModelError::damaged(FILE, other.to_string()),
    }
}
