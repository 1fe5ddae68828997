//! Times prefill and decode of a model folder on the CPU backend, without a tokenizer and without the engine:
//!
//! ```sh
//! cargo run --release -p perch-cpu --example decode -- FOLDER [prompt tokens] [generated tokens] [threads]
//! ```

use std::io::Write;
use std::time::Instant;

use perch_cpu::{Cpu, Simd};
use perch_nn::model::{Model, Output, Span, StepTokens};
use perch_nn::sampling::SamplingParams;
use perch_nn::{BackendError, Decoder};

/// Prompt tokens that go into one step, as the engine does it.
const CHUNK: usize = 512;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: decode FOLDER [prompt] [generate] [threads]")?;
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (prompt, generate) = (number(512)?.max(1), number(64)?);
    let cpu = Cpu::new(Some(number(Cpu::default_threads())?));
    let threads = cpu.threads();
    let files = perch_model::Model::open(folder.as_ref())?;

    let started = Instant::now();
    let mut model = Decoder::load(cpu, files.spec, &files.checkpoint, &mut |_| {})?;
    let load = started.elapsed().as_secs_f64();
    let vocab = model.spec().vocab_size;
    let prompt: Vec<u32> = (0..prompt).map(|index| (index * 7919 % vocab) as u32).collect();
    // The first step finds cold memory and sleeping threads.
    time(&mut model, &prompt[..1], 2)?;
    let (prefill, decode) = time(&mut model, &prompt, generate)?;
    writeln!(
        std::io::stdout(),
        "{}, {threads} threads: loaded in {load:.2} s, prefill {:.1} tok/s ({} tokens), \
         decode {:.2} tok/s ({generate} tokens)",
        Simd::detect().name(),
        prompt.len() as f64 / prefill,
        prompt.len(),
        generate as f64 / decode,
    )?;
    Ok(())
}

/// Seconds for the prompt up to the first token, and for as many more as `generate` says.
fn time(model: &mut dyn Model, prompt: &[u32], generate: usize) -> Result<(f64, f64), BackendError> {
    let sequence = model.open(&SamplingParams::greedy(), prompt);
    let started = Instant::now();
    for (index, chunk) in prompt.chunks(CHUNK).enumerate() {
        let last = (index + 1) * CHUNK >= prompt.len();
        let output = if last { Output::Token } else { Output::Nothing };
        let pending =
            model.submit(&[Span { sequence, tokens: StepTokens::Known(chunk.to_vec()), output }])?;
        model.wait(pending)?;
    }
    let prefill = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let next = [Span { sequence, tokens: StepTokens::Sampled, output: Output::Token }];
    for _ in 0..generate {
        let pending = model.submit(&next)?;
        model.wait(pending)?;
    }
    let decode = started.elapsed().as_secs_f64();
    model.close(sequence);
    Ok((prefill, decode))
}
