//! Commands that read a model and compute nothing.

use perch_engine::{Conversation, ErrorCode, Failure};
use perch_model::ModelError;
use perch_model::template::{ChatTemplate, SpecialTokens};
use serde_json::{Value, json};

use crate::arguments::{Inspect, Render, Tokenize};
use crate::models;
use crate::output::{Output, failure};

pub(crate) fn inspect(options: &Inspect, output: &mut Output) -> Result<(), Failure> {
    let verdict = perch_model::inspect(&options.path)?;
    if options.json {
        return output.json(&verdict);
    }
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let unknown = || "unknown".to_owned();
    output.line(&verdict.name);
    let rows = [
        ("family", verdict.family.clone().unwrap_or_else(unknown)),
        ("parameters", format!("{:.2} M", verdict.parameters as f64 / 1e6)),
        ("form", verdict.form.clone().unwrap_or_else(unknown)),
        ("bits a weight", verdict.bits_per_weight.map_or_else(unknown, |bits| format!("{bits:.2}"))),
        ("context", verdict.max_context.map_or_else(unknown, |context| format!("{context} tokens"))),
        ("chat template", yes(verdict.has_template).to_owned()),
        ("tools", yes(verdict.tools).to_owned()),
        ("thinking", yes(verdict.thinking).to_owned()),
        ("on disk", format!("{:.1} MB", verdict.bytes_on_disk as f64 / 1e6)),
        ("can be run", yes(verdict.runnable).to_owned()),
    ];
    for (name, value) in rows {
        output.line(&format!("  {name:<14} {value}"));
    }
    for memory in &verdict.memory {
        output.line(&format!(
            "  memory at {:>7} tokens  {:.1} MB",
            memory.context,
            memory.bytes as f64 / 1e6
        ));
    }
    for problem in &verdict.problems {
        output.line(&format!("  problem: {}", problem.message));
        if let Some(hint) = &problem.hint {
            output.line(&format!("           {hint}"));
        }
    }
    Ok(())
}

pub(crate) fn tokenize(options: &Tokenize, output: &mut Output) -> Result<(), Failure> {
    let path = models::find(Some(&options.model))?;
    let folder = if path.is_file() { path.parent().unwrap_or(&path).to_owned() } else { path };
    let tokenizer = perch_model::tokenizer::Tokenizer::open(&folder)?;
    let ids = tokenizer.encode(&options.text, true)?;
    let pieces: Vec<_> = ids.iter().map(|&id| tokenizer.token(id).unwrap_or_default()).collect();
    if options.json {
        return output.json(&json!({ "ids": ids, "tokens": pieces }));
    }
    for (id, piece) in ids.iter().zip(pieces) {
        output.line(&format!("{id:>8}  {piece}"));
    }
    Ok(())
}

/// A template that fails is this command's answer too: `{"error": …}` and exit code 0, so that a comparison with a
/// reference can read both.
pub(crate) fn render(options: &Render, output: &mut Output) -> Result<(), Failure> {
    let path = &options.messages;
    let hint = "Give a file like {\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}.";
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(ErrorCode::Io, format!("{}: {error}", path.display()), hint))?;
    let given: Value = serde_json::from_str(&text)
        .map_err(|error| failure(format!("{} is not JSON: {error}", path.display()), hint))?;
    let Some(messages) = given.get("messages").and_then(Value::as_array) else {
        return Err(failure(format!("{} has no list of messages", path.display()), hint));
    };
    let flag = |name: &str| given.get(name).and_then(Value::as_bool);
    let conversation = Conversation {
        messages: messages.clone(),
        tools: given.get("tools").and_then(Value::as_array).cloned(),
        add_generation_prompt: flag("add_generation_prompt").unwrap_or(false),
        enable_thinking: flag("enable_thinking"),
        continue_final_message: flag("continue_final_message").unwrap_or(false),
    };
    let rendered = template(options, &given).and_then(|template| Ok(template.render(&conversation)?));
    match rendered {
        Ok(text) if options.json => output.json(&json!({ "text": text })),
        Ok(text) => {
            output.line(&text);
            Ok(())
        }
        Err(failure) if options.json && failure.code == ErrorCode::Template => {
            let prefix = "the model's chat template failed: ";
            let message = failure.message.strip_prefix(prefix).unwrap_or(&failure.message);
            output.json(&json!({ "error": message }))
        }
        Err(failure) => Err(failure),
    }
}

fn template(options: &Render, given: &Value) -> Result<ChatTemplate, Failure> {
    let token = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
    let special = SpecialTokens {
        bos_token: token("bos_token"),
        eos_token: token("eos_token"),
        pad_token: token("pad_token"),
        unk_token: token("unk_token"),
    };
    if let Some(path) = &options.template {
        let source = std::fs::read_to_string(path).map_err(|error| {
            Failure::new(ErrorCode::Io, format!("{}: {error}", path.display()), "Give a template file.")
        })?;
        return Ok(ChatTemplate::new(source, special)?);
    }
    let model = perch_model::Model::open(&models::find(options.model.as_deref())?)?;
    let missing = ModelError::MissingFile { folder: model.path, file: "chat_template.jinja".to_owned() };
    let template = model.template.ok_or(missing)?;
    Ok(template.with_special_tokens(special))
}
