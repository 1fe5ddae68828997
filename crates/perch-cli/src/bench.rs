//! Speed and memory of a model on this machine.

use std::time::{Duration, Instant};

use perch_engine::{Event, Failure, ModelHandle, Priority, Prompt, Request, SamplingParams};
use serde_json::json;

use crate::arguments::Bench;
use crate::models;
use crate::output::{Output, failure};

/// What was measured of one request.
struct Measured {
    /// From sending to the first token.
    first_token: Duration,
    prefill: Duration,
    decode: Duration,
    ended: Instant,
}

pub(crate) async fn bench(options: Bench, output: &mut Output) -> Result<(), Failure> {
    if options.prompt == 0 || options.generate < 2 || options.parallel == 0 {
        return Err(failure(
            "--prompt and --parallel need at least 1, --generate at least 2",
            "Give larger numbers.",
        ));
    }
    let (_runtime, handle) = models::load(Some(&options.model), options.device).await?;
    // The first request touches every weight and wakes every thread; it is not counted.
    measure(&handle, options.prompt.min(32), 8, 0).await?;
    let begun = Instant::now();
    let requests = (0..options.parallel).map(|index| {
        let (handle, prompt, generate) = (handle.clone(), options.prompt, options.generate);
        tokio::spawn(async move { measure(&handle, prompt, generate, index as u32 + 1).await })
    });
    let requests: Vec<_> = requests.collect();
    let mut all = Vec::new();
    for request in requests {
        all.push(request.await.map_err(|_| failure("a request broke off", "Please report it."))??);
    }
    let parallel = options.parallel as f64;
    let (prefill, decode) = match all.as_slice() {
        [one] => (
            options.prompt as f64 / one.prefill.as_secs_f64(),
            (options.generate - 1) as f64 / one.decode.as_secs_f64(),
        ),
        all => {
            // Together: prompts until the last first token, replies from then on over the whole run.
            let prompts = all.iter().map(|one| one.first_token).max().unwrap_or_default();
            let ended = all.iter().map(|one| one.ended).max().unwrap_or(begun) - begun;
            (
                parallel * options.prompt as f64 / prompts.as_secs_f64(),
                parallel * options.generate as f64 / ended.as_secs_f64(),
            )
        }
    };
    let first = all.iter().map(|one| one.first_token.as_secs_f64() * 1e3).sum::<f64>() / parallel;
    let device = handle.info().choice.device.as_str();
    let peak = peak_memory();
    if options.json {
        return output.json(&json!({
            "prefill_tokens_per_second": prefill,
            "decode_tokens_per_second": decode,
            "time_to_first_token_ms": first,
            "peak_memory_bytes": peak,
            "device": device,
        }));
    }
    output.line(&format!("{} on {device}, {} at a time", handle.info().id, options.parallel));
    output.line(&format!("  prompt       {prefill:.1} tokens/s"));
    output.line(&format!("  reply        {decode:.1} tokens/s"));
    output.line(&format!("  first token  {first:.0} ms"));
    output.line(&format!("  peak memory  {:.1} MB", peak as f64 / 1e6));
    Ok(())
}

async fn measure(
    handle: &ModelHandle,
    prompt: usize,
    generate: usize,
    stream: u32,
) -> Result<Measured, Failure> {
    let vocab_size = handle.info().vocab_size as u64;
    // Any tokens will do, the same for each run: a linear congruential generator (Knuth's MMIX constants).
    let mut state = u64::from(stream);
    let tokens = (0..prompt).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % vocab_size) as u32
    });
    let request = Request {
        prompt: Prompt::Tokens(tokens.collect()),
        sampling: SamplingParams::greedy(),
        stop: Vec::new(),
        max_tokens: Some(generate),
        ignore_end: true,
        priority: Priority::Person,
    };
    let begun = Instant::now();
    let mut generation = handle.generate(request)?;
    let mut first_token = Duration::ZERO;
    while let Some(event) = generation.recv().await {
        match event {
            Event::Piece { .. } if first_token.is_zero() => first_token = begun.elapsed(),
            Event::Done { timings, .. } => {
                let (prefill, decode) = (timings.prefill, timings.decode);
                return Ok(Measured { first_token, prefill, decode, ended: Instant::now() });
            }
            Event::Failed(failure) => return Err(failure),
            _ => {}
        }
    }
    Err(failure("the model went away", "Try again."))
}

/// The most memory that this process has held, in bytes.
fn peak_memory() -> u64 {
    use nix::sys::resource::{UsageWho, getrusage};
    // Linux counts in kilobytes, macOS in bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| u64::try_from(usage.max_rss()).unwrap_or(0) * unit)
}
