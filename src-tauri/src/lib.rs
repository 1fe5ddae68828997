//! The shell of Perch: menu-bar icon, popover, typed commands, keychain, settings.
//!
//! It is thin. `perch` is everything the commands call, without a window; `ipc` is what crosses to the page;
//! `replies` takes a reply from the engine to the database and the page; `popover` and `tray` are the desktop.

mod endpoint;
mod ipc;
mod models;
mod perch;
mod popover;
mod replies;
mod secrets;
mod settings;
mod tray;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use perch::Perch;
use popover::toggle::Event;
use tauri::{AppHandle, Manager, RunEvent};
use tauri_specta::Event as _;

/// How long quitting waits for replies to be kept and models to be let go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs Perch until it quits.
pub fn run() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    let ipc = ipc::ipc_builder();
    let built = tauri::Builder::default()
        // First, so that a second start does nothing else before it hands over to the first.
        .plugin(tauri_plugin_single_instance::init(|app, _arguments, _folder| {
            popover::on(app, Event::Summon);
        }))
        .plugin(tauri_plugin_opener::init())
        // Programs are started through this plugin, from Rust alone: no capability lets the page use it.
        .plugin(tauri_plugin_shell::init())
        .invoke_handler(ipc.invoke_handler())
        .on_window_event(popover::on_window_event)
        .setup(move |app| {
            ipc.mount_events(app);
            if let Err(error) = set_up(app.handle()) {
                tracing::error!(%error, "Perch cannot start");
                // Handed back, the error would become a panic; nothing has begun yet that needs an end.
                std::process::exit(1);
            }
            Ok(())
        });
    #[cfg(target_os = "macos")]
    let built = built.plugin(tauri_nspanel::init());
    match built.build(tauri::generate_context!()) {
        Ok(app) => ExitCode::from(u8::try_from(app.run_return(on_run_event)).unwrap_or(1)),
        Err(error) => {
            tracing::error!(%error, "Perch cannot start");
            ExitCode::FAILURE
        }
    }
}

fn set_up(app: &AppHandle) -> Result<(), Box<dyn std::error::Error>> {
    #[cfg(target_os = "macos")]
    app.set_activation_policy(tauri::ActivationPolicy::Accessory)?;
    let folder = perch_library::data_folder();
    tracing::info!(folder = %folder.display(), "Perch keeps its things here");
    let perch = Perch::open(&folder, secrets::store()).map_err(|error| {
        let hint = error.hint.map(|hint| format!(" {hint}")).unwrap_or_default();
        format!("{}.{hint}", error.message)
    })?;
    app.manage(perch.clone());
    popover::create(app)?;
    match tray::create(app) {
        Ok(()) => tray::tell_place(app),
        Err(error) => {
            tracing::error!(%error, "there is no menu-bar icon; start Perch again to open its window")
        }
    }
    let handle = app.clone();
    tauri::async_runtime::spawn(perch.clone().follow(move |state| {
        if let Err(error) = ipc::StateChanged(state).emit(&handle) {
            tracing::error!(%error, "the page could not be told");
        }
    }));
    tauri::async_runtime::spawn(async move { perch.resume().await });
    // Whoever starts Perch wants to see it.
    popover::on(app, Event::Summon);
    Ok(())
}

fn on_run_event(app: &AppHandle, event: RunEvent) {
    match event {
        #[cfg(target_os = "macos")]
        RunEvent::Reopen { .. } => popover::on(app, Event::Summon),
        RunEvent::Exit => {
            let perch = app.state::<Arc<Perch>>().inner().clone();
            let in_time = tauri::async_runtime::block_on(async {
                // The timer needs the runtime around it when it is made.
                tokio::time::timeout(PATIENCE, perch.shut_down()).await
            });
            if in_time.is_err() {
                tracing::warn!("some replies or models did not end in time");
            }
        }
        _ => {}
    }
}
