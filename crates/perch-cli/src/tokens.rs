//! Commands on token ids, for comparing with a reference.

use perch_engine::{Event, Failure, ModelHandle, Priority, Prompt, Request, SamplingParams};
use serde_json::json;

use crate::arguments::{Generate, Logits};
use crate::models;
use crate::output::Output;

pub(crate) async fn logits(options: Logits, output: &mut Output) -> Result<(), Failure> {
    let (_runtime, handle) = models::load(Some(&options.model), options.device).await?;
    let rows = handle.logits(options.tokens).await?;
    let argmax: Vec<usize> = rows.iter().map(|row| largest(row, 1)[0].0).collect();
    let top = rows.last().map(|row| largest(row, options.top)).unwrap_or_default();
    if options.json {
        return output.json(&json!({ "argmax": argmax, "top": top }));
    }
    output.line(&format!("most likely after each position: {argmax:?}"));
    for (token, logit) in top {
        output.line(&format!("{token:>8}  {logit:.5}"));
    }
    Ok(())
}

pub(crate) async fn generate(options: Generate, output: &mut Output) -> Result<(), Failure> {
    let (_runtime, handle) = models::load(Some(&options.model), options.device).await?;
    let info = handle.info();
    let sampling = if options.greedy {
        SamplingParams::greedy()
    } else {
        options.sampling.options().resolve(&info.defaults, info.vocab_size)?
    };
    let request = Request {
        prompt: Prompt::Tokens(options.tokens),
        sampling,
        stop: options.sampling.stop,
        max_tokens: options.sampling.max_tokens,
        ignore_end: true,
        priority: Priority::Person,
    };
    let tokens = all_tokens(&handle, request).await?;
    if options.json {
        return output.json(&json!({ "tokens": tokens }));
    }
    let words: Vec<_> = tokens.iter().map(u32::to_string).collect();
    output.line(&words.join(" "));
    Ok(())
}

async fn all_tokens(handle: &ModelHandle, request: Request) -> Result<Vec<u32>, Failure> {
    let mut generation = handle.generate(request)?;
    let mut all = Vec::new();
    while let Some(event) = generation.recv().await {
        match event {
            Event::Piece { tokens, .. } => all.extend(tokens),
            Event::Failed(failure) => return Err(failure),
            Event::Queued { .. } | Event::Prefill { .. } | Event::Done { .. } => {}
        }
    }
    Ok(all)
}

/// The `count` largest with their places, largest first; of equal ones the first.
fn largest(row: &[f32], count: usize) -> Vec<(usize, f32)> {
    let mut all: Vec<_> = row.iter().copied().enumerate().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(count);
    all
}
