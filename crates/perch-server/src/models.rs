//! `GET /v1/models`.

use axum::Json;
use axum::extract::State;
use perch_engine::ModelState;
use serde_json::{Value, json};

use crate::App;

/// The models that can be asked for. A model whose folder is gone cannot.
pub(crate) async fn list(State(app): State<App>) -> Json<Value> {
    let models = app.runtime.models();
    let data: Vec<Value> = models
        .into_iter()
        .filter(|model| model.state != ModelState::Missing)
        .map(|model| {
            let loaded = matches!(model.state, ModelState::Ready { .. });
            // The time is that of the file, as far as there is one.
            let created = std::fs::metadata(model.path.join("config.json"))
                .and_then(|metadata| metadata.modified())
                .ok()
                .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
                .map_or(0, |time| time.as_secs());
            json!({ "id": model.id, "object": "model", "created": created, "owned_by": "perch", "loaded": loaded })
        })
        .collect();
    Json(json!({ "object": "list", "data": data }))
}
