//! The local HTTP endpoint: OpenAI's chat API over the models of a [`Runtime`].
//!
//! Off until somebody calls [`serve`]. Every request goes through [`access`] first; a dialect is a translation to
//! and from the engine's request and events.

mod access;
mod chat;
mod error;
mod models;
mod parameters;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use perch_engine::{ErrorCode, Failure, Runtime};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use access::new_token;

/// The port unless another is asked for.
pub const DEFAULT_PORT: u16 = 11711;

/// Bytes of the largest request body: room for a long context many times over.
const MOST_BYTES: usize = 16 << 20;

/// How long connections may take to end.
const LONGEST_GOODBYE: Duration = Duration::from_secs(2);

/// Where to serve, and for whom.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The address to bind.
    pub host: IpAddr,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// What clients must show; `None` lets every program of this machine in, and is refused on other addresses.
    pub token: Option<String>,
}

/// A running endpoint. Dropping it stops it too, without waiting.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    closing: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a base for requests.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops taking requests, ends streams and waits for both.
    pub async fn shutdown(mut self) {
        self.closing.send_replace(true);
        match tokio::time::timeout(LONGEST_GOODBYE, &mut self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the endpoint did not end in order"),
            // The port is free already; only that client's own connection is left.
            Err(_) => tracing::warn!("a client holds on to a request that it has not sent to its end"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

/// What handlers share.
#[derive(Clone)]
struct App {
    runtime: Runtime,
    token: Option<Arc<str>>,
    host: IpAddr,
    closing: watch::Receiver<bool>,
}

/// Starts the endpoint and returns when it listens.
///
/// # Errors
/// A port that is taken, an address that is not this machine's, or one that others reach without a token.
pub async fn serve(config: ServerConfig, runtime: Runtime) -> Result<Server, Failure> {
    if config.token.is_none() && !config.host.is_loopback() {
        return Err(Failure::new(
            ErrorCode::InvalidRequest,
            format!("without a token, everybody who reaches {} could use the models", config.host),
            "Keep the token, or listen on 127.0.0.1.",
        ));
    }
    let wanted = SocketAddr::new(config.host, config.port);
    let listener = TcpListener::bind(wanted).await.map_err(|error| bind_failure(wanted, &error))?;
    let address = listener.local_addr().map_err(|error| bind_failure(wanted, &error))?;
    let (closing, mut closed) = watch::channel(false);
    let app =
        App { runtime, token: config.token.map(Into::into), host: config.host, closing: closed.clone() };
    let router = router(app);
    let task = tokio::spawn(async move {
        let closed = async move {
            // The sender going away means closing, too.
            drop(closed.wait_for(|closing| *closing).await);
        };
        if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(closed).await {
            tracing::error!(%error, "the endpoint broke off");
        }
    });
    tracing::info!(%address, "the endpoint is on");
    Ok(Server { address, closing, task })
}

fn router(app: App) -> Router {
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1/chat/completions", post(chat::completions))
        .route("/health", get(|| async { Json(json!({ "status": "ok" })) }))
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(middleware::from_fn_with_state(app.clone(), access::check))
        .layer(middleware::from_fn_with_state(app.clone(), access::share_with_pages))
        .with_state(app)
}

fn bind_failure(address: SocketAddr, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::AddrInUse {
        return Failure::new(
            ErrorCode::PortInUse,
            format!("port {} is used by another program", address.port()),
            "Choose another port, or close the program that uses this one.",
        );
    }
    Failure::new(
        ErrorCode::Io,
        format!("{address} cannot be listened on: {error}"),
        "Choose another address or port.",
    )
}

#[cfg(test)]
mod tests;
