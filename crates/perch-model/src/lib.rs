//! Reads a model from disk; computes nothing.
//!
//! Invariant: bad input gives an error that names the file, the key and what was expected.
//! It never panics and never allocates by a length field that was not checked against the file.

mod bounds;
pub mod checkpoint;
pub mod config;
pub mod defaults;
pub mod error;
pub mod families;
pub mod footprint;
pub mod inspect;
mod mapped;
pub mod model;
pub mod quantization;
pub mod spec;
pub mod template;
pub mod tokenizer;
pub mod weights;

pub use error::{ErrorCode, ModelError, UserError};
pub use inspect::{Verdict, inspect};
pub use model::Model;
pub use spec::DecoderSpec;
