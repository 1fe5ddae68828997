//! Chat templates: messages to prompt text.
//!
//! Templates are Jinja as `transformers` runs it: Python's string methods, block trimming, `raise_exception`,
//! `strftime_now` and a `tojson` that escapes nothing for HTML. They come from strangers, so a render is bounded in
//! steps and depth and reaches nothing but what is handed in.

use std::path::Path;

use chrono::NaiveDateTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use serde_json::{Map, Value, json};

use crate::bounds;
use crate::config::{Config, read_text};
use crate::error::ModelError;

/// Template instructions a render may take; real templates use thousands.
const FUEL: u64 = 2_000_000;

/// How deep macros and blocks may nest.
const DEPTH: usize = 100;

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
    /// Ends the prompt inside the last message, so that the model goes on writing it.
    pub continue_final_message: bool,
}

impl Conversation {
    /// A conversation that the assistant answers next.
    pub fn new(messages: Vec<Value>) -> Self {
        Self { messages, add_generation_prompt: true, ..Self::default() }
    }

    /// A single message of the user.
    pub fn user(text: &str) -> Self {
        Self::new(vec![json!({ "role": "user", "content": text })])
    }
}

/// A model's chat template, ready to render.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    special: SpecialTokens,
}

/// The special tokens that templates print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Begins a text.
    pub bos_token: Option<String>,
    /// Ends a text.
    pub eos_token: Option<String>,
    /// Fills a batch.
    pub pad_token: Option<String>,
    /// Stands for what is unknown.
    pub unk_token: Option<String>,
}

impl SpecialTokens {
    /// Reads them from a `tokenizer_config.json`, where each is a string or an object with `content`.
    pub fn from_config(config: &Config) -> Self {
        let text = |key: &str| {
            let value = config.get(key)?;
            value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_owned)
        };
        Self {
            bos_token: text("bos_token"),
            eos_token: text("eos_token"),
            pad_token: text("pad_token"),
            unk_token: text("unk_token"),
        }
    }
}

impl ChatTemplate {
    /// Finds the template of a model folder: `chat_template.jinja`, `chat_template.json`, or `chat_template` in
    /// `tokenizer_config.json`, in that order. `Ok(None)` when there is none.
    ///
    /// # Errors
    /// A file that is there but damaged, or a template that is no Jinja.
    pub fn find(folder: &Path, tokenizer_config: Option<&Config>) -> Result<Option<Self>, ModelError> {
        let special = tokenizer_config.map(SpecialTokens::from_config).unwrap_or_default();
        let source = match optional(read_text(folder, "chat_template.jinja"))? {
            Some(text) => Some(text),
            None => match optional(read_text(folder, "chat_template.json"))? {
                Some(text) => named(
                    &Config::parse(&text)
                        .map_err(|error| ModelError::damaged("chat_template.json", error.to_string()))?,
                )?,
                None => tokenizer_config.map(named).transpose()?.flatten(),
            },
        };
        source.map(|source| Self::new(source, special)).transpose()
    }

    /// Compiles a template.
    ///
    /// # Errors
    /// Text that is no Jinja, with the line.
    pub fn new(source: String, special: SpecialTokens) -> Result<Self, ModelError> {
        let mut environment = environment();
        environment.add_template_owned("chat", prepared(&source)).map_err(|error| failed(&error))?;
        Ok(Self { environment, source, special })
    }

    /// The prompt text of a conversation.
    ///
    /// # Errors
    /// What the template raises, or that it ran out of its bounds.
    pub fn render(&self, conversation: &Conversation) -> Result<String, ModelError> {
        let mut variables = Map::new();
        let messages = conversation.messages.iter().map(message).collect();
        variables.insert("messages".to_owned(), Value::Array(messages));
        let tools = conversation.tools.clone().map_or(Value::Null, Value::Array);
        variables.insert("tools".to_owned(), tools);
        variables.insert("documents".to_owned(), Value::Null);
        variables.insert("add_generation_prompt".to_owned(), conversation.add_generation_prompt.into());
        if let Some(thinking) = conversation.enable_thinking {
            variables.insert("enable_thinking".to_owned(), thinking.into());
        }
        let special = [
            ("bos_token", &self.special.bos_token),
            ("eos_token", &self.special.eos_token),
            ("pad_token", &self.special.pad_token),
            ("unk_token", &self.special.unk_token),
        ];
        for (name, token) in special {
            if let Some(token) = token {
                variables.insert(name.to_owned(), token.as_str().into());
            }
        }
        let template = self.environment.get_template("chat").map_err(|error| failed(&error))?;
        bounds::begin();
        let text = template.render(Serde(&variables)).map_err(|error| failed(&error))?;
        if conversation.continue_final_message {
            cut_after_final_message(text, conversation)
        } else {
            Ok(text)
        }
    }

    /// The same template with other special tokens; those that are `None` stay.
    pub fn with_special_tokens(mut self, special: SpecialTokens) -> Self {
        let own = self.special;
        self.special = SpecialTokens {
            bos_token: special.bos_token.or(own.bos_token),
            eos_token: special.eos_token.or(own.eos_token),
            pad_token: special.pad_token.or(own.pad_token),
            unk_token: special.unk_token.or(own.unk_token),
        };
        self
    }

    /// The same template at another time, for what it prints of the date.
    pub fn at(mut self, now: NaiveDateTime) -> Self {
        self.environment.add_function("strftime_now", move |pattern: &str| format_date(now, pattern));
        self
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the template looks at tool definitions.
    pub fn knows_tools(&self) -> bool {
        self.source.contains("tools")
    }

    /// Whether thinking can be switched on and off through the template.
    pub fn knows_thinking(&self) -> bool {
        self.source.contains("enable_thinking")
    }
}

fn optional(text: Result<String, ModelError>) -> Result<Option<String>, ModelError> {
    match text {
        Ok(text) => Ok(Some(text)),
        Err(ModelError::MissingFile { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `chat_template` is a template, or a list of named ones of which `default` is for chats.
fn named(config: &Config) -> Result<Option<String>, ModelError> {
    match config.get("chat_template") {
        None => Ok(None),
        Some(Value::String(source)) => Ok(Some(source.clone())),
        Some(Value::Array(list)) => {
            let find = |name: &str| {
                list.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(name))
            };
            let entry = find("default").or_else(|| list.first());
            Ok(entry.and_then(|entry| entry.get("template")?.as_str()).map(str::to_owned))
        }
        Some(other) => Err(ModelError::damaged(
            "tokenizer_config.json",
            format!("chat_template is {}, expected a string or a list", json_kind(other)),
        )),
    }
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A message as `transformers` hands it over: without keys whose value is null, and with `reasoning_content` also
/// under the name that some templates read.
fn message(message: &Value) -> Value {
    let Value::Object(map) = message else { return message.clone() };
    let mut map: Map<String, Value> =
        map.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
    if let (Some(reasoning), None) = (map.get("reasoning_content").cloned(), map.get("thinking")) {
        map.insert("thinking".to_owned(), reasoning);
    }
    Value::Object(map)
}

fn failed(error: &Error) -> ModelError {
    if let Some(raised) = std::error::Error::source(error).and_then(|source| source.downcast_ref::<Raised>())
    {
        return ModelError::Template { reason: raised.0.clone(), raised: Some(raised.0.clone()) };
    }
    let reason = match error.kind() {
        ErrorKind::OutOfFuel => "it does not come to an end".to_owned(),
        _ => error.to_string(),
    };
    ModelError::Template { reason, raised: None }
}

/// What `raise_exception` was called with.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.unwrap_or_default());
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(DEPTH);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    bounds::install(&mut environment);
    environment.set_formatter(|out, _, value| {
        if value.is_undefined() {
            return Ok(());
        }
        let text = python_text(value);
        bounds::measure(text.len())?;
        Ok(out.write_str(&text)?)
    });
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", |value: JinjaValue| python_text(&value));
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
    });
    environment.add_function("strftime_now", |pattern: &str| {
        format_date(chrono::Local::now().naive_local(), pattern)
    });
    // Python iterates over strings, lists, objects and undefined values, but not over None.
    environment.add_test("iterable", |value: &JinjaValue| {
        value.is_undefined() || (!value.is_none() && value.try_iter().is_ok())
    });
    environment
}

/// Values as Python prints them: `True`, `None`, `1.0`.
fn python_text(value: &JinjaValue) -> String {
    match value.kind() {
        ValueKind::Bool => if value.is_true() { "True" } else { "False" }.to_owned(),
        ValueKind::None => "None".to_owned(),
        _ => value.to_string(),
    }
}

/// `transformers`' `tojson`: `json.dumps` with `ensure_ascii` off, keys in their own order.
fn to_json(_: &State<'_, '_>, value: JinjaValue, options: Kwargs) -> Result<JinjaValue, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let sort: bool = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let ascii: bool = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    let separators: Option<Vec<String>> = options.get("separators")?;
    options.assert_all_used()?;
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::BadSerialization, "an undefined value cannot be written as JSON"));
    }
    let value: Value = serde_json::to_value(&value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        _ if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        _ => (", ".to_owned(), ": ".to_owned()),
    };
    let mut out = String::new();
    JsonStyle { item, key, indent, sort, ascii }.write(&value, 0, &mut out);
    Ok(JinjaValue::from_safe_string(out))
}

/// How Python's `json.dumps` was asked to write.
struct JsonStyle {
    item: String,
    key: String,
    indent: Option<usize>,
    sort: bool,
    ascii: bool,
}

impl JsonStyle {
    fn write(&self, value: &Value, depth: usize, out: &mut String) {
        match value {
            Value::Array(list) => self.group(('[', ']'), list.iter(), depth, out, |value, out| {
                self.write(value, depth + 1, out);
            }),
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                if self.sort {
                    entries.sort_by_key(|(name, _)| *name);
                }
                self.group(('{', '}'), entries.into_iter(), depth, out, |(name, value), out| {
                    self.string(name, out);
                    out.push_str(&self.key);
                    self.write(value, depth + 1, out);
                });
            }
            Value::String(text) => self.string(text, out),
            other => out.push_str(&other.to_string()),
        }
    }

    fn group<T>(
        &self,
        (open, close): (char, char),
        items: impl ExactSizeIterator<Item = T>,
        depth: usize,
        out: &mut String,
        mut write: impl FnMut(T, &mut String),
    ) {
        let empty = items.len() == 0;
        let line = |depth: usize, out: &mut String| {
            if let Some(indent) = self.indent {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent.min(64) * depth));
            }
        };
        out.push(open);
        for (index, item) in items.enumerate() {
            if index > 0 {
                out.push_str(&self.item);
            }
            line(depth + 1, out);
            write(item, out);
        }
        if !empty {
            line(depth, out);
        }
        out.push(close);
    }

    fn string(&self, text: &str, out: &mut String) {
        let quoted = Value::from(text).to_string();
        if !self.ascii {
            out.push_str(&quoted);
            return;
        }
        for character in quoted.chars() {
            if character.is_ascii() {
                out.push(character);
            } else {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
}

/// A date in the pattern of C's `strftime`.
fn format_date(now: NaiveDateTime, pattern: &str) -> Result<String, Error> {
    use std::fmt::Write as _;
    let mut text = String::new();
    // An unknown pattern is the template's mistake and must not panic, which formatting straight to text would do.
    write!(text, "{}", now.format(pattern))
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, format!("unknown date pattern {pattern:?}")))?;
    Ok(text)
}

/// Drops what the template puts behind the last message, as `transformers` does for `continue_final_message`.
fn cut_after_final_message(mut text: String, conversation: &Conversation) -> Result<String, ModelError> {
    let content = conversation.messages.last().and_then(|message| message.get("content"));
    let content = match content {
        Some(Value::Array(parts)) => parts.iter().rev().find_map(|part| part.get("text")),
        other => other,
    };
    let content = content.and_then(Value::as_str).unwrap_or_default();
    let Some(start) = text.rfind(content.trim()) else {
        let reason = "the last message is not in the rendered text, so it cannot be continued".to_owned();
        return Err(ModelError::Template { reason, raised: None });
    };
    // White space at the message's end is kept where the template keeps it.
    let kept =
        if text[start..].starts_with(content.trim_start()) { content.trim_start() } else { content.trim() };
    text.truncate(start + kept.len());
    Ok(text)
}

/// Removes `{% generation %}` marks, which only matter for training, and has assignments measured.
fn prepared(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, block) = rest.split_at(start);
        let Some(end) = block.find("%}") else { break };
        let inner = block[2..end].trim_matches(['-', '+', ' ', '\t', '\n', '\r']);
        out.push_str(before);
        if inner == "generation" || inner == "endgeneration" {
            // The mark's own white-space control still holds: an empty comment keeps it.
            let open = if block[2..].starts_with('-') { "{#-" } else { "{#" };
            let close = if block[..end].ends_with('-') { "-#}" } else { "#}" };
            out.push_str(open);
            out.push_str(close);
        } else {
            let block = &block[..end + 2];
            out.push_str(bounds::bounded_block(block).as_deref().unwrap_or(block));
        }
        rest = &block[end + 2..];
    }
    out.push_str(rest);
    out
}
