//! The commands: each is one call and one conversion.
//!
//! Those that wait, or that read more than the database, are async, so that the window's thread goes on drawing.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use perch_model::ErrorCode;
use tauri::ipc::Channel;
use tauri::{AppHandle, State};
use tauri_plugin_opener::OpenerExt;

use super::types::{AppError, AppState, Conversation, EndpointState, ReplyEvent, SentMessage, Verdict};
use crate::perch::Perch;
use crate::popover::{self, toggle};

type Answer<T> = Result<T, AppError>;

#[tauri::command]
#[specta::specta]
pub(crate) fn app_state(perch: State<'_, Arc<Perch>>) -> Answer<AppState> {
    perch.state()
}

#[tauri::command]
#[specta::specta]
pub(crate) fn send_message(
    perch: State<'_, Arc<Perch>>,
    conversation: Option<String>,
    text: String,
) -> Answer<SentMessage> {
    perch.send(conversation.map(|id| parse(&id)).transpose()?, &text)
}

#[tauri::command]
#[specta::specta]
pub(crate) fn watch_reply(
    perch: State<'_, Arc<Perch>>,
    reply: String,
    on_event: Channel<ReplyEvent>,
) -> Answer<()> {
    perch.watch(parse(&reply)?, on_event)
}

#[tauri::command]
#[specta::specta]
pub(crate) fn stop_reply(perch: State<'_, Arc<Perch>>, reply: String) -> Answer<()> {
    perch.stop(parse(&reply)?);
    Ok(())
}

#[tauri::command]
#[specta::specta]
pub(crate) fn get_conversation(perch: State<'_, Arc<Perch>>, id: String) -> Answer<Conversation> {
    Ok(perch.chats()?.get(parse(&id)?)?.into())
}

#[tauri::command]
#[specta::specta]
pub(crate) fn rename_conversation(perch: State<'_, Arc<Perch>>, id: String, title: String) -> Answer<()> {
    perch.rename(parse(&id)?, &title)
}

#[tauri::command]
#[specta::specta]
pub(crate) async fn delete_conversation(perch: State<'_, Arc<Perch>>, id: String) -> Answer<()> {
    perch.delete(parse(&id)?).await
}

#[tauri::command(async)]
#[specta::specta]
pub(crate) fn inspect_path(perch: State<'_, Arc<Perch>>, path: String) -> Answer<Verdict> {
    perch.inspect(Path::new(&path))
}

#[tauri::command(async)]
#[specta::specta]
pub(crate) fn add_model(perch: State<'_, Arc<Perch>>, path: String) -> Answer<String> {
    perch.add_model(Path::new(&path))
}

#[tauri::command]
#[specta::specta]
pub(crate) async fn remove_model(perch: State<'_, Arc<Perch>>, id: String) -> Answer<()> {
    perch.remove_model(&id).await
}

#[tauri::command]
#[specta::specta]
pub(crate) fn select_model(perch: State<'_, Arc<Perch>>, id: String) -> Answer<()> {
    perch.select_model(&id)
}

#[tauri::command]
#[specta::specta]
pub(crate) async fn load_model(perch: State<'_, Arc<Perch>>, id: String) -> Answer<()> {
    perch.load_model(&id).await
}

#[tauri::command]
#[specta::specta]
pub(crate) async fn unload_model(perch: State<'_, Arc<Perch>>, id: String) -> Answer<()> {
    perch.unload_model(&id).await;
    Ok(())
}

#[tauri::command]
#[specta::specta]
pub(crate) async fn set_endpoint(
    perch: State<'_, Arc<Perch>>,
    enabled: bool,
    port: u16,
) -> Answer<EndpointState> {
    perch.set_endpoint(enabled, port).await
}

#[tauri::command]
#[specta::specta]
pub(crate) async fn endpoint_token(perch: State<'_, Arc<Perch>>) -> Answer<String> {
    perch.endpoint_token().await
}

#[tauri::command]
#[specta::specta]
pub(crate) async fn renew_endpoint_token(perch: State<'_, Arc<Perch>>) -> Answer<String> {
    perch.renew_endpoint_token().await
}

#[tauri::command]
#[specta::specta]
pub(crate) fn open_url(app: AppHandle, url: String) -> Answer<()> {
    if !is_web_address(&url) {
        let message = format!("{url} is no web address");
        return Err(AppError::new(ErrorCode::InvalidRequest, message, None));
    }
    app.opener()
        .open_url(&url, None::<&str>)
        .map_err(|error| AppError::new(ErrorCode::Io, format!("no browser could be opened: {error}"), None))
}

#[tauri::command]
#[specta::specta]
pub(crate) fn hide_window(app: AppHandle) -> Answer<()> {
    popover::on(&app, toggle::Event::Dismiss);
    Ok(())
}

#[tauri::command]
#[specta::specta]
pub(crate) fn quit(app: AppHandle) -> Answer<()> {
    app.exit(0);
    Ok(())
}

fn parse<T: FromStr>(id: &str) -> Answer<T> {
    id.parse().map_err(|_| {
        AppError::new(ErrorCode::InvalidRequest, format!("{id:?} is no id that Perch has given out"), None)
    })
}

/// Links come out of models' replies: nothing but the web is opened for them.
fn is_web_address(url: &str) -> bool {
    tauri::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_web_is_opened() {
        for (url, opened) in [
            ("https://example.org/a?b#c", true),
            ("http://127.0.0.1:11711/health", true),
            ("HTTPS://EXAMPLE.ORG", true),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("mailto:a@example.org", false),
            ("/etc/passwd", false),
            ("--help", false),
            ("https://", false),
            ("", false),
        ] {
            assert_eq!(is_web_address(url), opened, "{url:?}");
        }
    }

    #[test]
    fn ids_are_checked() {
        assert!(parse::<perch_chats::MessageId>("12").is_ok());
        for wrong in ["", "x", "1.5", "99999999999999999999"] {
            assert_eq!(parse::<perch_chats::MessageId>(wrong).unwrap_err().code, "invalid_request");
        }
    }
}
