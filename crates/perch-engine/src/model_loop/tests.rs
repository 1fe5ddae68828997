//! The loop against a model whose every answer is known.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use perch_model::DecoderSpec;
use perch_nn::model::Pending;

use super::*;
use crate::generation::Generation;
use crate::handle::ModelHandle;
use crate::machine::{Choice, Device};
use crate::request::{Prompt, Request};

/// Gives `last token + 1` after each token; notes every step; breaks on request.
struct Counting {
    spec: DecoderSpec,
    last: HashMap<SequenceId, u32>,
    opened: u64,
    results: Vec<SpanOutput>,
    steps: Arc<Mutex<Vec<Vec<Span>>>>,
    break_at: Option<(usize, Break)>,
    /// Waited for before each step, so that a test decides when steps happen.
    gate: Option<mpsc::Receiver<()>>,
}

#[derive(Clone, Copy)]
enum Break {
    Panic,
    Error,
}

impl Model for Counting {
    fn spec(&self) -> &DecoderSpec {
        &self.spec
    }

    fn open(&mut self, _: &SamplingParams, _: &[u32]) -> SequenceId {
        self.opened += 1;
        SequenceId(self.opened)
    }

    fn close(&mut self, sequence: SequenceId) {
        self.last.remove(&sequence);
    }

    fn submit(&mut self, spans: &[Span]) -> Result<Pending, BackendError> {
        if let Some(gate) = &self.gate {
            gate.recv().ok();
        }
        self.steps.lock().unwrap().push(spans.to_vec());
        match self.break_at {
            Some((step, Break::Panic)) if step == self.steps.lock().unwrap().len() => panic!("as asked"),
            Some((step, Break::Error)) if step == self.steps.lock().unwrap().len() => {
                return Err(BackendError::NotFinite);
            }
            _ => {}
        }
        self.results = spans
            .iter()
            .map(|span| {
                let last = match &span.tokens {
                    StepTokens::Known(tokens) => *tokens.last().unwrap(),
                    StepTokens::Sampled => self.last[&span.sequence],
                };
                self.last.insert(span.sequence, if span.output == Output::Token { last + 1 } else { last });
                match span.output {
                    Output::Token => SpanOutput::Token(last + 1),
                    _ => SpanOutput::Nothing,
                }
            })
            .collect();
        Ok(Pending(0))
    }

    fn wait(&mut self, _: Pending) -> Result<Vec<SpanOutput>, BackendError> {
        Ok(std::mem::take(&mut self.results))
    }
}

/// Tokens for which the rig has memory: two replies can begin, but not both go on to the end of the context.
const BUDGET: usize = 550;

type Steps = Arc<Mutex<Vec<Vec<Span>>>>;

struct Rig {
    handle: ModelHandle,
    steps: Steps,
    thread: std::thread::JoinHandle<Result<(), Failure>>,
}

fn rig(break_at: Option<(usize, Break)>, gate: Option<mpsc::Receiver<()>>) -> Rig {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/models/qwen3");
    let files = perch_model::Model::open(&folder).unwrap();
    let (commands, receiver) = mpsc::channel();
    let info = Arc::new(ModelInfo {
        id: "counting".to_owned(),
        path: folder,
        family: files.family.name,
        context: 400,
        memory_context: 400,
        cache_budget: files.footprint.cache_bytes(BUDGET),
        vocab_size: files.spec.vocab_size,
        choice: Choice { device: Device::Cpu, reason: String::new() },
        defaults: files.defaults,
        tokenizer: files.tokenizer,
        template: files.template,
        footprint: files.footprint,
    });
    let handle = ModelHandle { info: info.clone(), commands, open: Arc::new(AtomicUsize::new(0)) };
    let steps = Steps::default();
    let noted = steps.clone();
    let thread = std::thread::spawn(move || {
        let model = Counting {
            spec: files.spec,
            last: HashMap::new(),
            opened: 0,
            results: Vec::new(),
            steps: noted,
            break_at,
            gate,
        };
        run(Box::new(model), info, &receiver)
    });
    Rig { handle, steps, thread }
}

fn request(prompt: Vec<u32>, max_tokens: usize) -> Request {
    Request {
        prompt: Prompt::Tokens(prompt),
        sampling: SamplingParams::greedy(),
        stop: Vec::new(),
        max_tokens: Some(max_tokens),
        ignore_end: true,
        priority: Priority::Client,
    }
}

fn tokens(generation: &mut Generation) -> (Vec<u32>, Option<Event>) {
    let mut all = Vec::new();
    while let Some(event) = generation.blocking_recv() {
        match event {
            Event::Piece { tokens, .. } => all.extend(tokens),
            Event::Done { .. } | Event::Failed(_) => return (all, Some(event)),
            _ => {}
        }
    }
    (all, None)
}

#[test]
fn a_reply_comes_token_by_token_and_says_how_it_ended() {
    let rig = rig(None, None);
    let mut generation = rig.handle.generate(request(vec![10, 20, 30], 5)).unwrap();
    let (found, end) = tokens(&mut generation);
    assert_eq!(found, [31, 32, 33, 34, 35]);
    let Some(Event::Done { reason: FinishReason::Length, usage, .. }) = end else { panic!("{end:?}") };
    assert_eq!(usage, Usage { prompt_tokens: 3, completion_tokens: 5 });
}

#[test]
fn an_end_token_ends_the_reply() {
    let rig = rig(None, None);
    let end = rig.handle.info().defaults.end_tokens[0];
    let asked = Request { ignore_end: false, ..request(vec![end - 4], 100) };
    let (found, last) = tokens(&mut rig.handle.generate(asked).unwrap());
    assert_eq!(found.last(), Some(&end));
    assert!(matches!(last, Some(Event::Done { reason: FinishReason::Stop, .. })));
}

#[test]
fn a_context_that_would_overflow_is_refused_with_both_numbers() {
    let rig = rig(None, None);
    let failure = rig.handle.generate(request(vec![1; 390], 11)).unwrap_err();
    assert_eq!(failure.code, ErrorCode::ContextExceeded);
    for number in ["390", "11", "400"] {
        assert!(failure.message.contains(number), "{failure}");
    }
    assert!(rig.handle.generate(request(vec![1; 390], 10)).is_ok());
    assert!(rig.handle.generate(Request { max_tokens: None, ..request(vec![1; 400], 1) }).is_err());
}

#[test]
fn dropping_the_receiver_stops_within_one_step_also_in_prefill() {
    for (prompt, steps_before) in [(vec![1; 4], 5), (vec![1; 300], 2)] {
        let (open, gate) = mpsc::channel();
        let rig = rig(None, Some(gate));
        let generation = rig.handle.generate(request(prompt, 90)).unwrap();
        for _ in 0..steps_before {
            open.send(()).unwrap();
        }
        while rig.steps.lock().unwrap().len() < steps_before {
            std::thread::yield_now();
        }
        drop(generation);
        for _ in 0..200 {
            open.send(()).unwrap();
        }
        while rig.handle.is_busy() {
            std::thread::yield_now();
        }
        let steps = rig.steps.lock().unwrap().len();
        assert!(steps <= steps_before + 1, "{steps} steps, {steps_before} before the receiver was dropped");
    }
}

#[test]
fn the_persons_prompt_goes_before_a_clients() {
    let (open, gate) = mpsc::channel();
    let rig = rig(None, Some(gate));
    let _client = rig.handle.generate(request(vec![7; 200], 1)).unwrap();
    open.send(()).unwrap();
    while rig.steps.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    let person = Request { priority: Priority::Person, ..request(vec![9; 200], 1) };
    let mut person = rig.handle.generate(person).unwrap();
    for _ in 0..200 {
        open.send(()).unwrap();
    }
    tokens(&mut person);
    let steps = rig.steps.lock().unwrap();
    let known = |token: u32| {
        let is = move |span: &Span| matches!(&span.tokens, StepTokens::Known(tokens) if tokens[0] == token);
        steps.iter().enumerate().filter(move |(_, spans)| spans.iter().any(is)).map(|(step, _)| step)
    };
    // One step of the client may have been under way; after that, the person's chunks come first.
    assert!(known(7).filter(|step| *step > 1).all(|step| Some(step) > known(9).next_back()), "{steps:?}");
}

#[test]
fn replies_share_steps() {
    let (open, gate) = mpsc::channel();
    let rig = rig(None, Some(gate));
    let mut all: Vec<_> = (0..3).map(|i| rig.handle.generate(request(vec![i * 50], 20)).unwrap()).collect();
    for _ in 0..100 {
        open.send(()).unwrap();
    }
    for (i, generation) in all.iter_mut().enumerate() {
        let first = i as u32 * 50;
        assert_eq!(tokens(generation).0, (first + 1..=first + 20).collect::<Vec<_>>());
    }
    assert!(rig.steps.lock().unwrap().iter().any(|spans| spans.len() == 3));
}

#[test]
fn an_error_ends_its_requests_and_the_loop_goes_on() {
    let rig = rig(Some((3, Break::Error)), None);
    let (_, end) = tokens(&mut rig.handle.generate(request(vec![1], 50)).unwrap());
    assert!(matches!(end, Some(Event::Failed(failure)) if failure.code == ErrorCode::Damaged));
    let (found, _) = tokens(&mut rig.handle.generate(request(vec![1], 3)).unwrap());
    assert_eq!(found, [2, 3, 4]);
}

#[test]
fn a_panic_fails_its_requests_and_ends_the_loop_not_the_program() {
    let rig = rig(Some((2, Break::Panic)), None);
    let (_, end) = tokens(&mut rig.handle.generate(request(vec![1], 50)).unwrap());
    assert!(matches!(end, Some(Event::Failed(failure)) if failure.code == ErrorCode::Internal));
    assert!(rig.thread.join().unwrap().is_err());
    let gone = rig.handle.generate(request(vec![1], 3)).unwrap_err();
    assert_eq!(gone.code, ErrorCode::Unavailable);
}

#[test]
fn stop_strings_end_the_text_and_are_not_given_out() {
    let rig = rig(None, None);
    let tokenizer = rig.handle.info().tokenizer.clone().unwrap();
    let text = tokenizer.decode(&(41..=60).collect::<Vec<_>>(), true).unwrap();
    let stop: String = text.chars().skip(5).take(3).collect();
    let asked = Request { stop: vec![stop.clone()], ..request(vec![40], 20) };
    let mut generation = rig.handle.generate(asked).unwrap();
    let (mut found, mut reason) = (String::new(), None);
    while let Some(event) = generation.blocking_recv() {
        match event {
            Event::Piece { text, .. } => found.push_str(&text),
            Event::Done { reason: why, .. } => reason = Some(why),
            _ => {}
        }
    }
    assert_eq!(found, text[..text.find(&stop).unwrap()]);
    assert_eq!(reason, Some(FinishReason::Stop));
}

#[test]
fn a_reply_without_a_limit_keeps_nobody_out() {
    let (open, gate) = mpsc::channel();
    let rig = rig(None, Some(gate));
    let unlimited = || Request { max_tokens: None, ..request(vec![1], 1) };
    let mut first = rig.handle.generate(unlimited()).unwrap();
    open.send(()).unwrap();
    let mut second = rig.handle.generate(request(vec![100], 5)).unwrap();
    for _ in 0..20 {
        open.send(()).unwrap();
    }
    assert_eq!(tokens(&mut second).0, [101, 102, 103, 104, 105]);

    // Two without a limit begin side by side; when memory runs out, the later one ends in words.
    let mut third = rig.handle.generate(unlimited()).unwrap();
    for _ in 0..1000 {
        open.send(()).unwrap();
    }
    let (written, end) = tokens(&mut third);
    assert!(!written.is_empty());
    assert!(matches!(end, Some(Event::Failed(failure)) if failure.code == ErrorCode::OutOfMemory));
    let (written, end) = tokens(&mut first);
    assert_eq!(written.len(), 399);
    assert!(matches!(end, Some(Event::Done { reason: FinishReason::Length, .. })));
}

#[test]
fn what_waits_is_counted_until_it_is_done() {
    let rig = rig(None, None);
    let mut generation = rig.handle.generate(request(vec![1], 3)).unwrap();
    tokens(&mut generation);
    while rig.handle.open.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
}
