//! Talking to a model in the terminal.

use std::io::{BufRead, IsTerminal};

use perch_engine::{Conversation, Event, Failure, FinishReason, ModelHandle, Priority, Prompt, Request};
use serde_json::{Value, json};

use crate::arguments::{Chat, Run, Sampling};
use crate::models;
use crate::output::Output;

pub(crate) async fn run(options: Run, output: &mut Output) -> Result<(), Failure> {
    let (model, prompt) = match options.model_and_prompt.as_slice() {
        [model, prompt] => (Some(model.as_str()), prompt),
        [prompt] => (None, prompt),
        _ => return Err(crate::output::failure("a prompt is needed", "See perch run --help.")),
    };
    let (_runtime, handle) = models::load(model, options.device).await?;
    let mut messages = system(options.system.as_deref());
    messages.push(json!({ "role": "user", "content": prompt }));
    let reason = answer(&handle, messages, &options.sampling, output).await?.1;
    output.line("");
    if reason == Some(FinishReason::Length) {
        output.note("The reply was cut: it reached the limit of tokens.");
    }
    Ok(())
}

pub(crate) async fn chat(options: Chat, output: &mut Output) -> Result<(), Failure> {
    let (_runtime, handle) = models::load(options.model.as_deref(), options.device).await?;
    let info = handle.info();
    output.note(&format!("{} · {}", info.id, info.choice.reason));
    output.note("Ctrl-C stops a reply. /new starts over, /exit ends.");
    let mut lines = read_lines();
    let mut messages = system(options.system.as_deref());
    loop {
        if std::io::stdin().is_terminal() {
            output.text("\n> ");
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(line) = line else { break };
        match line.trim() {
            "" => continue,
            "/exit" | "/quit" => break,
            "/new" => {
                messages = system(options.system.as_deref());
                output.note("A new conversation.");
                continue;
            }
            text => messages.push(json!({ "role": "user", "content": text })),
        }
        match answer(&handle, messages.clone(), &options.sampling, output).await {
            Ok((reply, reason)) => {
                output.line("");
                if reason.is_none() {
                    output.note("(stopped)");
                }
                messages.push(json!({ "role": "assistant", "content": reply }));
            }
            Err(failure) => {
                messages.pop();
                output.failure(&failure, false);
            }
        }
    }
    output.line("");
    Ok(())
}

/// Streams one reply; no reason when it was stopped by Ctrl-C.
async fn answer(
    handle: &ModelHandle,
    messages: Vec<Value>,
    sampling: &Sampling,
    output: &mut Output,
) -> Result<(String, Option<FinishReason>), Failure> {
    let info = handle.info();
    let request = Request {
        prompt: Prompt::Chat(Conversation::new(messages)),
        sampling: sampling.options().resolve(&info.defaults, info.vocab_size)?,
        stop: sampling.stop.clone(),
        max_tokens: sampling.max_tokens,
        ignore_end: false,
        priority: Priority::Person,
    };
    let mut generation = handle.generate(request)?;
    let mut reply = String::new();
    loop {
        let event = tokio::select! {
            event = generation.recv() => event,
            _ = tokio::signal::ctrl_c() => return Ok((reply, None)),
        };
        match event {
            Some(Event::Piece { text, .. }) => {
                output.text(&text);
                reply.push_str(&text);
            }
            Some(Event::Done { reason, .. }) => return Ok((reply, Some(reason))),
            Some(Event::Failed(failure)) => return Err(failure),
            Some(Event::Queued { .. } | Event::Prefill { .. }) => {}
            None => return Ok((reply, None)),
        }
    }
}

fn system(text: Option<&str>) -> Vec<Value> {
    text.map(|text| json!({ "role": "system", "content": text })).into_iter().collect()
}

/// Lines of standard input, read on a thread of their own, since reading a terminal cannot be broken off.
fn read_lines() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
