//! The body of a chat request: every parameter is honoured or refused by name.

use perch_engine::{Conversation, GenerationDefaults, MOST_STOPS, SamplingOptions};
use serde_json::{Map, Value};

use crate::error::ApiError;

/// A chat request, understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChatRequest {
    pub(crate) model: String,
    pub(crate) conversation: Conversation,
    pub(crate) sampling: SamplingOptions,
    pub(crate) stop: Vec<String>,
    pub(crate) max_tokens: Option<usize>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
}

/// What a client may send along and what changes nothing about the answer.
const HARMLESS: [&str; 4] = ["user", "metadata", "safety_identifier", "prompt_cache_key"];

impl ChatRequest {
    /// Reads a body.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let parsed = serde_json::from_slice(body);
        let value: Value = parsed.map_err(|error| {
            ApiError::request(axum::http::StatusCode::BAD_REQUEST, format!("the body is not JSON: {error}"))
        })?;
        let Value::Object(map) = value else {
            let message = format!("the body is {}, expected an object", kind(&value));
            return Err(ApiError::request(axum::http::StatusCode::BAD_REQUEST, message));
        };
        Self::read(Parameters { map })
    }

    fn read(mut given: Parameters) -> Result<Self, ApiError> {
        let model = given.text("model")?.ok_or_else(|| ApiError::parameter("model", "model is missing"))?;
        let messages = match given.take("messages") {
            Some(Value::Array(messages)) if !messages.is_empty() => messages,
            Some(Value::Array(_)) => return Err(ApiError::parameter("messages", "messages is empty")),
            Some(other) => return Err(wrong("messages", &other, "a list")),
            None => return Err(ApiError::parameter("messages", "messages is missing")),
        };
        let messages = messages.into_iter().enumerate().map(|(index, message)| read_message(index, message));
        let mut conversation = Conversation::new(messages.collect::<Result<_, _>>()?);
        conversation.enable_thinking = given.flag("enable_thinking")?;
        if let Some(mut template) = given.object("chat_template_kwargs")? {
            conversation.enable_thinking = template.flag("enable_thinking")?.or(conversation.enable_thinking);
            template.finish("chat_template_kwargs.")?;
        }
        let stream = given.flag("stream")?.unwrap_or(false);
        let mut include_usage = false;
        if let Some(mut options) = given.object("stream_options")? {
            if !stream {
                return Err(ApiError::parameter("stream_options", "stream_options needs stream to be true"));
            }
            include_usage = options.flag("include_usage")?.unwrap_or(false);
            options.finish("stream_options.")?;
        }
        let most = given.positive("max_tokens")?;
        let max_tokens = given.positive("max_completion_tokens")?.or(most);
        let sampling = SamplingOptions {
            temperature: given.number("temperature")?,
            top_k: given.count("top_k")?,
            top_p: given.number("top_p")?,
            min_p: given.number("min_p")?,
            repetition_penalty: given.number("repetition_penalty")?,
            presence_penalty: given.number("presence_penalty")?,
            frequency_penalty: given.number("frequency_penalty")?,
            logit_bias: given.logit_bias()?,
            seed: given.seed()?,
        };
        check_ranges(&sampling)?;
        let stop = given.stop()?;
        given.only("n", |value| value.as_u64() == Some(1), "1")?;
        given.only("logprobs", |value| value == &Value::Bool(false), "false")?;
        given.only("store", |value| value == &Value::Bool(false), "false")?;
        given.only("tool_choice", |value| value == "none", "none")?;
        given.only(
            "response_format",
            |value| value == &serde_json::json!({ "type": "text" }),
            r#"{"type": "text"}"#,
        )?;
        given.only("modalities", |value| value == &serde_json::json!(["text"]), r#"["text"]"#)?;
        for name in HARMLESS {
            given.take(name);
        }
        given.finish("")?;
        Ok(Self { model, conversation, sampling, stop, max_tokens, stream, include_usage })
    }
}

/// Holds each setting against the engine's range for it, alone, so that the error can name it.
fn check_ranges(given: &SamplingOptions) -> Result<(), ApiError> {
    let none = SamplingOptions::default;
    let alone = [
        ("temperature", SamplingOptions { temperature: given.temperature, ..none() }),
        ("top_p", SamplingOptions { top_p: given.top_p, ..none() }),
        ("min_p", SamplingOptions { min_p: given.min_p, ..none() }),
        ("repetition_penalty", SamplingOptions { repetition_penalty: given.repetition_penalty, ..none() }),
        ("presence_penalty", SamplingOptions { presence_penalty: given.presence_penalty, ..none() }),
        ("frequency_penalty", SamplingOptions { frequency_penalty: given.frequency_penalty, ..none() }),
        ("logit_bias", SamplingOptions { logit_bias: given.logit_bias.clone(), ..none() }),
    ];
    for (name, option) in alone {
        // Which tokens there are is not known before the model is.
        let resolved = option.resolve(&GenerationDefaults::default(), usize::MAX);
        resolved.map_err(|failure| ApiError::parameter(name, failure.message))?;
    }
    Ok(())
}

/// Checks a message and brings it into the form that templates read.
fn read_message(index: usize, message: Value) -> Result<Value, ApiError> {
    let at = |key: &str| format!("messages[{index}].{key}");
    let Value::Object(map) = message else {
        return Err(wrong(&format!("messages[{index}]"), &message, "an object"));
    };
    let mut given = Parameters { map };
    let role = match given.take("role") {
        Some(Value::String(role)) => role,
        Some(other) => return Err(wrong(&at("role"), &other, "a string")),
        None => return Err(ApiError::parameter(at("role"), format!("{} is missing", at("role")))),
    };
    let role = match role.as_str() {
        // OpenAI's newer name for the same; templates know the older one.
        "developer" => "system",
        "system" | "user" | "assistant" | "tool" => &role,
        _ => {
            let message =
                format!("{} is {role:?}, expected system, developer, user, assistant or tool", at("role"));
            return Err(ApiError::parameter(at("role"), message));
        }
    };
    let mut out = Map::new();
    out.insert("role".to_owned(), role.into());
    match given.take("content") {
        Some(Value::String(text)) => {
            out.insert("content".to_owned(), text.into());
        }
        Some(Value::Array(parts)) => {
            out.insert("content".to_owned(), join_parts(&at("content"), &parts)?.into());
        }
        Some(other) => return Err(wrong(&at("content"), &other, "a string or a list of text parts")),
        None if role == "assistant" && given.map.contains_key("tool_calls") => {}
        None => return Err(ApiError::parameter(at("content"), format!("{} is missing", at("content")))),
    }
    for key in ["name", "tool_calls", "tool_call_id", "reasoning_content"] {
        if let Some(value) = given.take(key) {
            out.insert(key.to_owned(), value);
        }
    }
    given.finish(&at(""))?;
    Ok(Value::Object(out))
}

fn join_parts(at: &str, parts: &[Value]) -> Result<String, ApiError> {
    let text = |part: &Value| match (part.get("type").and_then(Value::as_str), part.get("text")) {
        (Some("text"), Some(Value::String(text))) => Ok(text.clone()),
        (Some("text") | None, _) => Err(ApiError::parameter(at, format!("{at} has a part without text"))),
        (Some(other), _) => {
            Err(ApiError::parameter(at, format!("{at} has a part of type {other}; Perch reads text only")))
        }
    };
    parts.iter().map(text).collect()
}

/// An object whose keys are taken out one by one, so that what remains is unknown.
struct Parameters {
    map: Map<String, Value>,
}

impl Parameters {
    /// A value that was given; `null` is as good as nothing.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    fn read<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| wrong(name, &value, expected))
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        self.read(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        self.read(name, "true or false", Value::as_bool)
    }

    fn number(&mut self, name: &str) -> Result<Option<f32>, ApiError> {
        self.read(name, "a number", |value| value.as_f64().map(|number| number as f32))
    }

    fn count(&mut self, name: &str) -> Result<Option<usize>, ApiError> {
        self.read(name, "a whole number", |value| usize::try_from(value.as_u64()?).ok())
    }

    fn positive(&mut self, name: &str) -> Result<Option<usize>, ApiError> {
        self.read(name, "a whole number of at least 1", |value| {
            usize::try_from(value.as_u64()?).ok().filter(|count| *count > 0)
        })
    }

    /// Any 64-bit integer is a seed, negative ones included.
    fn seed(&mut self) -> Result<Option<u64>, ApiError> {
        self.read("seed", "a whole number", |value| {
            value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned))
        })
    }

    fn object(&mut self, name: &str) -> Result<Option<Parameters>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Parameters { map })),
            Some(other) => Err(wrong(name, &other, "an object")),
        }
    }

    fn stop(&mut self) -> Result<Vec<String>, ApiError> {
        let read = |value: &Value| match value {
            Value::String(stop) => Some(vec![stop.clone()]),
            Value::Array(stops) => stops.iter().map(|stop| stop.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        let stops = self.read("stop", "a string or a list of strings", read)?.unwrap_or_default();
        if stops.len() > MOST_STOPS || stops.iter().any(String::is_empty) {
            let message = format!("stop takes at most {MOST_STOPS} strings, none of them empty");
            return Err(ApiError::parameter("stop", message));
        }
        Ok(stops)
    }

    fn logit_bias(&mut self) -> Result<Vec<(u32, f32)>, ApiError> {
        let entry = |(token, bias): (&String, &Value)| Some((token.parse().ok()?, bias.as_f64()? as f32));
        let read = |value: &Value| value.as_object()?.iter().map(entry).collect::<Option<Vec<_>>>();
        Ok(self.read("logit_bias", "an object of token ids with numbers", read)?.unwrap_or_default())
    }

    /// A parameter of which one value can be honoured.
    fn only(&mut self, name: &str, allowed: impl Fn(&Value) -> bool, which: &str) -> Result<(), ApiError> {
        match self.take(name) {
            Some(value) if !allowed(&value) => Err(ApiError::parameter(
                name,
                format!("{name} is not supported by this version, except as {which}"),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses what nobody took.
    fn finish(self, within: &str) -> Result<(), ApiError> {
        let unknown = self.map.iter().find(|(_, value)| !value.is_null());
        match unknown {
            None => Ok(()),
            Some((name, _)) => {
                let name = format!("{within}{name}");
                Err(ApiError::parameter(
                    &name,
                    format!("{name} is not a parameter that this version of Perch knows"),
                ))
            }
        }
    }
}

fn wrong(name: &str, value: &Value, expected: &str) -> ApiError {
    ApiError::parameter(name, format!("{name} is {}, expected {expected}", kind(value)))
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
