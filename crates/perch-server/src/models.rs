//! `GET /v1/models`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use perch_engine::ModelState;
use serde_json::{Value, json};

use crate::App;
use crate::error::ApiError;

/// The models that can be asked for. A model whose folder is gone cannot.
pub(crate) async fn list(State(app): State<App>) -> Json<Value> {
    Json(json!({ "object": "list", "data": available(&app) }))
}

/// `GET /v1/models/MODEL`.
pub(crate) async fn one(State(app): State<App>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    match available(&app).into_iter().find(|model| model["id"] == id) {
        Some(model) => Ok(Json(model)),
        None => Err(ApiError {
            code: Some("model_not_found"),
            param: Some("model".to_owned()),
            ..ApiError::request(StatusCode::NOT_FOUND, format!("there is no model called {id:?}"))
        }),
    }
}

fn available(app: &App) -> Vec<Value> {
    let models = app.runtime.models();
    models
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
        .collect()
}
