//! Runs models: what the machine can do, which models are resident, the model loop, streaming.
//!
//! One thread a loaded model owns its decoder (`model_loop`). Everyone else holds a [`ModelHandle`] and sends
//! requests over a channel; a [`Generation`] receives what comes of one.

mod failure;
mod generation;
mod handle;
pub mod machine;
mod model_loop;
pub mod options;
pub mod request;
pub mod runtime;
mod text;

pub use failure::Failure;
pub use generation::Generation;
pub use handle::{MOST_STOPS, ModelHandle, ModelInfo};
pub use machine::{Choice, Device, DevicePreference, Machine};
pub use options::SamplingOptions;
pub use perch_model::defaults::GenerationDefaults;
pub use perch_model::template::Conversation;
pub use perch_model::{ErrorCode, Verdict};
pub use perch_nn::sampling::SamplingParams;
pub use request::{Event, FinishReason, Priority, Prompt, Request, Timings, Usage};
pub use runtime::{Catalog, CatalogEntry, ModelState, ModelStatus, Runtime};
