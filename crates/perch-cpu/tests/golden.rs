//! Every fixture against the reference's logits and greedy continuations.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::path::{Path, PathBuf};

use perch_cpu::{Cpu, Simd};
use perch_model::Model as Files;
use perch_nn::model::{Model, Output, Span, SpanOutput, StepTokens};
use perch_nn::sampling::SamplingParams;
use perch_nn::{BackendError, Decoder};
use serde_json::Value;

fn folders(kind: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(kind);
    let mut list: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    list.sort();
    list
}

fn load(folder: &Path, simd: Simd, threads: usize) -> Decoder<Cpu> {
    let files = Files::open(folder).unwrap();
    Decoder::load(Cpu::with_simd(Some(threads), simd), files.spec, &files.checkpoint, &mut |_| {}).unwrap()
}

fn numbers<T>(value: &Value, map: impl Fn(f64) -> T) -> Vec<T> {
    value.as_array().unwrap().iter().map(|n| map(n.as_f64().unwrap())).collect()
}

/// Logits of every position, the prompt given in chunks of the lengths in `chunks`, over and over.
fn logits(model: &mut dyn Model, prompt: &[u32], chunks: &[usize]) -> Vec<Vec<f32>> {
    let sequence = model.open(&SamplingParams::greedy(), &[]);
    let (mut rows, mut rest, mut chunks) = (Vec::new(), prompt, chunks.iter().cycle());
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at((*chunks.next().unwrap()).min(rest.len()));
        rest = after;
        let span = Span { sequence, tokens: StepTokens::Known(chunk.to_vec()), output: Output::Logits };
        let pending = model.submit(&[span]).unwrap();
        let Some(SpanOutput::Logits(values)) = model.wait(pending).unwrap().pop() else {
            panic!("no logits")
        };
        rows.extend(values.chunks(model.spec().vocab_size).map(<[f32]>::to_vec));
    }
    model.close(sequence);
    rows
}

/// Greedy continuation with every step but the first fed from the token that is still on the device.
fn greedy(model: &mut dyn Model, prompt: &[u32], count: usize) -> Vec<u32> {
    let sequence = model.open(&SamplingParams::greedy(), prompt);
    let first = Span { sequence, tokens: StepTokens::Known(prompt.to_vec()), output: Output::Token };
    let next = Span { sequence, tokens: StepTokens::Sampled, output: Output::Token };
    let mut pending = model.submit(&[first]).unwrap();
    let mut tokens = Vec::new();
    while tokens.len() < count {
        let ahead = model.submit(std::slice::from_ref(&next)).unwrap();
        match model.wait(pending).unwrap()[0] {
            SpanOutput::Token(token) => tokens.push(token),
            ref other => panic!("{other:?}"),
        }
        pending = ahead;
    }
    model.wait(pending).unwrap();
    model.close(sequence);
    tokens
}

fn argmax(logits: &[f32]) -> usize {
    (0..logits.len()).rev().max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap()
}

/// `pN.{name}` of `golden.safetensors`.
fn reference_logits(folder: &Path, key: &str, name: &str) -> Vec<f32> {
    let bytes = std::fs::read(folder.join("golden.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = tensors.tensor(&format!("{key}.{name}")).unwrap();
    tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn instruction_sets() -> Vec<Simd> {
    let mut sets = vec![Simd::Portable, Simd::detect()];
    sets.dedup();
    sets
}

#[test]
fn dense_models_match_the_reference() {
    for folder in folders("models") {
        let golden: Value =
            serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap();
        for simd in instruction_sets() {
            let mut model = load(&folder, simd, 2);
            for prompt in golden["prompts"].as_array().unwrap() {
                let key = prompt["key"].as_str().unwrap();
                let at = format!("{} {key} {simd:?}", folder.display());
                let ids = numbers(&prompt["ids"], |n| n as u32);
                let reference = reference_logits(&folder, key, "logits");
                for chunks in [&[1000][..], &[1], &[5, 1, 17]] {
                    let rows = logits(&mut model, &ids, chunks);
                    let found: Vec<usize> = rows.iter().map(|row| argmax(row)).collect();
                    assert_eq!(found, numbers(&prompt["argmax"], |n| n as usize), "{at} {chunks:?}");
                    let last = rows.last().unwrap();
                    let worst = last.iter().zip(&reference).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    assert!(worst < 1e-3, "{at} {chunks:?}: logits differ by {worst}");
                }
                let expected = numbers(&prompt["greedy"], |n| n as u32);
                assert_eq!(greedy(&mut model, &ids, expected.len()), expected, "{at}");
            }
        }
    }
}

#[test]
fn quantised_models_match_the_reference_within_what_rounding_activations_costs() {
    for folder in folders("mlx") {
        let golden: Value =
            serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap();
        for simd in instruction_sets() {
            let mut model = load(&folder, simd, 2);
            for prompt in golden["prompts"].as_array().unwrap() {
                let key = prompt["key"].as_str().unwrap();
                let at = format!("{} {key} {simd:?}", folder.display());
                let ids = numbers(&prompt["ids"], |n| n as u32);
                let reference = reference_logits(&folder, key, "float32");
                let rows = logits(&mut model, &ids, &[7]);
                let last = rows.last().unwrap();
                let n = reference.len() as f32;
                let mean = reference.iter().sum::<f32>() / n;
                let deviation = (reference.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / n).sqrt();
                let rms = (last.iter().zip(&reference).map(|(a, b)| (a - b).powi(2)).sum::<f32>() / n).sqrt();
                let worst = last.iter().zip(&reference).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                println!("{at}: relative RMS {:.4}, worst {worst:.3}", rms / deviation);
                assert!(rms / deviation < 0.002, "{at}: relative RMS {}", rms / deviation);

                let expected = numbers(&prompt["float32"]["greedy"], |n| n as u32);
                let margins = numbers(&prompt["float32"]["greedy_margin"], |n| n as f32);
                let sure = margins.iter().position(|&margin| margin < 3.0 * worst).unwrap_or(margins.len());
                let found = greedy(&mut model, &ids, expected.len());
                assert_eq!(found[..sure], expected[..sure], "{at}");
            }
        }
    }
}

#[test]
fn sequences_in_one_step_do_not_disturb_each_other() {
    let mut model = load(&folders("models").pop().unwrap(), Simd::detect(), 2);
    let prompts: [&[u32]; 3] = [&[5, 6, 7, 8, 9], &[100], &[42, 43, 44]];
    let alone: Vec<_> = prompts.iter().map(|prompt| greedy(&mut model, prompt, 12)).collect();

    let ids: Vec<_> = prompts.iter().map(|prompt| model.open(&SamplingParams::greedy(), prompt)).collect();
    let mut together = vec![Vec::new(); prompts.len()];
    for step in 0..12 {
        let spans: Vec<_> = prompts
            .iter()
            .zip(&ids)
            .map(|(prompt, &sequence)| Span {
                sequence,
                tokens: if step == 0 { StepTokens::Known(prompt.to_vec()) } else { StepTokens::Sampled },
                output: Output::Token,
            })
            .collect();
        let pending = model.submit(&spans).unwrap();
        for (output, tokens) in model.wait(pending).unwrap().into_iter().zip(&mut together) {
            let SpanOutput::Token(token) = output else { panic!("{output:?}") };
            tokens.push(token);
        }
    }
    assert_eq!(together, alone);
}

#[test]
fn an_unknown_token_an_empty_span_and_an_unknown_sequence_are_refused() {
    let mut model = load(&folders("models").pop().unwrap(), Simd::detect(), 1);
    let sequence = model.open(&SamplingParams::greedy(), &[]);
    let span = |sequence, tokens| Span { sequence, tokens, output: Output::Token };
    let outside = model.submit(&[span(sequence, StepTokens::Known(vec![1_000_000]))]);
    assert!(matches!(outside, Err(BackendError::UnknownToken { token: 1_000_000, .. })));
    let sequence = model.open(&SamplingParams::greedy(), &[]);
    let empty = model.submit(&[span(sequence, StepTokens::Known(Vec::new()))]);
    assert!(matches!(empty, Err(BackendError::EmptySpan(_))));
    model.close(sequence);
    let closed = model.submit(&[span(sequence, StepTokens::Known(vec![1]))]);
    assert!(matches!(closed, Err(BackendError::UnknownSequence(_))));
}
