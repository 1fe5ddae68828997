//! What a person or a client is told when something goes wrong.

use std::path::PathBuf;

/// The closed set of causes that a user interface or a client can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Nothing at that path.
    NotFound,
    /// The path is there but is no model.
    NotAModel,
    /// A file of the model is missing.
    MissingFile,
    /// A file of the model is cut short, contradicts itself or cannot be read as what it should be.
    Damaged,
    /// A model family or a form of weights that this build does not run.
    Unsupported,
    /// The chat template failed or ran out of its bounds.
    Template,
    /// The request does not fit into the model's context.
    ContextExceeded,
    /// The model does not fit into memory.
    OutOfMemory,
    /// The request asks for something that is not possible or not known.
    InvalidRequest,
    /// The model is not loaded, or went away while it was needed.
    Unavailable,
    /// The person or the client stopped it.
    Cancelled,
    /// The address is taken by another program.
    PortInUse,
    /// Another copy of Perch is already running.
    AlreadyRunning,
    /// A file could not be read or written.
    Io,
    /// The keychain or the database refused.
    Storage,
    /// A defect in Perch.
    Internal,
}

impl ErrorCode {
    /// The name that crosses the boundary, stable between releases.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::NotFound => "not_found",
            ErrorCode::NotAModel => "not_a_model",
            ErrorCode::MissingFile => "missing_file",
            ErrorCode::Damaged => "damaged",
            ErrorCode::Unsupported => "unsupported",
            ErrorCode::Template => "template",
            ErrorCode::ContextExceeded => "context_exceeded",
            ErrorCode::OutOfMemory => "out_of_memory",
            ErrorCode::InvalidRequest => "invalid_request",
            ErrorCode::Unavailable => "unavailable",
            ErrorCode::Cancelled => "cancelled",
            ErrorCode::PortInUse => "port_in_use",
            ErrorCode::AlreadyRunning => "already_running",
            ErrorCode::Io => "io",
            ErrorCode::Storage => "storage",
            ErrorCode::Internal => "internal",
        }
    }
}

/// An error that can be shown: `Display` is the message, and this says the cause and the remedy.
pub trait UserError: std::error::Error {
    /// The cause.
    fn code(&self) -> ErrorCode;
    /// What to do about it, as a sentence, where there is something to do.
    fn hint(&self) -> Option<String>;
}

/// Why a model cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Nothing at that path.
    #[error("there is nothing at {}", path.display())]
    NotFound {
        /// Where Perch looked.
        path: PathBuf,
    },
    /// The path is there but is no model.
    #[error("{} is not a model: {reason}", path.display())]
    NotAModel {
        /// Where Perch looked.
        path: PathBuf,
        /// What it found instead.
        reason: String,
    },
    /// A file of the model is missing.
    #[error("{file} is missing from {}", folder.display())]
    MissingFile {
        /// The model's folder.
        folder: PathBuf,
        /// The file's name.
        file: String,
    },
    /// A file of the model is cut short or contradicts itself.
    #[error("{file} is damaged: {reason}")]
    Damaged {
        /// The file's name.
        file: String,
        /// What is wrong, with what was expected.
        reason: String,
    },
    /// This build does not run it.
    #[error("{file}: {reason}")]
    Unsupported {
        /// The file's name.
        file: String,
        /// What is not supported, and what is.
        reason: String,
    },
    /// The chat template failed.
    #[error("the model's chat template failed: {reason}")]
    Template {
        /// What the template engine said.
        reason: String,
        /// The exact message, where the template itself raised it.
        raised: Option<String>,
    },
    /// Text could not be turned into tokens, or tokens into text.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),
    /// A file could not be read.
    #[error("{} could not be read: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl ModelError {
    pub(crate) fn damaged(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Damaged { file: file.into(), reason: reason.into() }
    }

    pub(crate) fn unsupported(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unsupported { file: file.into(), reason: reason.into() }
    }

    /// The file's name that the error is about, where it is about one.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::MissingFile { file, .. } | Self::Damaged { file, .. } | Self::Unsupported { file, .. } => {
                Some(file)
            }
            _ => None,
        }
    }
}

impl UserError for ModelError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::NotAModel { .. } => ErrorCode::NotAModel,
            Self::MissingFile { .. } => ErrorCode::MissingFile,
            Self::Damaged { .. } => ErrorCode::Damaged,
            Self::Unsupported { .. } => ErrorCode::Unsupported,
            Self::Template { .. } => ErrorCode::Template,
            Self::Tokenizer(_) => ErrorCode::Damaged,
            Self::Io { .. } => ErrorCode::Io,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotFound { .. } => "Check the path; an external disk may have been disconnected.",
            Self::NotAModel { .. } => {
                "Choose the folder that holds config.json and the .safetensors files, or one of those files."
            }
            Self::MissingFile { .. } => "Download the model again, or copy the missing file into the folder.",
            Self::Damaged { .. } => "Download that file again; a download may have been cut short.",
            Self::Unsupported { .. } => "Choose another model, or the same one in a supported form.",
            Self::Template { raised: Some(_), .. } => {
                "The template refuses this conversation; change the messages."
            }
            Self::Template { raised: None, .. } => {
                "Use a newer copy of the model, or one with another chat template."
            }
            Self::Tokenizer(_) => "Download tokenizer.json again.",
            Self::Io { .. } => "Check that the file can be read by you and that its disk is connected.",
        };
        Some(hint.to_owned())
    }
}
