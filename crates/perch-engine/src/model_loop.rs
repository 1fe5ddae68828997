//! The model loop: the one thread that owns a decoder.
//!
//! A step takes in requests, chooses what to compute (every reply that is being written, and one bounded chunk of
//! one prompt, the person's first), computes it, gives pieces out and drops what nobody waits for any more.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use perch_model::{ErrorCode, ModelError};
use perch_nn::BackendError;
use perch_nn::model::{Model, Output, SequenceId, Span, SpanOutput, StepTokens};
use perch_nn::sampling::SamplingParams;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::Failure;
use crate::handle::{ModelInfo, OpenRequest};
use crate::request::{Event, FinishReason, Priority, Timings, Usage};
use crate::text::ReplyText;

/// What is sent to a loop.
#[derive(Debug)]
pub(crate) enum Command {
    /// A request for text.
    Generate(Job),
    /// A request for logits.
    Logits { tokens: Vec<u32>, reply: oneshot::Sender<Result<Vec<Vec<f32>>, Failure>>, open: OpenRequest },
    /// The end.
    Stop,
}

/// A request for text, checked and tokenized.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prompt: Vec<u32>,
    pub(crate) sampling: SamplingParams,
    pub(crate) stop: Vec<String>,
    /// Tokens to generate at most.
    pub(crate) limit: usize,
    pub(crate) ignore_end: bool,
    pub(crate) priority: Priority,
    pub(crate) events: UnboundedSender<Event>,
    pub(crate) sent: Instant,
    #[expect(dead_code, reason = "held so that the request counts as open")]
    pub(crate) open: OpenRequest,
}

/// Replies that are worked on at the same time.
const MOST_ACTIVE: usize = 8;
/// Tokens that a reply has room for beyond what it has written.
const STRETCH: usize = 256;
/// How long a step with a prompt chunk may take: what a person does not feel as waiting.
const STEP_TIME: Duration = Duration::from_millis(200);
/// Bounds of a prompt chunk in tokens.
const CHUNK: std::ops::RangeInclusive<usize> = 16..=512;

/// Runs a model until it is told to stop, nobody holds a handle, or it breaks. Returns why it broke.
pub(crate) fn run(
    model: Box<dyn Model>,
    info: Arc<ModelInfo>,
    commands: &Receiver<Command>,
) -> Result<(), Failure> {
    ModelLoop { model, info, queue: VecDeque::new(), active: Vec::new(), chunk: ChunkSize::new() }
        .run(commands)
}

struct ModelLoop {
    model: Box<dyn Model>,
    info: Arc<ModelInfo>,
    /// Requests that wait, the next one first.
    queue: VecDeque<Waiting>,
    active: Vec<Active>,
    chunk: ChunkSize,
}

struct Waiting {
    job: Job,
    /// The place that was told last.
    told: Option<usize>,
}

/// A request that is being worked on.
struct Active {
    job: Job,
    sequence: SequenceId,
    /// Tokens of the prompt that have been read.
    read: usize,
    generated: usize,
    text: ReplyText,
    started: Instant,
    first_token: Option<Instant>,
}

impl ModelLoop {
    fn run(mut self, commands: &Receiver<Command>) -> Result<(), Failure> {
        loop {
            if !self.take_commands(commands) {
                return Ok(());
            }
            self.drop_abandoned();
            self.admit();
            if self.active.is_empty() {
                continue;
            }
            self.step()?;
            self.relieve();
        }
    }

    /// Takes in what was sent, waiting when there is nothing else to do. False at the end.
    fn take_commands(&mut self, commands: &Receiver<Command>) -> bool {
        loop {
            let idle = self.queue.is_empty() && self.active.is_empty();
            let command = if idle {
                let Ok(command) = commands.recv() else { return false };
                command
            } else {
                match commands.try_recv() {
                    Ok(command) => command,
                    Err(TryRecvError::Empty) => return true,
                    Err(TryRecvError::Disconnected) => return true,
                }
            };
            match command {
                Command::Stop => return false,
                Command::Generate(job) => self.enqueue(job),
                Command::Logits { tokens, reply, open } => {
                    let result = self.logits(&tokens);
                    // Whoever asked may have gone; then nobody needs the answer.
                    drop(reply.send(result));
                    drop(open);
                }
            }
        }
    }

    /// Puts a request behind the last of its own or a higher priority.
    fn enqueue(&mut self, job: Job) {
        let place = self.queue.iter().position(|waiting| waiting.job.priority > job.priority);
        self.queue.insert(place.unwrap_or(self.queue.len()), Waiting { job, told: None });
    }

    fn drop_abandoned(&mut self) {
        self.queue.retain(|waiting| !waiting.job.events.is_closed());
        let model = &mut self.model;
        self.active.retain(|active| {
            let wanted = !active.job.events.is_closed();
            if !wanted {
                model.close(active.sequence);
            }
            wanted
        });
    }

    /// Begins on waiting requests for which there is room, and tells the others their place.
    fn admit(&mut self) {
        while let Some(next) = self.queue.front()
            && (self.active.len() < MOST_ACTIVE || next.job.priority == Priority::Person)
            && self.has_memory_for(&next.job)
        {
            let Some(Waiting { job, .. }) = self.queue.pop_front() else { break };
            let sequence = self.model.open(&job.sampling, &job.prompt);
            let stream = self.info.tokenizer.as_ref().map(perch_model::tokenizer::Tokenizer::stream);
            let text = ReplyText::new(stream, job.stop.clone());
            let started = Instant::now();
            self.active.push(Active {
                job,
                sequence,
                read: 0,
                generated: 0,
                text,
                started,
                first_token: None,
            });
        }
        for (ahead, waiting) in self.queue.iter_mut().enumerate() {
            let ahead = ahead + self.active.len();
            if waiting.told != Some(ahead) {
                waiting.told = Some(ahead);
                tell(&waiting.job, Event::Queued { ahead });
            }
        }
    }

    /// Whether `job` fits beside everything active, each with room to write on for a while. Most replies end long
    /// before their limit, so reserving all of it would let one reply without a limit keep everybody else out.
    fn has_memory_for(&self, job: &Job) -> bool {
        let reserved = |job: &Job, written: usize| {
            let ahead = (job.limit - written.min(job.limit)).min(STRETCH);
            self.info.footprint.cache_bytes(job.prompt.len() + written + ahead)
        };
        let taken: u64 = self.active.iter().map(|active| reserved(&active.job, active.generated)).sum();
        self.active.is_empty() || taken + reserved(job, 0) <= self.info.cache_budget
    }

    /// Ends replies that have outgrown the memory together, the least important and latest first.
    fn relieve(&mut self) {
        let info = self.info.clone();
        let bytes = |active: &Active| info.footprint.cache_bytes(active.read + active.generated);
        while self.active.len() > 1
            && self.active.iter().map(bytes).sum::<u64>() > info.cache_budget
            && let Some(last) = self.active.iter().max_by_key(|active| (active.job.priority, active.started))
        {
            let failure = Failure::new(
                ErrorCode::OutOfMemory,
                format!("there is no memory to go on beside {} other replies", self.active.len() - 1),
                "Ask again when they have ended, or ask for shorter replies.",
            );
            let sequence = last.sequence;
            self.fail(&[sequence], &failure);
        }
    }

    /// Computes one step. An error ends the requests that were in it; a panic ends the loop.
    fn step(&mut self) -> Result<(), Failure> {
        let (members, spans) = self.choose_spans();
        let chunk: usize = spans
            .iter()
            .map(|span| match &span.tokens {
                StepTokens::Known(tokens) => tokens.len(),
                StepTokens::Sampled => 0,
            })
            .sum();
        let begun = Instant::now();
        let model = &mut self.model;
        let computed = catch_unwind(AssertUnwindSafe(|| {
            let pending = model.submit(&spans)?;
            model.wait(pending)
        }));
        if chunk > 0 {
            self.chunk.measured(chunk, begun.elapsed());
        }
        let outputs = match computed {
            Ok(Ok(outputs)) => outputs,
            Ok(Err(error)) => {
                let failure = backend_failure(&error);
                self.fail(&members, &failure);
                return Ok(());
            }
            Err(_) => {
                let failure = Failure::internal("the engine broke off while computing");
                let all: Vec<_> = self.active.iter().map(|active| active.sequence).collect();
                self.fail(&all, &failure);
                for waiting in self.queue.drain(..) {
                    tell(&waiting.job, Event::Failed(failure.clone()));
                }
                return Err(failure);
            }
        };
        for ((sequence, span), output) in members.iter().zip(&spans).zip(outputs) {
            let Some(index) = self.active.iter().position(|active| active.sequence == *sequence) else {
                continue;
            };
            let ended = match self.active[index].advance(span, &output, &self.info) {
                Ok(ended) => ended,
                Err(error) => {
                    tell(&self.active[index].job, Event::Failed(error.into()));
                    true
                }
            };
            if ended {
                self.model.close(*sequence);
                self.active.remove(index);
            }
        }
        Ok(())
    }

    /// All replies that are being written, and a chunk of one prompt: the person's, else the one begun first.
    fn choose_spans(&self) -> (Vec<SequenceId>, Vec<Span>) {
        let writing = self.active.iter().filter(|active| active.read == active.job.prompt.len());
        let mut spans: Vec<Span> = writing
            .map(|active| Span {
                sequence: active.sequence,
                tokens: StepTokens::Sampled,
                output: Output::Token,
            })
            .collect();
        let reading = self.active.iter().filter(|active| active.read < active.job.prompt.len());
        if let Some(active) = reading.min_by_key(|active| active.job.priority) {
            let end = (active.read + self.chunk.tokens()).min(active.job.prompt.len());
            let last = end == active.job.prompt.len();
            spans.push(Span {
                sequence: active.sequence,
                tokens: StepTokens::Known(active.job.prompt[active.read..end].to_vec()),
                output: if last { Output::Token } else { Output::Nothing },
            });
        }
        (spans.iter().map(|span| span.sequence).collect(), spans)
    }

    fn fail(&mut self, members: &[SequenceId], failure: &Failure) {
        for sequence in members {
            if let Some(index) = self.active.iter().position(|active| active.sequence == *sequence) {
                tell(&self.active.remove(index).job, Event::Failed(failure.clone()));
            }
            self.model.close(*sequence);
        }
    }

    fn logits(&mut self, tokens: &[u32]) -> Result<Vec<Vec<f32>>, Failure> {
        let sequence = self.model.open(&SamplingParams::greedy(), &[]);
        let vocab_size = self.info.vocab_size;
        let mut rows = Vec::with_capacity(tokens.len());
        let mut compute = || -> Result<(), BackendError> {
            for chunk in tokens.chunks(*CHUNK.start()) {
                let span =
                    Span { sequence, tokens: StepTokens::Known(chunk.to_vec()), output: Output::Logits };
                let pending = self.model.submit(&[span])?;
                for output in self.model.wait(pending)? {
                    if let SpanOutput::Logits(values) = output {
                        rows.extend(values.chunks(vocab_size).map(<[f32]>::to_vec));
                    }
                }
            }
            Ok(())
        };
        let computed = compute();
        self.model.close(sequence);
        computed.map_err(|error| backend_failure(&error))?;
        Ok(rows)
    }
}

impl Active {
    /// Takes in what a step gave. True when the reply has ended.
    fn advance(&mut self, span: &Span, output: &SpanOutput, info: &ModelInfo) -> Result<bool, ModelError> {
        if let StepTokens::Known(tokens) = &span.tokens {
            self.read += tokens.len();
            tell(&self.job, Event::Prefill { done: self.read, of: self.job.prompt.len() });
        }
        let SpanOutput::Token(token) = *output else { return Ok(false) };
        self.first_token.get_or_insert_with(Instant::now);
        self.generated += 1;
        if !self.job.ignore_end && info.defaults.end_tokens.contains(&token) {
            let (text, _) = self.text.finish()?;
            self.give(text, vec![token]);
            self.end(FinishReason::Stop);
            return Ok(true);
        }
        let (mut text, mut stopped) = self.text.push(token)?;
        let full = self.generated >= self.job.limit;
        if full && !stopped {
            let (rest, stopped_in_rest) = self.text.finish()?;
            text.push_str(&rest);
            stopped = stopped_in_rest;
        }
        self.give(text, vec![token]);
        if stopped || full {
            self.end(if stopped { FinishReason::Stop } else { FinishReason::Length });
        }
        Ok(stopped || full)
    }

    fn give(&self, text: String, tokens: Vec<u32>) {
        tell(&self.job, Event::Piece { text, tokens });
    }

    fn end(&self, reason: FinishReason) {
        let first = self.first_token.unwrap_or(self.started);
        let usage = Usage { prompt_tokens: self.job.prompt.len(), completion_tokens: self.generated };
        let timings = Timings {
            queued: self.started - self.job.sent,
            prefill: first - self.started,
            decode: first.elapsed(),
        };
        tell(&self.job, Event::Done { reason, usage, timings });
    }
}

/// Sends an event. A receiver that has gone is noticed at the next step.
fn tell(job: &Job, event: Event) {
    drop(job.events.send(event));
}

fn backend_failure(error: &BackendError) -> Failure {
    let (code, hint) = match error {
        BackendError::NotFinite => (ErrorCode::Damaged, "Download the model again."),
        BackendError::UnknownToken { .. } => (ErrorCode::InvalidRequest, "Use the model's own tokenizer."),
        BackendError::Unsupported { .. } => (ErrorCode::Unsupported, "Choose another model."),
        BackendError::UnknownSequence(_) | BackendError::EmptySpan(_) | BackendError::Device(_) => {
            (ErrorCode::Internal, "Try again; if it happens again, load the model again.")
        }
    };
    Failure::new(code, error.to_string(), hint)
}

/// How many prompt tokens a step reads, by what they cost lately.
struct ChunkSize {
    per_token: Option<Duration>,
}

impl ChunkSize {
    fn new() -> Self {
        Self { per_token: None }
    }

    fn tokens(&self) -> usize {
        let fit = match self.per_token {
            None => 32,
            Some(time) => (STEP_TIME.as_nanos() / time.as_nanos().max(1)).try_into().unwrap_or(usize::MAX),
        };
        fit.clamp(*CHUNK.start(), *CHUNK.end())
    }

    fn measured(&mut self, tokens: usize, time: Duration) {
        // A few tokens cost nearly as much as a chunk and say little about the price of one.
        if tokens >= *CHUNK.start() {
            self.per_token = Some(time / tokens as u32);
        }
    }
}

#[cfg(test)]
mod tests;
