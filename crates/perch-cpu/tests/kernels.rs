//! Every kernel, in every version that this machine runs, against plain sums over random input.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use half::{bf16, f16};
use perch_cpu::{Cpu, Matrix, Simd, Tensor};
use perch_model::spec::RopeSpec;
use perch_model::weights::{DenseView, Float, MatrixForm, MatrixView};
use perch_nn::Backend;
use perch_nn::backend::{Attention, AttentionSpan, CacheShape, TokenSource};
use proptest::prelude::*;

/// A generator of test values, the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// From -1 to 1.
    fn float(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 30) as f32 - 1.0
    }
}

fn backends(threads: usize) -> Vec<Cpu> {
    let mut sets = vec![Simd::Portable, Simd::detect()];
    sets.dedup();
    sets.into_iter().map(|simd| Cpu::with_simd(Some(threads), simd)).collect()
}

fn stored(float: Float, values: &[f32]) -> Vec<u8> {
    let one = |&value: &f32| match float {
        Float::F32 => value.to_le_bytes().to_vec(),
        Float::F16 => f16::from_f32(value).to_le_bytes().to_vec(),
        Float::Bf16 => bf16::from_f32(value).to_le_bytes().to_vec(),
    };
    values.iter().flat_map(one).collect()
}

/// Activations with the given values.
fn tensor(cpu: &Cpu, columns: usize, values: &[f32]) -> Tensor {
    let bytes = stored(Float::F32, values);
    let rows = values.len() / columns;
    let form = MatrixForm::Dense(DenseView { float: Float::F32, bytes: &bytes });
    let table = cpu.matrix(&[MatrixView { rows, columns, form, bias: None }]).unwrap();
    let ids: Vec<u32> = (0..rows as u32).collect();
    cpu.embed(&table, &cpu.tokens(&[TokenSource::Host(&ids)])).unwrap()
}

/// `x · weightsᵀ + bias` in double precision.
fn product(x: &[f32], weights: &[f32], bias: &[f32], columns: usize) -> Vec<f64> {
    let row =
        |x: &[f32], w: &[f32]| -> f64 { x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum() };
    x.chunks_exact(columns)
        .flat_map(|x| {
            weights.chunks_exact(columns).zip(bias).map(move |(w, &bias)| row(x, w) + f64::from(bias))
        })
        .collect()
}

/// A quantised matrix as a file holds it, and the weights that it stands for.
struct Quantised {
    rows: usize,
    columns: usize,
    bits: u8,
    group_size: usize,
    float: Float,
    codes: Vec<u8>,
    scales: Vec<u8>,
    offsets: Vec<u8>,
    weights: Vec<f32>,
}

impl Quantised {
    fn random(
        random: &mut Random,
        (rows, columns): (usize, usize),
        bits: u8,
        group_size: usize,
        float: Float,
    ) -> Self {
        let values: Vec<u64> = (0..rows * columns).map(|_| random.below(1 << bits)).collect();
        let mut codes = vec![0u8; rows * columns * usize::from(bits) / 8];
        for (index, value) in values.iter().enumerate() {
            for bit in 0..usize::from(bits) {
                let at = index * usize::from(bits) + bit;
                codes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
            }
        }
        let groups = rows * columns / group_size;
        let step = 1.0 / (1u32 << bits) as f32;
        let mut floats = |size: f32| -> (Vec<u8>, Vec<f32>) {
            let bytes = stored(float, &(0..groups).map(|_| random.float() * size).collect::<Vec<_>>());
            let values = DenseView { float, bytes: &bytes }.to_f32();
            (bytes, values)
        };
        let ((scales, scale), (offsets, offset)) = (floats(step), floats(0.5));
        let weights = values
            .iter()
            .enumerate()
            .map(|(index, &code)| scale[index / group_size] * code as f32 + offset[index / group_size])
            .collect();
        Self { rows, columns, bits, group_size, float, codes, scales, offsets, weights }
    }

    fn view<'a>(&'a self, bias: Option<&'a [u8]>) -> MatrixView<'a> {
        let dense = |bytes| DenseView { float: self.float, bytes };
        let form = MatrixForm::Affine {
            bits: self.bits,
            group_size: self.group_size,
            codes: &self.codes,
            scales: dense(&self.scales),
            offsets: dense(&self.offsets),
        };
        let bias = bias.map(|bytes| DenseView { float: Float::F32, bytes });
        MatrixView { rows: self.rows, columns: self.columns, form, bias }
    }
}

/// Activations that eight bits hold exactly: whole multiples, up to 127, of a power of two a block.
fn exact_activations(random: &mut Random, rows: usize, columns: usize) -> Vec<f32> {
    let mut x = Vec::new();
    for _ in 0..rows * columns / 32 {
        let unit = [0.25f32, 0.0078125, 1.0][random.below(3) as usize];
        let largest = random.below(32);
        x.extend((0..32).map(|i| {
            let code = if i == largest { 127 } else { random.below(255) as i64 - 127 };
            code as f32 * unit
        }));
    }
    x
}

fn check(cpu: &Cpu, found: &Tensor, expected: &[f64], allowed: impl Fn(usize) -> f64, what: &str) {
    let found = cpu.read_tensor(found).unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (f64::from(*found) - expected).abs();
        assert!(difference <= allowed(index), "{what}: result {index} is {found}, not {expected}");
    }
}

/// One quantised product with activations that are rounded without loss, so that every bit must be right.
fn quantised_case(
    seed: u64,
    shape: (usize, usize),
    x_rows: usize,
    bits: u8,
    group_size: usize,
    float: Float,
) {
    let mut random = Random(seed);
    let matrix = Quantised::random(&mut random, shape, bits, group_size, float);
    let (rows, columns) = shape;
    let bias: Vec<f32> = (0..rows).map(|_| random.float()).collect();
    let bias_bytes = stored(Float::F32, &bias);
    let x = exact_activations(&mut random, x_rows, columns);
    let expected = product(&x, &matrix.weights, &bias, columns);
    let size: Vec<f64> =
        x.chunks_exact(columns).map(|x| x.iter().map(|x| f64::from(x.abs())).sum()).collect();
    for cpu in backends(2) {
        let loaded = cpu.matrix(&[matrix.view(Some(&bias_bytes))]).unwrap();
        let found = cpu.matmul(&tensor(&cpu, columns, &x), &loaded);
        let what = format!("{shape:?}, {x_rows} rows, {bits} bits, groups of {group_size}, {float:?}");
        check(&cpu, &found, &expected, |index| 1e-6 * size[index / rows] + 1e-5, &what);

        let ids: Vec<u32> = (0..rows as u32).rev().collect();
        let embedded = cpu.embed(&loaded, &cpu.tokens(&[TokenSource::Host(&ids)])).unwrap();
        let weights: Vec<f64> =
            matrix.weights.chunks_exact(columns).rev().flatten().map(|&w| f64::from(w)).collect();
        check(&cpu, &embedded, &weights, |_| 1e-6, &what);
    }
}

#[test]
fn every_width_of_code_and_group_multiplies_exactly() {
    for bits in [2, 3, 4, 5, 6, 8] {
        for group_size in [32, 64, 128] {
            for float in [Float::F32, Float::F16, Float::Bf16] {
                quantised_case(u64::from(bits) + group_size as u64, (13, 256), 5, bits, group_size, float);
            }
        }
    }
}

#[test]
fn the_shapes_of_real_models_multiply_exactly() {
    // Widths of Qwen3-0.6B and Llama-3.2-1B, with fewer rows where only their number differs.
    for (rows, columns) in [(1024, 3072), (2051, 1024), (512, 2048), (256, 8192), (833, 64), (687, 64)] {
        quantised_case(1, (rows, columns), 1, 4, 64, Float::Bf16);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn quantised_products_are_exact_for_any_shape(
        seed in any::<u64>(),
        rows in 1usize..40,
        groups in 1usize..5,
        x_rows in 1usize..71,
        bits in prop::sample::select(&[2u8, 3, 4, 5, 6, 8][..]),
        group_size in prop::sample::select(&[32usize, 64, 128][..]),
    ) {
        quantised_case(seed, (rows, groups * group_size), x_rows, bits, group_size, Float::F16);
    }

    #[test]
    fn rounding_activations_costs_at_most_half_a_step(
        seed in any::<u64>(),
        rows in 1usize..20,
        bits in prop::sample::select(&[2u8, 3, 4, 5, 6, 8][..]),
    ) {
        let mut random = Random(seed);
        let columns = 128;
        let matrix = Quantised::random(&mut random, (rows, columns), bits, 64, Float::Bf16);
        let x: Vec<f32> = (0..3 * columns).map(|_| random.float() * 10.0).collect();
        let expected = product(&x, &matrix.weights, &vec![0.0; rows], columns);
        let allowed = |index: usize| -> f64 {
            let x = &x[index / rows * columns..][..columns];
            let weights = &matrix.weights[index % rows * columns..][..columns];
            let blocks = x.chunks_exact(32).zip(weights.chunks_exact(32));
            blocks
                .map(|(x, w)| {
                    let largest = x.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
                    f64::from(largest) / 254.0 * w.iter().map(|w| f64::from(w.abs())).sum::<f64>()
                })
                .sum::<f64>()
                * 1.001
                + 1e-4
        };
        for cpu in backends(1) {
            let loaded = cpu.matrix(&[matrix.view(None)]).unwrap();
            let found = cpu.matmul(&tensor(&cpu, columns, &x), &loaded);
            check(&cpu, &found, &expected, allowed, "rounded activations");
        }
    }

    #[test]
    fn dense_products_match_for_any_shape(
        seed in any::<u64>(),
        rows in 1usize..40,
        columns in 1usize..100,
        x_rows in 1usize..71,
        float in prop::sample::select(&[Float::F32, Float::F16, Float::Bf16][..]),
    ) {
        let mut random = Random(seed);
        let bytes = stored(float, &(0..rows * columns).map(|_| random.float()).collect::<Vec<_>>());
        let dense = DenseView { float, bytes: &bytes };
        let x: Vec<f32> = (0..x_rows * columns).map(|_| random.float()).collect();
        let expected = product(&x, &dense.to_f32(), &vec![0.0; rows], columns);
        for cpu in backends(3) {
            let form = MatrixForm::Dense(dense);
            let loaded = cpu.matrix(&[MatrixView { rows, columns, form, bias: None }]).unwrap();
            let found = cpu.matmul(&tensor(&cpu, columns, &x), &loaded);
            check(&cpu, &found, &expected, |_| 1e-5 * columns as f64, "dense");
        }
    }

    #[test]
    fn attention_matches_whatever_the_heads_the_window_and_the_chunks(
        seed in any::<u64>(),
        size in prop::sample::select(&[16usize, 32, 64, 128][..]),
        kv_heads in 1usize..4,
        group in 1usize..4,
        window in prop::option::of(1usize..30),
        chunks in prop::collection::vec(1usize..20, 1..12),
        normed in any::<bool>(),
    ) {
        attention_case(seed, size, (kv_heads * group, kv_heads), window, &chunks, normed);
    }
}

#[test]
fn a_windowed_cache_that_has_forgotten_much_still_attends_rightly() {
    attention_case(3, 16, (2, 1), Some(16), &[1; 200], false);
    attention_case(4, 16, (2, 1), Some(16), &[70, 1, 90, 1, 1, 120], true);
}

#[test]
fn parts_of_different_forms_stand_side_by_side() {
    let mut random = Random(9);
    let columns = 128;
    let four = Quantised::random(&mut random, (11, columns), 4, 64, Float::Bf16);
    let six = Quantised::random(&mut random, (3, columns), 6, 32, Float::F16);
    let dense: Vec<f32> = (0..5 * columns).map(|_| random.float()).collect();
    let bytes = stored(Float::F32, &dense);
    let x = exact_activations(&mut random, 2, columns);
    let weights = [&four.weights[..], &dense, &six.weights].concat();
    let expected = product(&x, &weights, &[0.0; 19], columns);
    for cpu in backends(2) {
        let form = MatrixForm::Dense(DenseView { float: Float::F32, bytes: &bytes });
        let middle = MatrixView { rows: 5, columns, form, bias: None };
        let matrix: Matrix = cpu.matrix(&[four.view(None), middle, six.view(None)]).unwrap();
        let found = cpu.matmul(&tensor(&cpu, columns, &x), &matrix);
        check(&cpu, &found, &expected, |_| 0.05, "mixed");
    }
}

#[test]
fn norms_and_gates_follow_their_definitions() {
    let mut random = Random(5);
    for width in [2usize, 30, 64, 1024] {
        let x: Vec<f32> = (0..9 * width).map(|_| random.float() * 4.0).collect();
        let weight: Vec<f32> = (0..width).map(|_| random.float()).collect();
        let normed: Vec<f64> = x
            .chunks_exact(width)
            .flat_map(|x| norm(&x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), &weight))
            .collect();
        let half = width / 2;
        let gated: Vec<f64> = x
            .chunks_exact(width)
            .flat_map(|x| (0..half).map(|i| (f64::from(x[i]), f64::from(x[i + half]))))
            .map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up)
            .collect();
        for cpu in backends(2) {
            let x = tensor(&cpu, width, &x);
            let weight =
                cpu.vector(DenseView { float: Float::F32, bytes: &stored(Float::F32, &weight) }).unwrap();
            check(&cpu, &cpu.rms_norm(&x, &weight, EPSILON), &normed, |_| 1e-4, "norm");
            let gate = cpu.gate(x, perch_model::spec::Activation::Silu);
            check(&cpu, &gate, &gated, |_| 1e-4, "gate");
        }
    }
}

const EPSILON: f32 = 1e-5;

fn norm(x: &[f64], weight: &[f32]) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    let factor = 1.0 / (mean + f64::from(EPSILON)).sqrt();
    x.iter().zip(weight).map(|(x, &weight)| x * factor * f64::from(weight)).collect()
}

/// Attention over a sequence given in chunks, against the definition over the whole.
fn attention_case(
    seed: u64,
    size: usize,
    (heads, kv_heads): (usize, usize),
    window: Option<usize>,
    chunks: &[usize],
    normed: bool,
) {
    let mut random = Random(seed);
    let count: usize = chunks.iter().sum();
    let width = (heads + 2 * kv_heads) * size;
    let qkv: Vec<f32> = (0..count * width).map(|_| random.float()).collect();
    let frequencies: Vec<f32> =
        (0..size / 2).map(|i| 1.0 / 100f32.powf(i as f32 * 2.0 / size as f32)).collect();
    let weight: Vec<f32> = (0..size).map(|_| random.float() + 1.0).collect();
    let scale = 1.0 / (size as f32).sqrt();

    let head = |position: usize, head: usize| -> Vec<f64> {
        let start = position * width + head * size;
        let values: Vec<f64> = qkv[start..start + size].iter().map(|&x| f64::from(x)).collect();
        if head >= heads + kv_heads {
            return values;
        }
        let mut values = if normed { norm(&values, &weight) } else { values };
        for (i, &frequency) in frequencies.iter().enumerate() {
            let (sin, cos) = (position as f64 * f64::from(frequency)).sin_cos();
            let (left, right) = (values[i], values[i + size / 2]);
            values[i] = left * cos - right * sin;
            values[i + size / 2] = right * cos + left * sin;
        }
        values
    };
    let all: Vec<Vec<Vec<f64>>> =
        (0..count).map(|position| (0..heads + 2 * kv_heads).map(|h| head(position, h)).collect()).collect();
    let mut expected = Vec::new();
    for position in 0..count {
        let from = window.map_or(0, |window| (position + 1).saturating_sub(window));
        for h in 0..heads {
            let kv = heads + h * kv_heads / heads;
            let weights: Vec<f64> = (from..=position)
                .map(|other| {
                    let dot: f64 = all[position][h].iter().zip(&all[other][kv]).map(|(q, k)| q * k).sum();
                    (dot * f64::from(scale)).exp()
                })
                .collect();
            let total: f64 = weights.iter().sum();
            expected.extend((0..size).map(|i| {
                let sum: f64 =
                    weights.iter().zip(from..).map(|(w, other)| w * all[other][kv + kv_heads][i]).sum();
                sum / total
            }));
        }
    }

    for cpu in backends(2) {
        let rope = cpu.rope(&RopeSpec { inverse_frequencies: frequencies.clone().into() });
        let weight =
            cpu.vector(DenseView { float: Float::F32, bytes: &stored(Float::F32, &weight) }).unwrap();
        let norm = normed.then_some((&weight, EPSILON));
        let attention = Attention {
            heads,
            kv_heads,
            head_size: size,
            scale,
            window,
            q_norm: norm,
            k_norm: norm,
            rope: &rope,
        };
        let mut cache = cpu.cache(CacheShape { kv_heads, head_size: size, window });
        let mut done = 0;
        for &chunk in chunks {
            let rows = tensor(&cpu, width, &qkv[done * width..(done + chunk) * width]);
            let mut spans = [AttentionSpan { rows: 0..chunk, cache: &mut cache }];
            let found = cpu.attention(rows, &attention, &mut spans).unwrap();
            let expected = &expected[done * heads * size..(done + chunk) * heads * size];
            check(&cpu, &found, expected, |_| 2e-4, &format!("window {window:?}, positions from {done}"));
            done += chunk;
        }
    }
}
