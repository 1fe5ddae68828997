//! What can go wrong with the library.

use std::path::PathBuf;

use perch_model::{ErrorCode, ModelError, UserError};

/// Why the library cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// What was to be added is no model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A model that has problems, so that it could not be loaded.
    #[error("{name} cannot be run: {reason}")]
    NotRunnable {
        /// The model.
        name: String,
        /// Its first problem.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// No model of that name, and no folder at that path.
    #[error("there is no model called {name:?}{}", known_in_words(known))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The model was not added by hand, so it cannot be taken out of the list.
    #[error("{} is in Perch's own models folder", path.display())]
    InModelsFolder {
        /// The model's folder.
        path: PathBuf,
    },
    /// A path that is no text cannot be kept in a text file.
    #[error("the name of {} is not readable text", path.display())]
    UnreadableName {
        /// The model's folder.
        path: PathBuf,
    },
    /// The library's file was damaged and is kept under another name.
    #[error("the list of models was damaged ({reason}) and starts anew; the old one is kept as {}", kept.display())]
    SetAside {
        /// What is wrong with it.
        reason: String,
        /// Where it is now.
        kept: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl UserError for LibraryError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Model(error) => error.code(),
            Self::NotRunnable { .. } => ErrorCode::Damaged,
            Self::Unknown { .. } => ErrorCode::NotFound,
            Self::InModelsFolder { .. } | Self::UnreadableName { .. } => ErrorCode::InvalidRequest,
            Self::SetAside { .. } => ErrorCode::Storage,
            Self::Io { .. } => ErrorCode::Io,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Model(error) => return error.hint(),
            Self::NotRunnable { hint, .. } => return hint.clone(),
            Self::Unknown { .. } => {
                "Give the name of a model in the library, or the path of its folder.".into()
            }
            Self::InModelsFolder { .. } => {
                "Move the folder somewhere else to take it out of the list.".into()
            }
            Self::UnreadableName { .. } => "Rename the folder, then add it again.".into(),
            Self::SetAside { .. } => "Add your models again; their folders are untouched.".into(),
            Self::Io { .. } => "Check that the place is there and that you may write to it.".into(),
        })
    }
}

fn known_in_words(known: &[String]) -> String {
    if known.is_empty() {
        "; the library is empty".to_owned()
    } else {
        format!("; the library has {}", known.join(", "))
    }
}
