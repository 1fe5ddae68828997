//! The typed commands and events between the shell and the page.
//!
//! `ui/src/ipc/bindings.ts` is made from them; the test below says when it is stale.

mod commands;
pub(crate) mod types;

use serde::Serialize;
use specta::Type;
use specta_typescript::semantic;
use tauri_specta::{Builder, Event, collect_commands, collect_events};

/// The state has changed; this is all of it.
#[derive(Debug, Clone, Serialize, Type, Event)]
pub(crate) struct StateChanged(pub(crate) types::AppState);

/// The tray's menu asks for a page.
#[derive(Debug, Clone, Copy, Serialize, Type, Event)]
pub(crate) struct PageRequested(pub(crate) Page);

/// A page that the tray's menu can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Page {
    /// An empty conversation.
    NewChat,
    /// The settings.
    Settings,
}

/// All commands and events: what the app serves is what the bindings say.
pub(crate) fn ipc_builder() -> Builder<tauri::Wry> {
    Builder::new()
        // Everything but the arguments of commands goes one way only: to the page.
        .disable_serde_phases()
        // Without this every fraction may be `null`, which is how JSON writes what is no number; none of ours is.
        .semantic_types(semantic::Configuration::empty().enable_lossless_floats())
        .commands(collect_commands![
            commands::app_state,
            commands::send_message,
            commands::watch_reply,
            commands::stop_reply,
            commands::get_conversation,
            commands::rename_conversation,
            commands::delete_conversation,
            commands::inspect_path,
            commands::add_model,
            commands::remove_model,
            commands::select_model,
            commands::load_model,
            commands::unload_model,
            commands::set_endpoint,
            commands::endpoint_token,
            commands::renew_endpoint_token,
            commands::open_url,
            commands::hide_window,
            commands::quit,
        ])
        .events(collect_events![StateChanged, PageRequested])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_bindings_are_fresh() {
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../ui/src/ipc/bindings.ts");
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("bindings.ts");
        ipc_builder().export(specta_typescript::Typescript::default(), &made).unwrap();
        let made = fs::read_to_string(made).unwrap();
        if std::env::var_os("UPDATE_BINDINGS").is_some() {
            fs::write(kept, &made).unwrap();
        }
        let kept = fs::read_to_string(kept).unwrap_or_default();
        assert!(
            kept == made,
            "ui/src/ipc/bindings.ts is stale; run UPDATE_BINDINGS=1 cargo test -p perch-app bindings"
        );
    }
}
