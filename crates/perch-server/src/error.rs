//! Errors in OpenAI's shape.

use axum::Json;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use perch_engine::{ErrorCode, Failure};
use serde_json::{Value, json};

/// An error as a client gets it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
}

impl ApiError {
    /// A parameter that is wrong, unknown or cannot be honoured.
    pub(crate) fn parameter(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request_error",
            code: Some("invalid_parameter"),
            param: Some(param.into()),
            message: message.into(),
        }
    }

    /// A request that is wrong as a whole.
    pub(crate) fn request(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, kind: "invalid_request_error", code: None, param: None, message: message.into() }
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self { code: Some("invalid_api_key"), ..Self::request(StatusCode::UNAUTHORIZED, message) }
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self { code: Some("forbidden"), ..Self::request(StatusCode::FORBIDDEN, message) }
    }

    /// The body: `{"error": {…}}`.
    pub(crate) fn body(&self) -> Value {
        json!({ "error": { "message": self.message, "type": self.kind, "param": self.param, "code": self.code } })
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let (status, kind, code) = match failure.code {
            ErrorCode::ContextExceeded => (400, "invalid_request_error", "context_length_exceeded"),
            ErrorCode::InvalidRequest => (400, "invalid_request_error", "invalid_parameter"),
            ErrorCode::Template => (400, "invalid_request_error", "template_error"),
            ErrorCode::NotFound => (404, "invalid_request_error", "model_not_found"),
            ErrorCode::OutOfMemory => (503, "server_error", "out_of_memory"),
            ErrorCode::Unavailable | ErrorCode::Cancelled => (503, "server_error", "unavailable"),
            other => (500, "server_error", other.as_str()),
        };
        let message = match failure.hint {
            Some(hint) => format!("{}. {hint}", failure.message),
            None => failure.message,
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let param = (failure.code == ErrorCode::NotFound).then(|| "model".to_owned());
        Self { status, kind, code: Some(code), param, message }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.body())).into_response()
    }
}

pub(crate) async fn no_such_path(uri: Uri) -> ApiError {
    let message = format!(
        "there is nothing at {}; Perch serves /v1/models, /v1/chat/completions and /health",
        uri.path()
    );
    ApiError::request(StatusCode::NOT_FOUND, message)
}

pub(crate) async fn no_such_method(method: Method, uri: Uri) -> ApiError {
    ApiError::request(StatusCode::METHOD_NOT_ALLOWED, format!("{} does not take {method}", uri.path()))
}
