//! The popover as a panel: it takes the keyboard without activating Perch, so that the window in front keeps its
//! place and its title bar, and it appears over full-screen apps.

use tauri::utils::config::WindowEffectsConfig;
use tauri::window::{Effect, EffectState, EffectsBuilder};
use tauri::{AppHandle, WebviewWindow, WebviewWindowBuilder, Wry};
use tauri_nspanel::{CollectionBehavior, ManagerExt, PanelLevel, StyleMask, WebviewWindowExt};

tauri_nspanel::tauri_panel! {
    panel!(PopoverPanel {
        config: {
            can_become_key_window: true,
            is_floating_panel: true
        }
    })
}

/// Builds the window and makes a panel of it.
pub(super) fn build(window: WebviewWindowBuilder<'_, Wry, AppHandle>) -> tauri::Result<()> {
    let window = window
        .decorations(false)
        .transparent(true)
        .skip_taskbar(true)
        .accept_first_mouse(true)
        .effects(material())
        // The page leaves its background to the material.
        .initialization_script("document.documentElement.dataset.material = '';")
        .build()?;
    let panel = window.to_panel::<PopoverPanel<Wry>>()?;
    panel.set_level(PanelLevel::PopUpMenu.value());
    panel.set_hides_on_deactivate(false);
    panel.set_collection_behavior(
        CollectionBehavior::new().can_join_all_spaces().full_screen_auxiliary().value(),
    );
    let style = StyleMask::empty().nonactivating_panel();
    panel.add_style_mask(style.value()).map_err(|error| tauri::Error::Anyhow(error.into()))
}

/// Shows the panel and gives it the keyboard.
pub(super) fn show(window: &WebviewWindow) -> tauri::Result<()> {
    on_main_thread(window, |panel| panel.show_and_make_key())
}

/// Hides the panel.
pub(super) fn hide(window: &WebviewWindow) -> tauri::Result<()> {
    on_main_thread(window, |panel| panel.hide())
}

/// AppKit is called from the main thread only, commands run elsewhere.
fn on_main_thread(
    window: &WebviewWindow,
    work: impl FnOnce(&dyn tauri_nspanel::Panel<Wry>) + Send + 'static,
) -> tauri::Result<()> {
    let app = window.clone();
    window.run_on_main_thread(move || match app.get_webview_panel(super::LABEL) {
        Ok(panel) => work(&*panel),
        Err(error) => tracing::error!(?error, "the popover is no panel"),
    })
}

fn material() -> WindowEffectsConfig {
    EffectsBuilder::new().effect(Effect::Popover).state(EffectState::Active).radius(12.0).build()
}
