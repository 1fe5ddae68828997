//! The forward pass. It follows the spec and never asks which family or which backend it runs.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use perch_model::ModelError;
use perch_model::checkpoint::Checkpoint;
use perch_model::spec::{Activation, DecoderSpec, LayerSpec, LinearSpec, NormSpec};

use crate::BackendError;
use crate::backend::{Attention, AttentionSpan, Backend, CacheShape, TokenSource};
use crate::model::{Model, Output, Pending, SequenceId, Span, SpanOutput, StepTokens};
use crate::sampling::SamplingParams;

/// A decoder whose weights a backend has taken up.
pub struct Decoder<B: Backend> {
    backend: B,
    spec: DecoderSpec,
    embedding: B::Matrix,
    layers: Vec<Layer<B>>,
    final_norm: Norm<B>,
    /// `None` when the embedding is the head too.
    head: Option<B::Matrix>,
    sequences: HashMap<SequenceId, Sequence<B>>,
    submitted: VecDeque<Submitted<B>>,
    opened: u64,
    steps: u64,
}

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The files are not as they should be.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The backend cannot run the weights.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

struct Layer<B: Backend> {
    attention_norm: Norm<B>,
    /// Query, key and value projections, one below another.
    qkv: B::Matrix,
    attention: LayerAttention<B>,
    o: B::Matrix,
    mlp_norm: Norm<B>,
    /// Gate and up projections, one below the other.
    gate_up: B::Matrix,
    activation: Activation,
    down: B::Matrix,
}

struct LayerAttention<B: Backend> {
    heads: usize,
    kv_heads: usize,
    head_size: usize,
    scale: f32,
    window: Option<usize>,
    q_norm: Option<Norm<B>>,
    k_norm: Option<Norm<B>>,
    rope: B::Rope,
}

struct Norm<B: Backend> {
    weight: B::Vector,
    epsilon: f32,
}

struct Sequence<B: Backend> {
    caches: Vec<B::Cache>,
    sampler: B::Sampler,
    /// Where the token that was sampled last stands.
    sampled: Option<(B::Tokens, usize)>,
}

struct Submitted<B: Backend> {
    step: u64,
    outputs: Vec<Output>,
    /// One row for each span that asked for a token.
    tokens: Option<B::Tokens>,
    /// All rows of the spans that asked for logits, with each one's number of rows.
    logits: Option<(B::Tensor, Vec<usize>)>,
}

impl<B: Backend> Decoder<B> {
    /// Hands the weights of `checkpoint` to `backend`, telling `progress` the share done, from 0 to 1.
    ///
    /// # Errors
    /// Files that do not match `spec`, or weights that the backend does not run.
    pub fn load(
        backend: B,
        spec: DecoderSpec,
        checkpoint: &Checkpoint,
        progress: &mut dyn FnMut(f32),
    ) -> Result<Self, LoadError> {
        let parts = spec.layers.len() as f32 + 2.0;
        let embedding = matrix(&backend, checkpoint, &[&spec.embedding])?;
        progress(1.0 / parts);
        let mut layers = Vec::with_capacity(spec.layers.len());
        for (index, layer) in spec.layers.iter().enumerate() {
            layers.push(Layer::load(&backend, checkpoint, layer)?);
            progress((index as f32 + 2.0) / parts);
        }
        let final_norm = norm(&backend, checkpoint, &spec.final_norm)?;
        let head = spec.head.as_ref().map(|head| matrix(&backend, checkpoint, &[head])).transpose()?;
        progress(1.0);
        Ok(Self {
            backend,
            spec,
            embedding,
            layers,
            final_norm,
            head,
            sequences: HashMap::new(),
            submitted: VecDeque::new(),
            opened: 0,
            steps: 0,
        })
    }

    /// The forward pass up to the final norm: `[tokens of the step, hidden_size]`.
    fn forward(
        &self,
        tokens: &B::Tokens,
        rows: &[Range<usize>],
        sequences: &mut [(SequenceId, Sequence<B>)],
    ) -> Result<B::Tensor, BackendError> {
        let backend = &self.backend;
        let mut x = backend.embed(&self.embedding, tokens)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let mut spans: Vec<_> = sequences
                .iter_mut()
                .zip(rows)
                .map(|((_, sequence), rows)| AttentionSpan {
                    rows: rows.clone(),
                    cache: &mut sequence.caches[index],
                })
                .collect();
            let normed = layer.attention_norm.apply(backend, &x);
            let qkv = backend.matmul(&normed, &layer.qkv);
            let attended = backend.attention(qkv, &layer.attention.parameters(), &mut spans)?;
            x = backend.add(x, &backend.matmul(&attended, &layer.o));

            let normed = layer.mlp_norm.apply(backend, &x);
            let inner = backend.gate(backend.matmul(&normed, &layer.gate_up), layer.activation);
            x = backend.add(x, &backend.matmul(&inner, &layer.down));
        }
        Ok(x)
    }

    fn logits(&self, x: &B::Tensor, rows: &[usize]) -> B::Tensor {
        let normed = self.final_norm.apply(&self.backend, &self.backend.rows(x, rows));
        self.backend.matmul(&normed, self.head.as_ref().unwrap_or(&self.embedding))
    }

    /// Takes the sequences of a step out of the table, so that all of them can be changed at once.
    fn take(&mut self, spans: &[Span]) -> Result<Vec<(SequenceId, Sequence<B>)>, BackendError> {
        let mut taken = Vec::with_capacity(spans.len());
        for span in spans {
            match self.sequences.remove(&span.sequence) {
                Some(sequence) => taken.push((span.sequence, sequence)),
                None => {
                    self.sequences.extend(taken);
                    return Err(BackendError::UnknownSequence(span.sequence.0));
                }
            }
        }
        Ok(taken)
    }
}

impl<B: Backend> Model for Decoder<B> {
    fn spec(&self) -> &DecoderSpec {
        &self.spec
    }

    fn open(&mut self, sampling: &SamplingParams, prompt: &[u32]) -> SequenceId {
        self.opened += 1;
        let id = SequenceId(self.opened);
        let caches = self.spec.layers.iter().map(|layer| {
            let attention = &layer.attention;
            self.backend.cache(CacheShape {
                kv_heads: attention.kv_heads,
                head_size: attention.head_size,
                window: attention.window,
            })
        });
        let sequence = Sequence {
            caches: caches.collect(),
            sampler: self.backend.sampler(sampling, prompt),
            sampled: None,
        };
        self.sequences.insert(id, sequence);
        id
    }

    fn close(&mut self, sequence: SequenceId) {
        self.sequences.remove(&sequence);
    }

    fn submit(&mut self, spans: &[Span]) -> Result<Pending, BackendError> {
        let mut sequences = self.take(spans)?;
        let mut sources = Vec::with_capacity(spans.len());
        let mut rows = Vec::with_capacity(spans.len());
        let mut row = 0;
        for (span, (id, sequence)) in spans.iter().zip(&sequences) {
            let source = match (&span.tokens, &sequence.sampled) {
                (StepTokens::Known(ids), _) => {
                    if ids.is_empty() {
                        return Err(BackendError::EmptySpan(id.0));
                    }
                    if let Some(&token) = ids.iter().find(|&&id| id as usize >= self.spec.vocab_size) {
                        return Err(BackendError::UnknownToken { token, vocab_size: self.spec.vocab_size });
                    }
                    TokenSource::Host(ids)
                }
                (StepTokens::Sampled, Some((tokens, row))) => TokenSource::Device { tokens, row: *row },
                (StepTokens::Sampled, None) => return Err(BackendError::UnknownSequence(id.0)),
            };
            let count = source.len();
            sources.push(source);
            rows.push(row..row + count);
            row += count;
        }
        let tokens = self.backend.tokens(&sources);
        let x = self.forward(&tokens, &rows, &mut sequences)?;

        let rows_of = |output: Output| spans.iter().zip(&rows).filter(move |(span, _)| span.output == output);
        let last: Vec<usize> = rows_of(Output::Token).map(|(_, rows)| rows.end - 1).collect();
        let every: Vec<usize> = rows_of(Output::Logits).flat_map(|(_, rows)| rows.clone()).collect();
        let tokens = if last.is_empty() {
            None
        } else {
            let logits = self.logits(&x, &last);
            let asking = sequences.iter_mut().zip(spans).filter(|(_, span)| span.output == Output::Token);
            let (mut samplers, places): (Vec<_>, Vec<_>) =
                asking.map(|((_, sequence), _)| (&mut sequence.sampler, &mut sequence.sampled)).unzip();
            let tokens = self.backend.sample(&logits, &mut samplers);
            self.backend.submit(&tokens)?;
            for (row, place) in places.into_iter().enumerate() {
                *place = Some((tokens.clone(), row));
            }
            Some(tokens)
        };
        let logits = (!every.is_empty()).then(|| {
            let counts = rows_of(Output::Logits).map(|(_, rows)| rows.len()).collect();
            (self.logits(&x, &every), counts)
        });
        if tokens.is_none() && logits.is_none() {
            let caches: Vec<_> = sequences.iter().flat_map(|(_, sequence)| &sequence.caches).collect();
            self.backend.settle(&caches)?;
        }
        self.sequences.extend(sequences);
        self.steps += 1;
        let outputs = spans.iter().map(|span| span.output).collect();
        self.submitted.push_back(Submitted { step: self.steps, outputs, tokens, logits });
        Ok(Pending(self.steps))
    }

    fn wait(&mut self, pending: Pending) -> Result<Vec<SpanOutput>, BackendError> {
        let Some(index) = self.submitted.iter().position(|submitted| submitted.step == pending.0) else {
            return Err(BackendError::Device(format!("step {} was never submitted", pending.0)));
        };
        let Some(submitted) = self.submitted.remove(index) else {
            return Err(BackendError::Device(format!("step {} was never submitted", pending.0)));
        };
        let tokens = submitted.tokens.map(|tokens| self.backend.read(&tokens)).transpose()?;
        let mut tokens = tokens.into_iter().flatten();
        let (values, counts) = match submitted.logits {
            Some((logits, counts)) => (self.backend.read_tensor(&logits)?, counts),
            None => (Vec::new(), Vec::new()),
        };
        let mut counts = counts.into_iter();
        let mut values = values.as_slice();
        let missing =
            || BackendError::Device("the backend gave fewer results than were asked for".to_owned());
        let output = |output: Output| match output {
            Output::Nothing => Ok(SpanOutput::Nothing),
            Output::Token => tokens.next().map(SpanOutput::Token).ok_or_else(missing),
            Output::Logits => {
                let count = counts.next().unwrap_or(0) * self.spec.vocab_size;
                let (logits, rest) = values.split_at_checked(count).ok_or_else(missing)?;
                values = rest;
                Ok(SpanOutput::Logits(logits.to_vec()))
            }
        };
        submitted.outputs.into_iter().map(output).collect()
    }
}

impl<B: Backend> Layer<B> {
    fn load(backend: &B, checkpoint: &Checkpoint, spec: &LayerSpec) -> Result<Self, LoadError> {
        let (attention, mlp) = (&spec.attention, &spec.mlp);
        let head_norm =
            |spec: &Option<NormSpec>| spec.as_ref().map(|spec| norm(backend, checkpoint, spec)).transpose();
        Ok(Self {
            attention_norm: norm(backend, checkpoint, &spec.attention_norm)?,
            qkv: matrix(backend, checkpoint, &[&attention.q, &attention.k, &attention.v])?,
            attention: LayerAttention {
                heads: attention.heads,
                kv_heads: attention.kv_heads,
                head_size: attention.head_size,
                scale: attention.scale,
                window: attention.window,
                q_norm: head_norm(&attention.q_norm)?,
                k_norm: head_norm(&attention.k_norm)?,
                rope: backend.rope(&attention.rope),
            },
            o: matrix(backend, checkpoint, &[&attention.o])?,
            mlp_norm: norm(backend, checkpoint, &spec.mlp_norm)?,
            gate_up: matrix(backend, checkpoint, &[&mlp.gate, &mlp.up])?,
            activation: mlp.activation,
            down: matrix(backend, checkpoint, &[&mlp.down])?,
        })
    }
}

impl<B: Backend> LayerAttention<B> {
    fn parameters(&self) -> Attention<'_, B> {
        Attention {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_size: self.head_size,
            scale: self.scale,
            window: self.window,
            q_norm: self.q_norm.as_ref().map(|norm| (&norm.weight, norm.epsilon)),
            k_norm: self.k_norm.as_ref().map(|norm| (&norm.weight, norm.epsilon)),
            rope: &self.rope,
        }
    }
}

impl<B: Backend> Norm<B> {
    fn apply(&self, backend: &B, x: &B::Tensor) -> B::Tensor {
        backend.rms_norm(x, &self.weight, self.epsilon)
    }
}

fn matrix<B: Backend>(
    backend: &B,
    checkpoint: &Checkpoint,
    parts: &[&LinearSpec],
) -> Result<B::Matrix, LoadError> {
    let views = parts.iter().map(|part| checkpoint.matrix(part)).collect::<Result<Vec<_>, _>>()?;
    Ok(backend.matrix(&views)?)
}

fn norm<B: Backend>(backend: &B, checkpoint: &Checkpoint, spec: &NormSpec) -> Result<Norm<B>, LoadError> {
    Ok(Norm { weight: backend.vector(checkpoint.vector(spec)?)?, epsilon: spec.epsilon })
}
