//! What is asked of a loaded model, and what comes back.

use std::time::Duration;

use perch_nn::sampling::SamplingParams;

use crate::Failure;

/// One request for text.
#[derive(Debug, Clone)]
pub struct Request {
    /// What the model reads.
    pub prompt: Prompt,
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Generation ends before the first of these; none of it is given out.
    pub stop: Vec<String>,
    /// At most this many tokens; `None` goes on to the end of the context, or of the memory for it.
    pub max_tokens: Option<usize>,
    /// Keep going past the model's own end tokens, for measurements and comparisons.
    pub ignore_end: bool,
    /// Whose request it is.
    pub priority: Priority,
}

/// What the model reads.
#[derive(Debug, Clone)]
pub enum Prompt {
    /// Messages, rendered by the model's chat template.
    Chat(perch_model::template::Conversation),
    /// Token ids as they are.
    Tokens(Vec<u32>),
}

/// Whose request goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// The person in front of the machine; goes before everything else.
    Person,
    /// Another program, through the endpoint.
    Client,
}

/// What happens to a request, in this order; `Done` or `Failed` is the last.
#[derive(Debug, Clone)]
pub enum Event {
    /// Waiting behind this many requests.
    Queued {
        /// Requests that go first.
        ahead: usize,
    },
    /// So many tokens of the prompt have been read.
    Prefill {
        /// Tokens read.
        done: usize,
        /// Tokens in the prompt.
        of: usize,
    },
    /// More of the reply. Pieces never split a character; joined, they are the reply.
    Piece {
        /// The text; may be empty when tokens have not completed a character yet.
        text: String,
        /// The tokens that this piece brings.
        tokens: Vec<u32>,
    },
    /// The reply is complete.
    Done {
        /// Why it ended.
        reason: FinishReason,
        /// Tokens counted.
        usage: Usage,
        /// Time taken.
        timings: Timings,
    },
    /// The reply ended with an error; what came before stands.
    Failed(Failure),
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended it, or a stop string came up.
    Stop,
    /// The limit of tokens, or the end of the context.
    Length,
}

/// Tokens of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens in the prompt.
    pub prompt_tokens: usize,
    /// Tokens generated, the end token included.
    pub completion_tokens: usize,
}

/// How long one request took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Waiting before the first prefill step.
    pub queued: Duration,
    /// From the first prefill step to the first token.
    pub prefill: Duration,
    /// From the first token to the last.
    pub decode: Duration,
}
