//! The endpoint without the app.

use std::path::Path;
use std::sync::Arc;

use perch_engine::{Catalog, CatalogEntry, ErrorCode, Failure, Machine, Runtime};
use perch_library::{Library, data_folder, models_in};
use perch_server::ServerConfig;
use serde_json::json;

use crate::arguments::Serve;
use crate::models::Fixed;
use crate::output::{Output, failure};

pub(crate) async fn serve(options: Serve, output: &mut Output) -> Result<(), Failure> {
    if options.no_auth && !options.host.is_loopback() {
        return Err(failure(
            format!(
                "--no-auth with --host {} would let everybody in the network use the models",
                options.host
            ),
            "Leave --no-auth out, or leave the host at 127.0.0.1.",
        ));
    }
    let catalog: Arc<dyn Catalog> = if options.models.is_empty() {
        Arc::new(OfLibrary(Library::open(&data_folder())?))
    } else {
        Arc::new(Fixed(folders(&options.models)?))
    };
    let names: Vec<String> = catalog.models().into_iter().map(|model| model.id).collect();
    let runtime = Runtime::new(Machine::detect(), options.device.into(), catalog);
    runtime.choice()?;
    let token = match (options.no_auth, options.token) {
        (true, _) => None,
        (false, Some(token)) if token.trim().is_empty() => {
            return Err(failure("the token is empty", "Give another one, or none for a new one."));
        }
        (false, Some(token)) => Some(token),
        (false, None) => Some(perch_server::new_token()?),
    };
    let config = ServerConfig { host: options.host, port: options.port, token: token.clone() };
    let server = perch_server::serve(config, runtime.clone()).await?;
    output.json(&json!({ "address": server.url(), "token": token, "models": names }))?;
    stop_signal().await;
    server.shutdown().await;
    runtime.shutdown().await;
    Ok(())
}

/// The library as a list of models.
struct OfLibrary(Library);

impl Catalog for OfLibrary {
    fn models(&self) -> Vec<CatalogEntry> {
        let entry = |entry: perch_library::Entry| CatalogEntry { id: entry.id, path: entry.path };
        self.0.list().into_iter().map(entry).collect()
    }
}

/// Each folder is a model or holds some.
fn folders(given: &[std::path::PathBuf]) -> Result<Vec<CatalogEntry>, Failure> {
    let mut models: Vec<CatalogEntry> = Vec::new();
    for folder in given {
        let found =
            if folder.join("config.json").is_file() { vec![folder.clone()] } else { models_in(folder) };
        if found.is_empty() {
            return Err(Failure::new(
                ErrorCode::NotFound,
                format!("{} is no model folder and holds none", folder.display()),
                "Give a folder with a config.json, or one whose folders have one.",
            ));
        }
        for path in found {
            let path = std::path::absolute(&path).unwrap_or(path);
            let id = unique(&path, &models);
            models.push(CatalogEntry { id, path });
        }
    }
    Ok(models)
}

fn unique(path: &Path, models: &[CatalogEntry]) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let taken = |id: &String| models.iter().any(|model| model.id == *id);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|id| !taken(id)).unwrap_or(name)
}

/// Waits for Ctrl-C or the system's request to end.
async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    // Without a way to hear of signals there is nothing to wait for but the end of the process.
    drop(tokio::signal::ctrl_c().await);
}
