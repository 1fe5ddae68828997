//! Chat templates: messages to prompt text.

use serde_json::Value;

/// What a chat template renders.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// Messages as OpenAI's API writes them: objects with `role`, `content` and whatever else the template reads.
    pub messages: Vec<Value>,
    /// Tool definitions as OpenAI's API writes them.
    pub tools: Option<Vec<Value>>,
    /// Whether the prompt ends where the assistant's reply begins.
    pub add_generation_prompt: bool,
    /// Asks a model that can think to do so or not; `None` leaves it to the template.
    pub enable_thinking: Option<bool>,
}
