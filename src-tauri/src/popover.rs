//! The one window: made hidden, shown and hidden by [`toggle`], placed by [`geometry`].

mod geometry;
#[cfg(target_os = "macos")]
mod macos;
pub(crate) mod toggle;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use geometry::Area;
use tauri::{
    AppHandle, DragDropEvent, Manager, PhysicalPosition, PhysicalRect, Rect, WebviewUrl, WebviewWindow,
    WebviewWindowBuilder, Window, WindowEvent,
};
use toggle::{Action, Event, Toggle};

/// The window's label.
pub(crate) const LABEL: &str = "popover";

/// Points between the menu bar and the popover.
const GAP: f64 = 6.0;

/// What the window's coming and going depends on.
struct Popover {
    began: Instant,
    toggle: Mutex<Toggle>,
    /// Where the menu-bar icon was when it was last heard of; never on Linux.
    icon: Mutex<Option<Rect>>,
}

/// Makes the window, hidden.
///
/// On macOS it is a panel that hangs under the menu bar. On Linux, where a tray tells neither of clicks nor of
/// its place, it is an ordinary window that stays until it is closed.
pub(crate) fn create(app: &AppHandle) -> tauri::Result<()> {
    app.manage(Popover {
        began: Instant::now(),
        toggle: Mutex::new(Toggle::new(cfg!(target_os = "macos"))),
        icon: Mutex::default(),
    });
    let window = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::default())
        .title("Perch")
        .inner_size(420.0, 640.0)
        .min_inner_size(340.0, 420.0)
        .visible(false);
    #[cfg(not(target_os = "macos"))]
    window.center().build()?;
    #[cfg(target_os = "macos")]
    macos::build(window)?;
    Ok(())
}

/// Remembers where the icon is.
pub(crate) fn icon_at(app: &AppHandle, rect: Rect) {
    *lock(&app.state::<Popover>().icon) = Some(rect);
}

/// Takes in what happened, and shows or hides the window.
pub(crate) fn on(app: &AppHandle, event: Event) {
    let popover = app.state::<Popover>();
    let action = lock(&popover.toggle).on(event, popover.began.elapsed());
    let Some(window) = app.get_webview_window(LABEL) else { return };
    let done = match action {
        Action::Keep => Ok(()),
        Action::Show => place(app, &window).and_then(|()| show(&window)),
        Action::Hide => hide(&window),
    };
    if let Err(error) = done {
        tracing::error!(%error, ?action, "the window did not follow");
    }
}

/// Takes in what the system says about the window.
pub(crate) fn on_window_event(window: &Window, event: &WindowEvent) {
    let event = match event {
        WindowEvent::CloseRequested { api, .. } => {
            // Perch goes on in the menu bar; Quit ends it.
            api.prevent_close();
            Event::Dismiss
        }
        WindowEvent::Focused(false) => Event::Blur,
        WindowEvent::DragDrop(DragDropEvent::Enter { .. }) => Event::DragEnter,
        WindowEvent::DragDrop(DragDropEvent::Drop { .. } | DragDropEvent::Leave) => Event::DragEnd,
        _ => return,
    };
    on(window.app_handle(), event);
}

/// Puts the window under the icon, where it is known where that is.
fn place(app: &AppHandle, window: &WebviewWindow) -> tauri::Result<()> {
    let Some(icon) = *lock(&app.state::<Popover>().icon) else { return Ok(()) };
    let scale = window.scale_factor()?;
    let icon = Area {
        x: icon.position.to_physical::<i32>(scale).x,
        y: icon.position.to_physical::<i32>(scale).y,
        width: icon.size.to_physical::<i32>(scale).width,
        height: icon.size.to_physical::<i32>(scale).height,
    };
    let (x, y) = icon.centre();
    let monitors = window.available_monitors()?;
    let here = monitors.iter().find(|monitor| {
        let (position, size) = (monitor.position(), monitor.size());
        area(PhysicalRect { position: *position, size: *size }).contains(x, y)
    });
    let Some(monitor) = here.cloned().or(window.primary_monitor()?) else { return Ok(()) };
    let size = window.outer_size()?.cast::<i32>();
    let gap = (GAP * monitor.scale_factor()) as i32;
    let (x, y) = geometry::place(icon, area(*monitor.work_area()), size.width, size.height, gap);
    window.set_position(PhysicalPosition { x, y })
}

fn area(rect: PhysicalRect<i32, u32>) -> Area {
    let size = rect.size.cast::<i32>();
    Area { x: rect.position.x, y: rect.position.y, width: size.width, height: size.height }
}

#[cfg(target_os = "macos")]
use macos::{hide, show};

#[cfg(not(target_os = "macos"))]
fn show(window: &WebviewWindow) -> tauri::Result<()> {
    window.show()?;
    window.unminimize()?;
    window.set_focus()
}

#[cfg(not(target_os = "macos"))]
fn hide(window: &WebviewWindow) -> tauri::Result<()> {
    window.hide()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
