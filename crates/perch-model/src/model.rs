//! A model folder, opened: everything but the weights' bytes is read.

use std::path::{Path, PathBuf};

use crate::checkpoint::Checkpoint;
use crate::config::{Config, read_text};
use crate::defaults::GenerationDefaults;
use crate::error::ModelError;
use crate::families::Family;
use crate::footprint::Footprint;
use crate::quantization::Quantization;
use crate::spec::DecoderSpec;
use crate::template::{ChatTemplate, SpecialTokens};
use crate::tokenizer::Tokenizer;

/// A model on disk.
#[derive(Debug)]
pub struct Model {
    /// Its folder.
    pub path: PathBuf,
    /// The folder's name.
    pub name: String,
    /// What kind it is.
    pub family: &'static Family,
    /// What its decoder does.
    pub spec: DecoderSpec,
    /// Its weights.
    pub checkpoint: Checkpoint,
    /// Its tokenizer; `None` when there is no `tokenizer.json`, which is enough for measurements on token ids.
    pub tokenizer: Option<Tokenizer>,
    /// Its chat template.
    pub template: Option<ChatTemplate>,
    /// What its makers recommend.
    pub defaults: GenerationDefaults,
    /// What it takes in memory.
    pub footprint: Footprint,
}

impl Model {
    /// Opens the model at `path`: its folder, or a file in it. Reads headers, not weights.
    ///
    /// # Errors
    /// The first thing that is missing, damaged or not supported.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let folder = folder_of(path)?;
        let config = Config::read(&folder)?;
        let family = Family::of(&config)?;
        let spec = family.spec(&config)?;
        let checkpoint = Checkpoint::open(&folder, Quantization::from_config(config.map())?)?;
        if let Some(problem) = checkpoint.verify(&spec).into_iter().next() {
            return Err(problem);
        }
        let footprint = Footprint::of(&spec, &checkpoint)?;
        let tokenizer = match Tokenizer::open(&folder) {
            Ok(tokenizer) => Some(tokenizer),
            Err(ModelError::MissingFile { .. }) => None,
            Err(error) => return Err(error),
        };
        let tokenizer_config = tokenizer_config(&folder)?;
        let special = tokenizer_config.as_ref().map(SpecialTokens::from_config).unwrap_or_default();
        let template = ChatTemplate::find(&folder, tokenizer_config.as_ref())?;
        let defaults =
            GenerationDefaults::read(&folder, &config, tokenizer.as_ref(), special.eos_token.as_deref())?;
        let name = name_of(&folder);
        Ok(Self { path: folder, name, family, spec, checkpoint, tokenizer, template, defaults, footprint })
    }
}

/// The folder that `path` means: itself, or the one that holds it.
pub(crate) fn folder_of(path: &Path) -> Result<PathBuf, ModelError> {
    let io = |source| ModelError::Io { path: path.to_owned(), source };
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(ModelError::NotFound { path: path.to_owned() });
        }
        Err(error) => return Err(io(error)),
    };
    let path = std::path::absolute(path).map_err(io)?;
    if metadata.is_dir() {
        return Ok(path);
    }
    match path.parent() {
        Some(folder) => Ok(folder.to_owned()),
        None => Err(ModelError::NotAModel { path, reason: "it is a file without a folder".to_owned() }),
    }
}

/// A model is called what its folder is called.
pub(crate) fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}

/// `tokenizer_config.json`, where there is one.
pub(crate) fn tokenizer_config(folder: &Path) -> Result<Option<Config>, ModelError> {
    const FILE: &str = "tokenizer_config.json";
    match read_text(folder, FILE) {
        Ok(text) => {
            Config::parse(&text).map(Some).map_err(|_| ModelError::damaged(FILE, "it holds no JSON object"))
        }
        Err(ModelError::MissingFile { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
