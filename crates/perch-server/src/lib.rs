//! The local HTTP endpoint.
