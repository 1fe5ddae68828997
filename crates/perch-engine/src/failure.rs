//! Errors as they cross threads and boundaries.

use perch_model::{ErrorCode, UserError};

/// What went wrong: the cause, what happened in the user's words, what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The cause.
    pub code: ErrorCode,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with a remedy.
    pub fn new(code: ErrorCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: Some(hint.into()) }
    }

    /// A defect in Perch.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message, "This is a defect in Perch; please report it.")
    }

    /// The model's thread is gone.
    pub(crate) fn unavailable(id: &str) -> Self {
        Self::new(ErrorCode::Unavailable, format!("{id} is no longer loaded"), "Load the model again.")
    }
}

impl<E: UserError> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { code: error.code(), message: error.to_string(), hint: error.hint() }
    }
}

/// Byte counts as people read them.
pub(crate) fn gigabytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes < 1e8 { format!("{:.0} MB", bytes / 1e6) } else { format!("{:.1} GB", bytes / 1e9) }
}
