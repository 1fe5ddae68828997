//! The decoder, written once over a [`Backend`].

pub mod backend;
pub mod decoder;
pub mod model;
pub mod sampling;

pub use backend::Backend;
pub use decoder::{Decoder, LoadError};
pub use model::Model;

/// Why a backend could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The weights cannot be run by this backend.
    #[error("{tensor}: {reason}")]
    Unsupported {
        /// Which tensor or operation.
        tensor: String,
        /// Why not.
        reason: String,
    },
    /// A token id lies outside the vocabulary.
    #[error("token {token} is outside the vocabulary of {vocab_size}")]
    UnknownToken {
        /// The id.
        token: u32,
        /// Number of ids.
        vocab_size: usize,
    },
    /// A sequence that was never opened or is closed.
    #[error("sequence {0} is not open")]
    UnknownSequence(u64),
    /// A part of a step without tokens.
    #[error("sequence {0} was given no tokens")]
    EmptySpan(u64),
    /// The numbers are no longer finite, so nothing sensible can be chosen.
    #[error("the model computed values that are not numbers; its weights are damaged")]
    NotFinite,
    /// The device failed.
    #[error("{0}")]
    Device(String),
}
