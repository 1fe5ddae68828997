//! What the host sampler keeps, how often it draws what it keeps, and that seeds repeat.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use perch_nn::sampling::{HostSampler, SamplingParams, candidates};
use proptest::prelude::*;

fn probabilities(logits: &[f32], temperature: f32) -> Vec<f64> {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f64> =
        logits.iter().map(|&logit| (f64::from(logit - best) / f64::from(temperature)).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// The kept tokens by the definition: a full sort, then each filter in turn.
fn kept_by_definition(logits: &[f32], params: &SamplingParams) -> Vec<u32> {
    let all = probabilities(logits, params.temperature);
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if params.top_k > 0 {
        order.truncate(params.top_k);
    }
    if params.top_p < 1.0 {
        let total: f64 = order.iter().map(|&token| all[token]).sum();
        let mut sum = 0.0;
        let end = order.iter().position(|&token| {
            sum += all[token];
            sum >= f64::from(params.top_p) * total
        });
        order.truncate(end.map_or(order.len(), |end| end + 1));
    }
    let best = all[order[0]];
    order.retain(|&token| all[token] >= f64::from(params.min_p) * best);
    order.into_iter().map(|token| token as u32).collect()
}

/// Draws once from a sampler that remembers nothing.
fn draw(params: &SamplingParams, logits: &[f32]) -> Result<u32, perch_nn::sampling::NotFinite> {
    HostSampler::new(params, &[]).sample(&mut logits.to_vec())
}

fn sequence(params: &SamplingParams, logits: &[f32], count: usize) -> Vec<u32> {
    let mut sampler = HostSampler::new(params, &[]);
    (0..count).map(|_| sampler.sample(&mut logits.to_vec()).unwrap()).collect()
}

proptest! {
    #[test]
    fn the_kept_set_is_that_of_a_full_sort(
        // Multiples of an eighth tie often and stay clear of rounding at the filters' edges.
        logits in prop::collection::vec((-80i32..80).prop_map(|x| x as f32 / 8.0), 1..700),
        temperature in prop::sample::select(&[0.3f32, 0.7, 1.0, 2.5][..]),
        top_k in prop::sample::select(&[0usize, 1, 2, 40, 64, 65, 1000][..]),
        top_p in prop::sample::select(&[0.013f32, 0.513, 0.913, 0.9977, 1.0][..]),
        min_p in prop::sample::select(&[0.0f32, 0.0513, 0.313][..]),
    ) {
        let params = SamplingParams { temperature, top_k, top_p, min_p, ..SamplingParams::default() };
        let found: Vec<u32> = candidates(&logits, &params).into_iter().map(|(token, _)| token).collect();
        prop_assert_eq!(found, kept_by_definition(&logits, &params));
    }

    #[test]
    fn greedy_takes_the_first_of_the_largest(logits in prop::collection::vec(-5i32..5, 1..300)) {
        let logits: Vec<f32> = logits.into_iter().map(|x| x as f32).collect();
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let first = logits.iter().position(|&x| x == best).unwrap() as u32;
        prop_assert_eq!(draw(&SamplingParams::greedy(), &logits), Ok(first));
    }

    #[test]
    fn a_value_that_is_not_finite_never_gives_a_token(
        mut logits in prop::collection::vec(-5.0f32..5.0, 1..300),
        at in any::<prop::sample::Index>(),
        bad in prop::sample::select(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY][..]),
        temperature in prop::sample::select(&[0.0f32, 1.0][..]),
    ) {
        let at = at.index(logits.len());
        logits[at] = bad;
        let params = SamplingParams { temperature, ..SamplingParams::default() };
        prop_assert!(draw(&params, &logits).is_err());
    }
}

#[test]
fn tokens_come_as_often_as_their_probability_says() {
    let logits = [1.5f32, -0.5, 0.0, 2.0, 1.0, -3.0, 0.3, 1.9];
    for (temperature, top_k) in [(1.0, 0), (0.6, 0), (1.7, 5)] {
        let params = SamplingParams { temperature, top_k, seed: 7, ..SamplingParams::default() };
        let kept = kept_by_definition(&logits, &params);
        let all = probabilities(&logits, temperature);
        let total: f64 = kept.iter().map(|&token| all[token as usize]).sum();
        let draws = 20_000;
        let mut counts = [0usize; 8];
        for token in sequence(&params, &logits, draws) {
            counts[token as usize] += 1;
        }
        let mut chi_square = 0.0;
        for (token, &count) in counts.iter().enumerate() {
            if kept.contains(&(token as u32)) {
                let expected = all[token] / total * draws as f64;
                chi_square += (count as f64 - expected).powi(2) / expected;
            } else {
                assert_eq!(count, 0, "token {token} was filtered out");
            }
        }
        // 99.9 % of right samplers stay below this with seven degrees of freedom.
        assert!(chi_square < 24.3, "chi-square {chi_square} at temperature {temperature}");
    }
}

#[test]
fn a_seed_repeats_and_another_seed_differs() {
    let logits: Vec<f32> = (0..1000).map(|i| (i % 17) as f32 / 8.0).collect();
    let params = |seed| SamplingParams { seed, ..SamplingParams::default() };
    assert_eq!(sequence(&params(1), &logits, 50), sequence(&params(1), &logits, 50));
    assert_ne!(sequence(&params(1), &logits, 50), sequence(&params(2), &logits, 50));
}

#[test]
fn repetition_counts_the_prompt_and_the_others_only_the_reply() {
    let logits = [2.0f32, 1.9, -1.0];
    let with = |change: fn(&mut SamplingParams)| {
        let mut params = SamplingParams::greedy();
        change(&mut params);
        params
    };
    let sampled = |params: &SamplingParams, prompt: &[u32], count: usize| -> Vec<u32> {
        let mut sampler = HostSampler::new(params, prompt);
        (0..count).map(|_| sampler.sample(&mut logits.to_vec()).unwrap()).collect()
    };
    let repetition = with(|params| params.repetition_penalty = 1.1);
    assert_eq!(sampled(&repetition, &[0], 1), [1], "2.0 / 1.1 is below 1.9");
    assert_eq!(
        sampled(&repetition, &[0, 0, 0, 1], 1),
        [0],
        "once for each token, however often it stood there"
    );
    let presence = with(|params| params.presence_penalty = 0.5);
    assert_eq!(sampled(&presence, &[0], 4), [0, 1, 0, 0], "once a token, and not for the prompt");
    let frequency = with(|params| params.frequency_penalty = 0.5);
    assert_eq!(sampled(&frequency, &[0], 4), [0, 1, 0, 1], "for each time");
    let bias = with(|params| params.logit_bias = vec![(2, 100.0), (9, 100.0)]);
    assert_eq!(sampled(&bias, &[], 2), [2, 2], "an id outside the vocabulary changes nothing");
}

#[test]
fn temperatures_down_to_the_smallest_end_in_the_most_likely_token() {
    for temperature in [f32::MIN_POSITIVE, 1e-30, 1e-6] {
        let params = SamplingParams { temperature, ..SamplingParams::default() };
        assert_eq!(draw(&params, &[1.0, 3.0, 2.0]), Ok(1));
    }
}
