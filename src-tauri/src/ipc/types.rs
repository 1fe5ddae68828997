//! What crosses between the shell and the page. Only these types know TypeScript.

use perch_chats as chats;
use perch_engine::Failure;
use perch_model::{ErrorCode, UserError};
use serde::Serialize;
use specta::Type;

/// Everything that the page shows besides the messages of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppState {
    /// Perch's version.
    pub(crate) version: String,
    /// The machine that Perch runs on.
    pub(crate) machine: Machine,
    /// The models in the library.
    pub(crate) models: Vec<ModelStatus>,
    /// The model that answers.
    pub(crate) selected_model: Option<String>,
    /// The local HTTP endpoint.
    pub(crate) endpoint: EndpointState,
    /// The conversation written in last comes first.
    pub(crate) conversations: Vec<ConversationSummary>,
}

/// The machine that Perch runs on.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    /// The processor's name.
    pub(crate) chip: String,
    /// Whether it is Apple's.
    pub(crate) apple_silicon: bool,
    /// Memory in bytes.
    pub(crate) memory_bytes: f64,
    /// What computes.
    pub(crate) engine: Engine,
    /// Why that one.
    pub(crate) reason: String,
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Engine {
    /// The processor.
    Cpu,
    /// Apple's graphics processor, through MLX.
    Mlx,
}

/// A model in the library.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelStatus {
    /// Names it in commands.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) path: String,
    /// Whether it is in memory.
    pub(crate) state: ModelState,
    /// Why it runs where it runs, once it is loaded.
    pub(crate) reason: Option<String>,
    /// Longest context in tokens, once it is loaded.
    pub(crate) context_tokens: Option<u32>,
}

/// Whether a model is in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum ModelState {
    /// On disk only.
    Unloaded,
    /// Being read.
    Loading {
        /// From 0 to 1.
        progress: f32,
    },
    /// In memory.
    Ready {
        /// Bytes that it takes.
        memory_bytes: f64,
    },
    /// The last attempt to load it failed.
    Failed {
        /// Why.
        error: AppError,
    },
    /// Its folder is not there.
    Missing,
}

/// The local HTTP endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointState {
    /// Whether it is switched on.
    pub(crate) enabled: bool,
    /// Its port.
    pub(crate) port: u16,
    /// Where it answers while it runs.
    pub(crate) address: Option<String>,
    /// Why it does not run although it was switched on.
    pub(crate) error: Option<AppError>,
}

/// A conversation in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversationSummary {
    /// Names it in commands.
    pub(crate) id: String,
    /// What it is called.
    pub(crate) title: String,
    /// Milliseconds since 1970, UTC.
    pub(crate) updated_at: f64,
    /// The reply that is being written.
    pub(crate) replying: Option<String>,
}

/// What a command answers when it fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppError {
    /// The cause, one of a closed set of names.
    pub(crate) code: String,
    /// What happened.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

/// What became of a message that was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SentMessage {
    /// The conversation it is in.
    pub(crate) conversation: String,
    /// The person's message.
    pub(crate) message: String,
    /// The reply that is being written to it.
    pub(crate) reply: String,
}

/// What happens to a reply, beginning with a snapshot of it.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum ReplyEvent {
    /// The reply as it is now; what follows adds to it.
    Snapshot {
        /// The reply.
        message: Message,
    },
    /// Waiting behind this many requests.
    Queued {
        /// Requests that go first.
        ahead: u32,
    },
    /// The prompt is being read.
    Prefill {
        /// Tokens read.
        done: u32,
        /// Tokens in the prompt.
        of: u32,
    },
    /// More of it.
    Text {
        /// What comes next.
        append: String,
        /// The speed so far, once it can be told.
        tokens_per_second: Option<f64>,
        /// Tokens so far.
        tokens: u32,
    },
    /// It is complete, or was stopped.
    Done {
        /// The reply.
        message: Message,
    },
    /// It ended with an error.
    Failed {
        /// The reply, with the error.
        message: Message,
    },
}

/// A conversation with its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Conversation {
    /// Names it in commands.
    pub(crate) id: String,
    /// What it is called.
    pub(crate) title: String,
    /// From the first to the newest.
    pub(crate) messages: Vec<Message>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    /// Names it in commands.
    pub(crate) id: String,
    /// Who wrote it.
    pub(crate) role: Role,
    /// All of it, or as much as there is.
    pub(crate) text: String,
    /// Whether it is whole.
    pub(crate) state: MessageState,
    /// Why it failed.
    pub(crate) error: Option<AppError>,
    /// The model that wrote it.
    pub(crate) model: Option<String>,
    /// What writing it took.
    pub(crate) stats: Option<Stats>,
    /// Milliseconds since 1970, UTC.
    pub(crate) created_at: f64,
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Whether a message is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) enum MessageState {
    /// All of it is there.
    Complete,
    /// It is being written.
    Streaming,
    /// The person stopped it.
    Stopped,
    /// Perch ended while it was being written.
    Interrupted,
    /// It ended with an error.
    Failed,
}

/// What writing a reply took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stats {
    /// Tokens that the model read.
    pub(crate) prompt_tokens: u32,
    /// Tokens that it wrote.
    pub(crate) completion_tokens: u32,
    /// Tokens written a second.
    pub(crate) tokens_per_second: f64,
    /// Milliseconds until the first one.
    pub(crate) time_to_first_token_ms: f64,
}

/// What a dropped folder or file is.
#[derive(Debug, Clone, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verdict {
    /// The model's folder.
    pub(crate) path: String,
    /// The folder's name.
    pub(crate) name: String,
    /// What kind of model it is.
    pub(crate) family: Option<String>,
    /// Number of weights.
    pub(crate) parameters: Option<f64>,
    /// How the weights are stored.
    pub(crate) form: Option<String>,
    /// Bits on disk for each weight.
    pub(crate) bits_per_weight: Option<f64>,
    /// Longest context in tokens.
    pub(crate) context_tokens: Option<u32>,
    /// Whether there is a chat template.
    pub(crate) has_template: bool,
    /// Whether the template knows tools.
    pub(crate) tools: bool,
    /// Whether thinking can be switched on and off.
    pub(crate) thinking: bool,
    /// Bytes of the weight files.
    pub(crate) bytes_on_disk: f64,
    /// Memory for one conversation of some lengths.
    pub(crate) memory: Vec<MemoryAt>,
    /// Everything that is wrong.
    pub(crate) problems: Vec<Problem>,
    /// Whether Perch can chat with it.
    pub(crate) runnable: bool,
    /// Whether it is in the library already.
    pub(crate) already_added: bool,
}

/// Memory at one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryAt {
    /// Tokens.
    pub(crate) context: u32,
    /// Bytes.
    pub(crate) bytes: f64,
    /// Whether this machine has them.
    pub(crate) fits: bool,
}

/// Something wrong with a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem {
    /// The file concerned.
    pub(crate) file: Option<String>,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
}

impl AppError {
    /// An error of the shell's own.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>, hint: Option<&str>) -> Self {
        Self { code: code.as_str().to_owned(), message: message.into(), hint: hint.map(str::to_owned) }
    }

    /// Any crate's error that says its cause and its remedy.
    pub(crate) fn of(error: &impl UserError) -> Self {
        Self { code: error.code().as_str().to_owned(), message: error.to_string(), hint: error.hint() }
    }
}

impl From<Failure> for AppError {
    fn from(failure: Failure) -> Self {
        Self { code: failure.code.as_str().to_owned(), message: failure.message, hint: failure.hint }
    }
}

impl From<chats::ChatsError> for AppError {
    fn from(error: chats::ChatsError) -> Self {
        let code = match &error {
            chats::ChatsError::NotFound(_) => ErrorCode::NotFound,
            chats::ChatsError::Ended => ErrorCode::InvalidRequest,
            chats::ChatsError::Damaged { .. } => ErrorCode::Damaged,
            chats::ChatsError::NewerVersion { .. } | chats::ChatsError::Database(_) => ErrorCode::Storage,
        };
        Self { code: code.as_str().to_owned(), message: error.to_string(), hint: error.hint() }
    }
}

impl From<chats::ReplyError> for AppError {
    fn from(error: chats::ReplyError) -> Self {
        Self { code: error.code, message: error.message, hint: error.hint }
    }
}

impl From<AppError> for chats::ReplyError {
    fn from(error: AppError) -> Self {
        Self { code: error.code, message: error.message, hint: error.hint }
    }
}

impl From<chats::Summary> for ConversationSummary {
    fn from(summary: chats::Summary) -> Self {
        Self {
            id: summary.id.to_string(),
            title: summary.title,
            updated_at: summary.updated_at as f64,
            replying: summary.replying.map(|reply| reply.to_string()),
        }
    }
}

impl From<chats::Conversation> for Conversation {
    fn from(conversation: chats::Conversation) -> Self {
        Self {
            id: conversation.id.to_string(),
            title: conversation.title,
            messages: conversation.messages.into_iter().map(Message::from).collect(),
        }
    }
}

impl From<chats::Message> for Message {
    fn from(message: chats::Message) -> Self {
        Self {
            id: message.id.to_string(),
            role: match message.role {
                chats::Role::User => Role::User,
                chats::Role::Assistant => Role::Assistant,
            },
            text: message.text,
            state: match message.state {
                chats::State::Complete => MessageState::Complete,
                chats::State::Streaming => MessageState::Streaming,
                chats::State::Stopped => MessageState::Stopped,
                chats::State::Interrupted => MessageState::Interrupted,
                chats::State::Failed => MessageState::Failed,
            },
            error: message.error.map(AppError::from),
            model: message.model,
            stats: message.stats.map(|stats| Stats {
                prompt_tokens: stats.prompt_tokens,
                completion_tokens: stats.completion_tokens,
                tokens_per_second: stats.tokens_per_second,
                time_to_first_token_ms: stats.time_to_first_token_ms,
            }),
            created_at: message.created_at as f64,
        }
    }
}

impl Verdict {
    /// `verdict` as the page shows it, on a machine that can give `memory_bytes` to a model.
    pub(crate) fn new(verdict: perch_model::Verdict, memory_bytes: u64, already_added: bool) -> Self {
        Self {
            path: verdict.path.to_string_lossy().into_owned(),
            name: verdict.name,
            family: verdict.family,
            parameters: (verdict.parameters > 0).then_some(verdict.parameters as f64),
            form: verdict.form,
            bits_per_weight: verdict.bits_per_weight,
            context_tokens: verdict.max_context.map(tokens),
            has_template: verdict.has_template,
            tools: verdict.tools,
            thinking: verdict.thinking,
            bytes_on_disk: verdict.bytes_on_disk as f64,
            memory: verdict
                .memory
                .into_iter()
                .map(|at| MemoryAt {
                    context: tokens(at.context),
                    bytes: at.bytes as f64,
                    fits: at.bytes <= memory_bytes,
                })
                .collect(),
            problems: verdict
                .problems
                .into_iter()
                .map(|problem| Problem { file: problem.file, message: problem.message, hint: problem.hint })
                .collect(),
            runnable: verdict.runnable,
            already_added,
        }
    }
}

/// Counts of tokens fit; one that does not is shown as the largest that does.
pub(crate) fn tokens(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
