//! Conversations on disk.
