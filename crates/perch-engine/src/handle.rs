//! The sending end of a model: checks and prepares requests before they reach its loop.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;

use perch_model::defaults::GenerationDefaults;
use perch_model::footprint::Footprint;
use perch_model::template::ChatTemplate;
use perch_model::tokenizer::Tokenizer;
use perch_model::{ErrorCode, ModelError};
use tokio::sync::{mpsc, oneshot};

use crate::Failure;
use crate::failure::gigabytes;
use crate::generation::Generation;
use crate::machine::Choice;
use crate::model_loop::{Command, Job};
use crate::request::{Prompt, Request};

/// Stop strings a request may have.
pub const MOST_STOPS: usize = 16;

/// A loaded model. Clones are the same model.
#[derive(Debug, Clone)]
pub struct ModelHandle {
    pub(crate) info: Arc<ModelInfo>,
    pub(crate) commands: Sender<Command>,
    /// Requests that are waiting or being worked on.
    pub(crate) open: Arc<AtomicUsize>,
}

/// What a loaded model is.
#[derive(Debug)]
pub struct ModelInfo {
    /// Its name in the catalog.
    pub id: String,
    /// Its folder.
    pub path: PathBuf,
    /// What kind it is.
    pub family: &'static str,
    /// Longest context in tokens that it was made for.
    pub context: usize,
    /// Longest context in tokens for which there is memory.
    pub memory_context: usize,
    /// What the caches of all its replies together may take, in bytes.
    pub cache_budget: u64,
    /// Number of logits.
    pub vocab_size: usize,
    /// What it runs on and why.
    pub choice: Choice,
    /// What its makers recommend.
    pub defaults: GenerationDefaults,
    /// Its tokenizer.
    pub tokenizer: Option<Tokenizer>,
    /// Its chat template.
    pub template: Option<ChatTemplate>,
    /// What it takes in memory.
    pub footprint: Footprint,
}

impl ModelHandle {
    /// What it is.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Whether a request is waiting or being worked on.
    pub fn is_busy(&self) -> bool {
        self.open.load(Ordering::SeqCst) > 0
    }

    /// Starts a request.
    ///
    /// # Errors
    /// Whatever can be told beforehand: a template that refuses, a prompt that does not fit with both numbers, a
    /// model that is gone.
    pub fn generate(&self, request: Request) -> Result<Generation, Failure> {
        let info = &self.info;
        let prompt = match request.prompt {
            Prompt::Chat(conversation) => {
                let missing =
                    |file: &str| ModelError::MissingFile { folder: info.path.clone(), file: file.to_owned() };
                let template = info.template.as_ref().ok_or_else(|| missing("chat_template.jinja"))?;
                let tokenizer = info.tokenizer.as_ref().ok_or_else(|| missing("tokenizer.json"))?;
                tokenizer.encode(&template.render(&conversation)?, false)?
            }
            Prompt::Tokens(tokens) => tokens,
        };
        let invalid = |message: String, hint: &str| Failure::new(ErrorCode::InvalidRequest, message, hint);
        if prompt.is_empty() {
            return Err(invalid("the prompt is empty".to_owned(), "Write something first."));
        }
        if let Some(token) = prompt.iter().find(|&&token| token as usize >= info.vocab_size) {
            let message = format!("the prompt has token {token}, but the model has {}", info.vocab_size);
            return Err(invalid(message, "Use the model's own tokenizer."));
        }
        if request.stop.len() > MOST_STOPS || request.stop.iter().any(String::is_empty) {
            let message = format!("stop needs at most {MOST_STOPS} strings, none of them empty");
            return Err(invalid(message, "Change the stop strings."));
        }
        if request.max_tokens == Some(0) {
            return Err(invalid(
                "max_tokens is 0, expected at least 1".to_owned(),
                "Ask for at least one token.",
            ));
        }
        let limit = self.room_for(prompt.len(), request.max_tokens)?;
        let (events, receiver) = mpsc::unbounded_channel();
        let job = Job {
            prompt,
            sampling: request.sampling,
            stop: request.stop,
            limit,
            ignore_end: request.ignore_end,
            priority: request.priority,
            events,
            sent: Instant::now(),
            open: OpenRequest::new(&self.open),
        };
        self.commands.send(Command::Generate(job)).map_err(|_| Failure::unavailable(&info.id))?;
        Ok(Generation { events: receiver })
    }

    /// The logits of every position of `tokens`.
    ///
    /// # Errors
    /// Tokens that the model does not have or that do not fit, or damaged weights.
    pub async fn logits(&self, tokens: Vec<u32>) -> Result<Vec<Vec<f32>>, Failure> {
        if tokens.is_empty() {
            let hint = "Give at least one token.";
            return Err(Failure::new(ErrorCode::InvalidRequest, "there are no tokens", hint));
        }
        self.room_for(tokens.len() - 1, Some(1))?;
        let (reply, receiver) = oneshot::channel();
        let open = OpenRequest::new(&self.open);
        let gone = || Failure::unavailable(&self.info.id);
        self.commands.send(Command::Logits { tokens, reply, open }).map_err(|_| gone())?;
        receiver.await.map_err(|_| gone())?
    }

    /// How many tokens may follow a prompt of `prompt` tokens, or why it cannot be done.
    fn room_for(&self, prompt: usize, max_tokens: Option<usize>) -> Result<usize, Failure> {
        let (context, memory_context) = (self.info.context, self.info.memory_context);
        let asked = prompt.saturating_add(max_tokens.unwrap_or(1));
        if asked > context {
            let reply = max_tokens.map_or(String::new(), |max| format!(" and {max} for the reply"));
            return Err(Failure::new(
                ErrorCode::ContextExceeded,
                format!("the prompt needs {prompt} tokens{reply}, but the model's context holds {context}"),
                "Shorten the conversation, start a new one, or ask for a shorter reply.",
            ));
        }
        if asked > memory_context {
            let needed = gigabytes(self.info.footprint.cache_bytes(asked));
            return Err(Failure::new(
                ErrorCode::OutOfMemory,
                format!(
                    "{asked} tokens of context need {needed}; there is memory for {memory_context} tokens"
                ),
                "Close other programs and load the model again, shorten the conversation, or use a smaller model.",
            ));
        }
        Ok(max_tokens.unwrap_or(context.min(memory_context) - prompt))
    }
}

/// Counts a request as open for as long as it lives.
#[derive(Debug)]
pub(crate) struct OpenRequest(Arc<AtomicUsize>);

impl OpenRequest {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(open.clone())
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
