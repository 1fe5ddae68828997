//! How the next token is chosen.

use std::collections::HashMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Sampling settings of one request. The defaults change nothing: they draw from the model's own distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParams {
    /// Divides the logits; 0 takes the most likely token.
    pub temperature: f32,
    /// Keep the `k` most likely tokens; 0 keeps all.
    pub top_k: usize,
    /// Keep the smallest set of most likely tokens whose probability reaches this; 1 keeps all.
    pub top_p: f32,
    /// Keep tokens at least this likely relative to the most likely one; 0 keeps all.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens seen in the prompt or the reply; 1 does nothing.
    pub repetition_penalty: f32,
    /// Subtracted once from the logit of each token that the reply already holds.
    pub presence_penalty: f32,
    /// Subtracted from the logit of a token for each time that the reply already holds it.
    pub frequency_penalty: f32,
    /// Added to the logits of single tokens.
    pub logit_bias: Vec<(u32, f32)>,
    /// Same seed, same prompt, same settings: same reply on the same backend.
    pub seed: u64,
}

impl SamplingParams {
    /// Always the most likely token.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

/// Samples on the host: the CPU backend's sampler, and the reference for every other.
///
/// Order: bias, penalties, temperature, top-k, top-p, min-p, draw. Repetition counts the prompt and the reply, as
/// `transformers` does; presence and frequency count the reply, as OpenAI's API describes them.
#[derive(Debug, Clone)]
pub struct HostSampler {
    params: SamplingParams,
    random: ChaCha8Rng,
    /// Tokens of the prompt and the reply, with how often the reply holds each.
    seen: HashMap<u32, u32>,
}

/// What a row of logits was worth: no token could be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFinite;

impl HostSampler {
    /// State for a sequence that starts with `prompt`.
    pub fn new(params: &SamplingParams, prompt: &[u32]) -> Self {
        let seen = if params.repetition_penalty == 1.0 { &[] } else { prompt };
        Self {
            params: params.clone(),
            random: ChaCha8Rng::seed_from_u64(params.seed),
            seen: seen.iter().map(|&token| (token, 0)).collect(),
        }
    }

    /// Chooses a token by `logits`, which are changed on the way, and counts it as seen.
    ///
    /// # Errors
    /// Logits that are not finite.
    pub fn sample(&mut self, logits: &mut [f32]) -> Result<u32, NotFinite> {
        // A sum is finite only if every part is, and it is one pass.
        if !logits.iter().sum::<f32>().is_finite() && logits.iter().any(|logit| !logit.is_finite()) {
            return Err(NotFinite);
        }
        self.adjust(logits);
        let token = if self.params.temperature == 0.0 { most_likely(logits) } else { self.draw(logits) }
            .ok_or(NotFinite)?;
        *self.seen.entry(token).or_insert(0) += 1;
        Ok(token)
    }

    /// Applies bias and penalties.
    fn adjust(&self, logits: &mut [f32]) {
        let params = &self.params;
        for &(token, bias) in &params.logit_bias {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit += bias;
            }
        }
        for (&token, &count) in &self.seen {
            let Some(logit) = logits.get_mut(token as usize) else { continue };
            let penalty = params.repetition_penalty;
            *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
            if count > 0 {
                *logit -= params.presence_penalty + params.frequency_penalty * count as f32;
            }
        }
    }

    fn draw(&mut self, logits: &[f32]) -> Option<u32> {
        let kept = candidates(logits, &self.params);
        let total: f64 = kept.iter().map(|&(_, weight)| f64::from(weight)).sum();
        // 53 random bits make a number in [0, 1).
        let mut point = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
        for &(token, weight) in &kept {
            point -= f64::from(weight);
            if point < 0.0 {
                return Some(token);
            }
        }
        kept.last().map(|&(token, _)| token)
    }
}

/// The tokens that the settings keep, most likely first, with weights relative to the most likely one.
pub fn candidates(logits: &[f32], params: &SamplingParams) -> Vec<(u32, f32)> {
    let Some(best) = most_likely(logits) else { return Vec::new() };
    let best = logits[best as usize];
    // Divided before the exponential, so that a tiny temperature ends in the most likely token and not in 0 / 0.
    let weight = |logit: f32| ((logit - best) / params.temperature).exp();
    let mut kept: Vec<(u32, f32)> = logits
        .iter()
        .enumerate()
        .map(|(token, &logit)| (token as u32, weight(logit)))
        .filter(|&(_, weight)| weight > 0.0)
        .collect();
    // Ties go to the lower token, so that the same request gives the same reply.
    let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if params.top_k > 0 && params.top_k < kept.len() {
        kept.select_nth_unstable_by(params.top_k - 1, order);
        kept.truncate(params.top_k);
    }
    if params.top_p < 1.0 {
        let total: f64 = kept.iter().map(|&(_, weight)| f64::from(weight)).sum();
        let target = f64::from(params.top_p) * total;
        kept = nucleus(kept, target, order);
    } else {
        kept.sort_unstable_by(order);
    }
    let least = params.min_p;
    let end = kept.iter().position(|&(_, weight)| weight < least).unwrap_or(kept.len());
    kept.truncate(end.max(1));
    kept
}

/// The most likely tokens whose weights reach `target`, sorted. Sorts ever larger heads instead of everything,
/// since a few tokens of a large vocabulary usually hold nearly all of the weight.
fn nucleus(
    mut tokens: Vec<(u32, f32)>,
    target: f64,
    order: impl Fn(&(u32, f32), &(u32, f32)) -> std::cmp::Ordering + Copy,
) -> Vec<(u32, f32)> {
    let mut head = 64;
    loop {
        let whole = head >= tokens.len();
        if !whole {
            tokens.select_nth_unstable_by(head - 1, order);
        }
        let end = head.min(tokens.len());
        tokens[..end].sort_unstable_by(order);
        let mut sum = 0.0;
        for index in 0..end {
            sum += f64::from(tokens[index].1);
            if sum >= target {
                tokens.truncate(index + 1);
                return tokens;
            }
        }
        if whole {
            return tokens;
        }
        head *= 8;
    }
}

/// The first of the largest logits.
fn most_likely(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(usize, f32)> = None;
    for (token, &logit) in logits.iter().enumerate() {
        if best.is_none_or(|(_, most)| logit > most) {
            best = Some((token, logit));
        }
    }
    best.map(|(token, _)| token as u32)
}
