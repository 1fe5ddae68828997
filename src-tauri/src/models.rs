//! The library as the engine's catalog, and as the page shows it.

use std::collections::HashMap;
use std::sync::Arc;

use perch_engine::{Catalog, CatalogEntry};
use perch_library::Library;

use crate::ipc::types::{AppError, ModelState, ModelStatus, tokens};

/// The library as the engine's catalog.
pub(crate) struct Shelf(pub(crate) Arc<Library>);

impl Catalog for Shelf {
    fn models(&self) -> Vec<CatalogEntry> {
        let entries = self.0.list();
        entries.into_iter().map(|entry| CatalogEntry { id: entry.id, path: entry.path }).collect()
    }
}

/// The library's models in its order, with what the engine says about each.
pub(crate) fn statuses(library: &Library, engine: Vec<perch_engine::ModelStatus>) -> Vec<ModelStatus> {
    let mut states: HashMap<String, perch_engine::ModelState> =
        engine.into_iter().map(|status| (status.id, status.state)).collect();
    library
        .list()
        .into_iter()
        .map(|entry| {
            let known = states.remove(&entry.id);
            let state = if entry.missing {
                // One that is in memory still answers.
                known
                    .filter(|state| matches!(state, perch_engine::ModelState::Ready { .. }))
                    .unwrap_or(perch_engine::ModelState::Missing)
            } else {
                known.unwrap_or(perch_engine::ModelState::Unloaded)
            };
            let (reason, context_tokens) = match &state {
                perch_engine::ModelState::Ready { choice, context, .. } => {
                    (Some(choice.reason.clone()), Some(tokens(*context)))
                }
                _ => (None, None),
            };
            ModelStatus {
                name: entry.id.clone(),
                path: entry.path.to_string_lossy().into_owned(),
                state: shown(state),
                reason,
                context_tokens,
                id: entry.id,
            }
        })
        .collect()
}

fn shown(state: perch_engine::ModelState) -> ModelState {
    match state {
        perch_engine::ModelState::Unloaded => ModelState::Unloaded,
        perch_engine::ModelState::Missing => ModelState::Missing,
        perch_engine::ModelState::Loading(progress) => ModelState::Loading { progress },
        perch_engine::ModelState::Ready { memory_bytes, .. } => {
            ModelState::Ready { memory_bytes: memory_bytes as f64 }
        }
        perch_engine::ModelState::Failed(failure) => ModelState::Failed { error: AppError::from(failure) },
    }
}
