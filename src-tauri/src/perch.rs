//! Perch without its window: what the commands call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use perch_chats::{Chats, ConversationId, MessageId};
use perch_engine::{
    Device, DevicePreference, Generation, Machine, Priority, Prompt, Request, Runtime, SamplingOptions,
};
use perch_library::Library;
use perch_model::ErrorCode;
use tauri::ipc::Channel;
use tokio::sync::Notify;

use crate::endpoint::Endpoint;
use crate::ipc::types::{self, AppError, AppState, EndpointState, ReplyEvent, SentMessage, Verdict};
use crate::models::{self, Shelf};
use crate::replies::{self, Replies};
use crate::secrets::{self, SecretStore};
use crate::settings::Settings;

/// Changes closer together than this are shown as one.
const SETTLE: Duration = Duration::from_millis(30);

/// Perch without its window.
pub(crate) struct Perch {
    runtime: Runtime,
    library: Arc<Library>,
    /// Where the file cannot be used everything else still works, and whoever asks for conversations hears why.
    chats: Result<Chats, AppError>,
    replies: Replies,
    settings_path: PathBuf,
    settings: Mutex<Settings>,
    secrets: Arc<dyn SecretStore>,
    endpoint: tokio::sync::Mutex<Endpoint>,
    /// What the page shows of the endpoint, so that a snapshot need not wait for a switch that is under way.
    endpoint_state: Mutex<EndpointState>,
    changed: Notify,
}

impl Perch {
    /// Opens everything that is kept in `folder`, which is made where it is not there.
    ///
    /// # Errors
    /// The folder, the settings or the library cannot be used.
    pub(crate) fn open(folder: &Path, secrets: Box<dyn SecretStore>) -> Result<Arc<Self>, AppError> {
        std::fs::create_dir_all(folder).map_err(|error| {
            let message = format!("Perch's folder {} cannot be made: {error}", folder.display());
            AppError::new(ErrorCode::Io, message, Some("Set PERCH_HOME to a folder that can be written."))
        })?;
        let settings_path = folder.join("settings.json");
        let settings = Settings::read(&settings_path)?;
        let library = Arc::new(Library::open(folder).map_err(|error| AppError::of(&error))?);
        let chats = Chats::open(&folder.join("chats.sqlite3")).map_err(AppError::from);
        if let Err(error) = &chats {
            tracing::error!(message = error.message, hint = error.hint, "no conversations");
        }
        let shelf = Arc::new(Shelf(library.clone()));
        Ok(Arc::new(Self {
            runtime: Runtime::new(Machine::detect(), DevicePreference::Auto, shelf),
            library,
            chats,
            replies: Replies::default(),
            settings_path,
            endpoint_state: Mutex::new(Endpoint::default().state(settings.endpoint_port)),
            settings: Mutex::new(settings),
            secrets: secrets.into(),
            endpoint: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// Switches the endpoint on where it was on when Perch ended.
    pub(crate) async fn resume(&self) {
        let Settings { endpoint_enabled, endpoint_port, .. } = self.settings().clone();
        if endpoint_enabled {
            let mut endpoint = self.endpoint.lock().await;
            endpoint.start(&self.runtime, endpoint_port, self.endpoint_token().await).await;
            self.show_endpoint(endpoint.state(endpoint_port));
        }
    }

    /// Stops replies and the endpoint and takes all models out of memory.
    pub(crate) async fn shut_down(&self) {
        self.replies.stop_and_wait(None).await;
        self.endpoint.lock().await.stop().await;
        self.runtime.shutdown().await;
    }

    /// Calls `show` with the state now and whenever it has changed.
    pub(crate) async fn follow(self: Arc<Self>, show: impl Fn(AppState)) {
        let mut engine = self.runtime.changes();
        let mut shown = None;
        loop {
            match self.state() {
                Ok(state) if shown.as_ref() != Some(&state) => {
                    shown = Some(state.clone());
                    show(state);
                }
                Ok(_) => {}
                Err(error) => tracing::error!(message = error.message, "the state cannot be shown"),
            }
            tokio::time::sleep(SETTLE).await;
            tokio::select! {
                () = self.changed.notified() => {}
                changed = engine.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Everything that the page shows besides messages.
    pub(crate) fn state(&self) -> Result<AppState, AppError> {
        let machine = self.runtime.machine();
        let choice = self.runtime.choice()?;
        let models = models::statuses(&self.library, self.runtime.models());
        let selected = self.settings().selected_model.clone();
        let conversations = match &self.chats {
            Ok(chats) => chats.list()?,
            // Asking for one says why there are none.
            Err(_) => Vec::new(),
        };
        Ok(AppState {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: types::Machine {
                chip: machine.chip.clone(),
                apple_silicon: machine.apple_silicon,
                memory_bytes: machine.memory_bytes as f64,
                engine: match choice.device {
                    Device::Cpu => types::Engine::Cpu,
                    Device::Mlx => types::Engine::Mlx,
                },
                reason: choice.reason,
            },
            selected_model: selected.filter(|id| models.iter().any(|model| model.id == *id)),
            models,
            endpoint: self.endpoint_state.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            conversations: conversations.into_iter().map(Into::into).collect(),
        })
    }

    /// Keeps what the person says and begins the reply.
    pub(crate) fn send(
        self: &Arc<Self>,
        conversation: Option<ConversationId>,
        text: &str,
    ) -> Result<SentMessage, AppError> {
        let chats = self.chats()?;
        if text.trim().is_empty() {
            return Err(AppError::new(ErrorCode::InvalidRequest, "there is nothing to send", None));
        }
        if conversation.is_some_and(|conversation| self.replies.is_replying(conversation)) {
            let message = "the reply before is still being written";
            return Err(AppError::new(ErrorCode::InvalidRequest, message, Some("Wait for it, or stop it.")));
        }
        let (conversation, message) = match conversation {
            None => chats.start(text)?,
            Some(conversation) => {
                let newest = chats.get(conversation)?.messages.last().map(|message| message.id);
                (conversation, chats.say(conversation, newest, text)?)
            }
        };
        let model = self.settings().selected_model.clone();
        let reply = chats.begin_reply(message, model.as_deref())?;
        let live = self.replies.begin(reply, conversation);
        let perch = self.clone();
        tauri::async_runtime::spawn(async move {
            let Ok(chats) = perch.chats() else { return };
            replies::write(&perch.replies, chats, &live, perch.generate(model, message)).await;
            perch.changed.notify_one();
        });
        self.changed.notify_one();
        Ok(SentMessage {
            conversation: conversation.to_string(),
            message: message.to_string(),
            reply: reply.to_string(),
        })
    }

    /// Loads `model` where it is not loaded, and begins the reply to `message`.
    async fn generate(&self, model: Option<String>, message: MessageId) -> Result<Generation, AppError> {
        let model = model.ok_or_else(|| {
            AppError::new(
                ErrorCode::NotFound,
                "no model is chosen",
                Some("Drop a model's folder on the window, or choose one at the top."),
            )
        })?;
        let path = self.chats()?.path(message)?;
        // On a task of its own: who stops waiting for a model must not leave it half loaded.
        let runtime = self.runtime.clone();
        let loading = tauri::async_runtime::spawn(async move { runtime.load(&model).await });
        let model = loading.await.map_err(|error| {
            AppError::new(ErrorCode::Internal, format!("loading the model broke off: {error}"), None)
        })??;
        let info = model.info();
        let sampling = SamplingOptions::default().resolve(&info.defaults, info.vocab_size)?;
        let request = Request {
            prompt: Prompt::Chat(replies::conversation(&path)),
            sampling,
            stop: Vec::new(),
            max_tokens: None,
            ignore_end: false,
            priority: Priority::Person,
        };
        Ok(model.generate(request)?)
    }

    /// Follows a reply; see [`Replies::watch`].
    pub(crate) fn watch(&self, reply: MessageId, watcher: Channel<ReplyEvent>) -> Result<(), AppError> {
        self.replies.watch(self.chats()?, reply, watcher)
    }

    /// Stops a reply; its text stays.
    pub(crate) fn stop(&self, reply: MessageId) {
        self.replies.stop(reply);
    }

    /// The conversations.
    pub(crate) fn chats(&self) -> Result<&Chats, AppError> {
        self.chats.as_ref().map_err(AppError::clone)
    }

    /// Calls a conversation something else.
    pub(crate) fn rename(&self, conversation: ConversationId, title: &str) -> Result<(), AppError> {
        self.chats()?.rename(conversation, title)?;
        self.changed.notify_one();
        Ok(())
    }

    /// Deletes a conversation, with the reply that is being written in it.
    pub(crate) async fn delete(&self, conversation: ConversationId) -> Result<(), AppError> {
        self.replies.stop_and_wait(Some(conversation)).await;
        self.chats()?.delete(conversation)?;
        self.changed.notify_one();
        Ok(())
    }

    /// What is at `path`, and whether it runs here.
    pub(crate) fn inspect(&self, path: &Path) -> Result<Verdict, AppError> {
        let verdict = perch_model::inspect(path).map_err(|error| AppError::of(&error))?;
        // The library keeps folders without links and detours.
        let folder = verdict.path.canonicalize().unwrap_or_else(|_| verdict.path.clone());
        let added = self.library.list().iter().any(|entry| entry.path == folder);
        Ok(Verdict::new(verdict, self.runtime.machine().memory_bytes, added))
    }

    /// Adds a model where it stands, and chooses it where none is chosen.
    pub(crate) fn add_model(&self, path: &Path) -> Result<String, AppError> {
        let entry = self.library.add(path).map_err(|error| AppError::of(&error))?;
        if self.state()?.selected_model.is_none() {
            self.select_model(&entry.id)?;
        }
        self.changed.notify_one();
        Ok(entry.id)
    }

    /// Forgets a model; its files stay.
    pub(crate) async fn remove_model(&self, id: &str) -> Result<(), AppError> {
        self.library.remove(id).map_err(|error| AppError::of(&error))?;
        self.runtime.unload(id).await;
        self.changed.notify_one();
        Ok(())
    }

    /// Chooses the model that answers.
    pub(crate) fn select_model(&self, id: &str) -> Result<(), AppError> {
        if !self.library.list().iter().any(|entry| entry.id == id) {
            return Err(AppError::new(ErrorCode::NotFound, format!("there is no model called {id:?}"), None));
        }
        self.choose(|settings| settings.selected_model = Some(id.to_owned()))
    }

    /// Reads a model into memory.
    pub(crate) async fn load_model(&self, id: &str) -> Result<(), AppError> {
        self.runtime.load(id).await?;
        Ok(())
    }

    /// Takes a model out of memory.
    pub(crate) async fn unload_model(&self, id: &str) {
        self.runtime.unload(id).await;
    }

    /// Switches the endpoint. That it could not be switched on is part of the answer, not an error.
    pub(crate) async fn set_endpoint(&self, enabled: bool, port: u16) -> Result<EndpointState, AppError> {
        let mut endpoint = self.endpoint.lock().await;
        if enabled {
            endpoint.start(&self.runtime, port, self.endpoint_token().await).await;
        } else {
            endpoint.stop().await;
        }
        let state = endpoint.state(port);
        self.show_endpoint(state.clone());
        self.choose(|settings| {
            settings.endpoint_enabled = state.enabled;
            settings.endpoint_port = port;
        })?;
        Ok(state)
    }

    /// The token that the endpoint asks for.
    pub(crate) async fn endpoint_token(&self) -> Result<String, AppError> {
        self.with_secrets(secrets::token).await
    }

    /// Makes a new token; the old one is refused from now on.
    pub(crate) async fn renew_endpoint_token(&self) -> Result<String, AppError> {
        let mut endpoint = self.endpoint.lock().await;
        let token = self.with_secrets(secrets::renew_token).await?;
        if endpoint.is_running() {
            let port = self.settings().endpoint_port;
            endpoint.start(&self.runtime, port, Ok(token.clone())).await;
            self.show_endpoint(endpoint.state(port));
        }
        Ok(token)
    }

    /// The keychain may ask the person, so it is asked where waiting holds up nobody.
    async fn with_secrets(
        &self,
        work: fn(&dyn SecretStore) -> Result<String, AppError>,
    ) -> Result<String, AppError> {
        let secrets = self.secrets.clone();
        let asked = tauri::async_runtime::spawn_blocking(move || work(&*secrets)).await;
        asked.map_err(|error| {
            AppError::new(ErrorCode::Internal, format!("asking the keychain broke off: {error}"), None)
        })?
    }

    fn show_endpoint(&self, state: EndpointState) {
        *self.endpoint_state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_one();
    }

    /// Changes the settings once the change is on disk.
    fn choose(&self, change: impl FnOnce(&mut Settings)) -> Result<(), AppError> {
        let mut settings = self.settings();
        let mut changed = settings.clone();
        change(&mut changed);
        if changed != *settings {
            changed.write(&self.settings_path)?;
            *settings = changed;
        }
        drop(settings);
        self.changed.notify_one();
        Ok(())
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
