//! The icon in the menu bar.

use tauri::AppHandle;
use tauri::image::Image;
use tauri::menu::{Menu, MenuEvent, MenuItem, PredefinedMenuItem};
use tauri::tray::{MouseButton, MouseButtonState, TrayIconBuilder, TrayIconEvent};
use tauri_specta::Event as _;

use crate::ipc::{Page, PageRequested};
use crate::popover::{self, toggle::Event};

/// The icon's id.
const ID: &str = "perch";

/// Puts the icon into the menu bar. A left click toggles the popover; on Linux, where a tray tells of no clicks,
/// any click opens the menu.
pub(crate) fn create(app: &AppHandle) -> tauri::Result<()> {
    let item = |id: &str, text: &str| MenuItem::with_id(app, id, text, true, None::<&str>);
    let menu = Menu::with_items(
        app,
        &[
            &item("open", "Open Perch")?,
            &item("new-chat", "New Chat")?,
            &PredefinedMenuItem::separator(app)?,
            &item("settings", "Settings…")?,
            &PredefinedMenuItem::separator(app)?,
            &item("quit", "Quit Perch")?,
        ],
    )?;
    TrayIconBuilder::with_id(ID)
        .icon(icon()?)
        .icon_as_template(true)
        .tooltip("Perch")
        .menu(&menu)
        .show_menu_on_left_click(false)
        .on_menu_event(on_menu)
        .on_tray_icon_event(|tray, event| on_click(tray.app_handle(), &event))
        .build(app)?;
    Ok(())
}

/// Tells the popover where the icon is before anyone has clicked it.
pub(crate) fn tell_place(app: &AppHandle) {
    if let Some(tray) = app.tray_by_id(ID)
        && let Ok(Some(rect)) = tray.rect()
    {
        popover::icon_at(app, rect);
    }
}

/// Alpha only: the menu bar gives the colour. On Linux nothing does, so the app's own icon serves there.
fn icon() -> tauri::Result<Image<'static>> {
    if cfg!(target_os = "macos") {
        Image::from_bytes(include_bytes!("../../icons/tray@2x.png"))
    } else {
        Image::from_bytes(include_bytes!("../../icons/32x32.png"))
    }
}

fn on_menu(app: &AppHandle, event: MenuEvent) {
    let page = match event.id().as_ref() {
        "open" => None,
        "new-chat" => Some(Page::NewChat),
        "settings" => Some(Page::Settings),
        "quit" => return app.exit(0),
        other => return tracing::error!(item = other, "an unknown menu item"),
    };
    popover::on(app, Event::Summon);
    if let Some(page) = page
        && let Err(error) = PageRequested(page).emit(app)
    {
        tracing::error!(%error, "the page could not be asked for");
    }
}

fn on_click(app: &AppHandle, event: &TrayIconEvent) {
    let TrayIconEvent::Click { button: MouseButton::Left, button_state, rect, .. } = event else { return };
    popover::icon_at(app, *rect);
    popover::on(
        app,
        match button_state {
            MouseButtonState::Down => Event::Down,
            MouseButtonState::Up => Event::Up,
        },
    );
}
