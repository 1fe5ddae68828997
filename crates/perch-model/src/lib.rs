//! Reads a model from disk; computes nothing.
//!
//! Invariant: bad input gives an error that names the file, the key and what was expected.
//! It never panics and never allocates by a length field that was not checked against the file.

pub mod error;
pub mod spec;
pub mod template;
pub mod weights;

pub use error::{ErrorCode, UserError};
pub use spec::DecoderSpec;
