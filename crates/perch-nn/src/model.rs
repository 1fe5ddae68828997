//! The face of a loaded decoder that the model loop sees: no type parameter, no tensor.

use perch_model::DecoderSpec;

use crate::BackendError;
use crate::sampling::SamplingParams;

/// A decoder on some backend, with the sequences it is working on.
///
/// It stays on the thread that made it. Steps are submitted and waited for in the same order; a step may be
/// submitted before the one ahead of it has been waited for, with [`StepTokens::Sampled`] standing for tokens
/// that are not known on the host yet.
pub trait Model {
    /// What it is.
    fn spec(&self) -> &DecoderSpec;
    /// Starts a sequence. `prompt` is what penalties count as seen; it is not computed here.
    fn open(&mut self, sampling: &SamplingParams, prompt: &[u32]) -> SequenceId;
    /// Ends a sequence and frees its cache. An unknown id is ignored.
    fn close(&mut self, sequence: SequenceId);
    /// Starts one step. After an error the sequences in it are unusable and must be closed.
    fn submit(&mut self, spans: &[Span]) -> Result<Pending, BackendError>;
    /// Waits for a step: one output for each span, in order.
    fn wait(&mut self, pending: Pending) -> Result<Vec<SpanOutput>, BackendError>;
}

/// Names a sequence of one model; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub u64);

/// Names a submitted step.
#[derive(Debug)]
#[must_use = "a step that nobody waits for keeps its memory"]
pub struct Pending(pub u64);

/// One sequence's part of a step. A sequence stands in a step once at most.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Whose tokens these are.
    pub sequence: SequenceId,
    /// What to append to the sequence.
    pub tokens: StepTokens,
    /// What to give back.
    pub output: Output,
}

/// The tokens of a span.
#[derive(Debug, Clone, PartialEq)]
pub enum StepTokens {
    /// At least one token that the host knows.
    Known(Vec<u32>),
    /// The token that the step before sampled for this sequence.
    Sampled,
}

/// What a span gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Nothing: a prefill chunk that is not the last.
    Nothing,
    /// The next token, by the sequence's sampling settings.
    Token,
    /// The logits of every position of the span.
    Logits,
}

/// What a span gave.
#[derive(Debug, Clone, PartialEq)]
pub enum SpanOutput {
    /// For [`Output::Nothing`].
    Nothing,
    /// The sampled token.
    Token(u32),
    /// `[positions of the span, vocab_size]`, row by row.
    Logits(Vec<f32>),
}
