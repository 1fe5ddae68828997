//! The model loop: resident models, scheduling, sampling, streaming.

pub mod request;
