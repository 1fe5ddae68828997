//! The switch of the local HTTP endpoint.

use std::net::{IpAddr, Ipv4Addr};

use perch_engine::Runtime;
use perch_server::{Server, ServerConfig};

use crate::ipc::types::{AppError, EndpointState};

/// The endpoint, on or off.
#[derive(Default)]
pub(crate) struct Endpoint {
    running: Option<Server>,
    error: Option<AppError>,
}

impl Endpoint {
    /// Starts it, in place of the one that runs. Where that fails it stays off, and says why.
    pub(crate) async fn start(&mut self, runtime: &Runtime, port: u16, token: Result<String, AppError>) {
        self.stop().await;
        let started = match token {
            Ok(token) => {
                let config = ServerConfig { host: IpAddr::V4(Ipv4Addr::LOCALHOST), port, token: Some(token) };
                perch_server::serve(config, runtime.clone()).await.map_err(AppError::from)
            }
            Err(error) => Err(error),
        };
        match started {
            Ok(server) => self.running = Some(server),
            Err(error) => {
                tracing::warn!(message = error.message, "the endpoint could not be switched on");
                self.error = Some(error);
            }
        }
    }

    /// Stops it and lets go of the port.
    pub(crate) async fn stop(&mut self) {
        self.error = None;
        if let Some(server) = self.running.take() {
            server.shutdown().await;
        }
    }

    /// Whether it answers.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// What the page shows, where `port` is the chosen one.
    pub(crate) fn state(&self, port: u16) -> EndpointState {
        EndpointState {
            enabled: self.is_running(),
            port,
            address: self.running.as_ref().map(Server::url),
            error: self.error.clone(),
        }
    }
}
