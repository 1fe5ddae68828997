//! The verdict on a folder or file: what it is, whether it is whole, what it takes. Reads headers only.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::error::{ModelError, UserError};
use crate::families::Family;
use crate::footprint::Footprint;
use crate::model::{folder_of, name_of, tokenizer_config};
use crate::quantization::Quantization;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;
use crate::weights::Float;

/// What a folder holds. Fields that could not be found out are `None`; `problems` says why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The model's folder.
    pub path: PathBuf,
    /// The folder's name.
    pub name: String,
    /// What kind of model it is.
    pub family: Option<String>,
    /// Number of weights.
    pub parameters: u64,
    /// How the weights are stored, in words.
    pub form: Option<String>,
    /// Bits on disk for each weight, scales included.
    pub bits_per_weight: Option<f64>,
    /// Longest context in tokens.
    pub max_context: Option<usize>,
    /// Whether there is a chat template.
    pub has_template: bool,
    /// Whether the template knows tools.
    pub tools: bool,
    /// Whether thinking can be switched on and off.
    pub thinking: bool,
    /// Whether the embedding is also the output projection.
    pub tied_head: Option<bool>,
    /// Bytes of the weight files.
    pub bytes_on_disk: u64,
    /// Memory for one conversation of some lengths.
    pub memory: Vec<MemoryAt>,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
    /// Whether Perch can chat with it.
    pub runnable: bool,
}

/// Memory at one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryAt {
    /// Tokens.
    pub context: usize,
    /// Weights, activations and cache together.
    pub bytes: u64,
}

/// Something wrong with a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file concerned, where there is one.
    pub file: Option<String>,
    /// The cause, by its stable name.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl From<&ModelError> for Problem {
    fn from(error: &ModelError) -> Self {
        Self {
            file: error.file().map(str::to_owned),
            code: error.code().as_str(),
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

/// Looks at the model at `path`: its folder, or a file in it.
///
/// # Errors
/// Only when there is nothing that could be a model at all; a broken model gives a verdict with its problems.
pub fn inspect(path: &Path) -> Result<Verdict, ModelError> {
    let folder = folder_of(path)?;
    let mut problems: Vec<ModelError> = Vec::new();
    let config = match Config::read(&folder) {
        Ok(config) => Some(config),
        Err(error @ ModelError::MissingFile { .. }) => {
            if !looks_like_model(&folder)? {
                let reason = "it has neither config.json nor weight files".to_owned();
                return Err(ModelError::NotAModel { path: folder, reason });
            }
            problems.push(error);
            None
        }
        Err(error) => {
            problems.push(error);
            None
        }
    };
    let mut keep = |error: ModelError| problems.push(error);
    let family = config.as_ref().and_then(|config| Family::of(config).map_err(&mut keep).ok());
    let tokenizer = Tokenizer::open(&folder).map_err(&mut keep).is_ok();
    let spec = match (&config, family) {
        (Some(config), Some(family)) => family.spec(config).map_err(&mut keep).ok(),
        _ => None,
    };
    let quantization = match &config {
        Some(config) => Quantization::from_config(config.map()).map_err(&mut keep).unwrap_or_default(),
        None => Quantization::default(),
    };
    let checkpoint = match Checkpoint::open_lenient(&folder, quantization) {
        Ok((checkpoint, damaged)) => {
            let whole = damaged.is_empty();
            damaged.into_iter().for_each(&mut keep);
            Some((checkpoint, whole))
        }
        Err(error) => {
            keep(error);
            None
        }
    };
    let mut footprint = None;
    if let (Some(spec), Some((checkpoint, true))) = (&spec, &checkpoint) {
        // Tensors are only missed where every file could be read; else the files' own problems say it.
        let missing = checkpoint.verify(spec);
        if missing.is_empty() {
            footprint = Footprint::of(spec, checkpoint).map_err(&mut keep).ok();
        }
        let more = missing.len().saturating_sub(MOST_TENSORS);
        missing.into_iter().take(MOST_TENSORS).for_each(&mut keep);
        if more > 0 {
            keep(ModelError::damaged("config.json", format!("{more} more tensors do not match it")));
        }
    }
    let template = tokenizer_config(&folder)
        .and_then(|config| ChatTemplate::find(&folder, config.as_ref()))
        .map_err(&mut keep)
        .ok()
        .flatten();

    let parameters = checkpoint.as_ref().map_or(0, |(checkpoint, _)| checkpoint.parameters());
    let bytes_on_disk = checkpoint.as_ref().map_or(0, |(checkpoint, _)| checkpoint.bytes_on_disk());
    let form = match (&checkpoint, &spec) {
        (Some((checkpoint, _)), Some(spec)) => Some(form_in_words(checkpoint, &spec.embedding.name)),
        _ => None,
    };
    let memory = match (&footprint, &spec) {
        (Some(footprint), Some(spec)) => {
            let mut contexts: Vec<usize> =
                [4096, 32_768].into_iter().filter(|context| *context < spec.max_context).collect();
            contexts.push(spec.max_context);
            contexts
                .into_iter()
                .map(|context| MemoryAt { context, bytes: footprint.total(context) })
                .collect()
        }
        _ => Vec::new(),
    };
    Ok(Verdict {
        name: name_of(&folder),
        path: folder,
        family: family.map(|family| family.name.to_owned()),
        parameters,
        form,
        bits_per_weight: (parameters > 0).then(|| bytes_on_disk as f64 * 8.0 / parameters as f64),
        max_context: spec.as_ref().map(|spec| spec.max_context),
        has_template: template.is_some(),
        tools: template.as_ref().is_some_and(ChatTemplate::knows_tools),
        thinking: template.as_ref().is_some_and(ChatTemplate::knows_thinking),
        tied_head: spec.as_ref().map(|spec| spec.head.is_none()),
        bytes_on_disk,
        memory,
        runnable: problems.is_empty() && tokenizer && footprint.is_some(),
        problems: problems.iter().map(Problem::from).collect(),
    })
}

/// Misshapen tensors that are listed one by one; a wrong `config.json` misses all of them.
const MOST_TENSORS: usize = 5;

fn looks_like_model(folder: &Path) -> Result<bool, ModelError> {
    let io = |source| ModelError::Io { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with('.') && (name.ends_with(".safetensors") || name == "tokenizer.json") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn form_in_words(checkpoint: &Checkpoint, embedding: &str) -> String {
    let quantization = checkpoint.quantization();
    match quantization.default {
        Some(form) if quantization.layers.values().any(|layer| layer != &form) => {
            format!("mixed bits around {}, affine groups", form.bits)
        }
        Some(form) => format!("{}-bit affine, groups of {}", form.bits, form.group_size),
        None => match checkpoint.dense_float(&format!("{embedding}.weight")) {
            Some(Float::F32) => "f32",
            Some(Float::F16) => "f16",
            Some(Float::Bf16) => "bf16",
            None => "unknown",
        }
        .to_owned(),
    }
}
