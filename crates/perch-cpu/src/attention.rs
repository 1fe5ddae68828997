//! Keys and values of a sequence, and attention over them.

use std::ops::Range;

use perch_nn::backend::{Attention, AttentionSpan, CacheShape};

use crate::Cpu;
use crate::kernels::{self, portable::Head};
use crate::tensor::{Shared, Tensor};

/// Positions that a cache grows by at least.
const GROWTH: usize = 64;

/// Keys and values of one layer of one sequence, in single precision, head by head.
#[derive(Debug)]
pub struct Cache {
    shape: CacheShape,
    /// Positions taken in so far; the next one's number.
    taken: usize,
    /// Number of the first position that is still there.
    first: usize,
    heads: Vec<HeadCache>,
}

#[derive(Debug, Default)]
struct HeadCache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Cache {
    pub(crate) fn new(shape: CacheShape) -> Self {
        Self { shape, taken: 0, first: 0, heads: (0..shape.kv_heads).map(|_| HeadCache::default()).collect() }
    }

    /// Drops positions that no later one sees. In bulk, since dropping moves what remains.
    fn forget(&mut self) {
        let Some(window) = self.shape.window else { return };
        let oldest = (self.taken + 1).saturating_sub(window);
        if oldest < self.first + window.max(64) {
            return;
        }
        let elements = (oldest - self.first) * self.shape.head_size;
        for head in &mut self.heads {
            head.keys.drain(..elements);
            head.values.drain(..elements);
        }
        self.first = oldest;
    }

    /// Makes room for `more` positions: a quarter on top, so that few growths copy much, and not double, as a
    /// vector would, so that memory stays near what the positions need.
    fn reserve(&mut self, more: usize) {
        let size = self.shape.head_size;
        for elements in self.heads.iter_mut().flat_map(|head| [&mut head.keys, &mut head.values]) {
            if elements.capacity() < elements.len() + more * size {
                elements.reserve_exact((more.max(GROWTH) * size).max(elements.len() / 4));
            }
        }
    }

    fn append(&mut self, keys: &[f32], values: &[f32]) {
        let size = self.shape.head_size;
        for ((head, key), value) in
            self.heads.iter_mut().zip(keys.chunks_exact(size)).zip(values.chunks_exact(size))
        {
            head.keys.extend_from_slice(key);
            head.values.extend_from_slice(value);
        }
        self.taken += 1;
    }
}

/// One row of a step: where it stands in its sequence and what it attends to.
struct Row<'a> {
    row: usize,
    position: usize,
    cache: &'a Cache,
}

/// See [`perch_nn::Backend::attention`].
pub(crate) fn attention(
    cpu: &Cpu,
    mut qkv: Tensor,
    attention: &Attention<'_, Cpu>,
    spans: &mut [AttentionSpan<'_, Cpu>],
) -> Tensor {
    let q_width = attention.heads * attention.head_size;
    let kv_width = attention.kv_heads * attention.head_size;
    let positions: Vec<(usize, usize)> = spans
        .iter()
        .flat_map(|span| {
            let taken = span.cache.taken;
            span.rows.clone().enumerate().map(move |(index, row)| (row, taken + index))
        })
        .collect();
    rotate_rows(cpu, &mut qkv, attention, &positions);
    for span in spans.iter_mut() {
        span.cache.forget();
        span.cache.reserve(span.rows.len());
        for row in span.rows.clone() {
            let row = qkv.row(row);
            span.cache.append(&row[q_width..q_width + kv_width], &row[q_width + kv_width..]);
        }
    }

    let rows: Vec<Row<'_>> = spans
        .iter()
        .flat_map(|span| {
            let cache = &*span.cache;
            let before = cache.taken - span.rows.len();
            span.rows.clone().enumerate().map(move |(index, row)| Row {
                row,
                position: before + index,
                cache,
            })
        })
        .collect();
    let mut out = Tensor::zeros(qkv.rows, q_width);
    let shared = Shared::new(&mut out.data);
    let group = attention.heads / attention.kv_heads;
    cpu.pool.ranges(rows.len() * attention.heads, 1, &|range| {
        let mut scores = Vec::new();
        for task in range {
            let (row, head) = (&rows[task / attention.heads], task % attention.heads);
            let seen = seen_by(row, attention.window, attention.head_size);
            let cached = &row.cache.heads[head / group];
            let part = head * attention.head_size..(head + 1) * attention.head_size;
            let start = row.row * q_width;
            // SAFETY: Each row and head is one task, and its part of the result is its own.
            #[expect(unsafe_code, reason = "threads write disjoint parts of one result")]
            let out = unsafe { shared.part(start + part.start..start + part.end) };
            let head = Head {
                query: &qkv.row(row.row)[part],
                keys: &cached.keys[seen.clone()],
                values: &cached.values[seen],
                scale: attention.scale,
            };
            kernels::attend(cpu.simd, &head, &mut scores, out);
        }
    });
    out
}

/// The elements of a head's cache that a position sees.
fn seen_by(row: &Row<'_>, window: Option<usize>, head_size: usize) -> Range<usize> {
    let end = row.position + 1;
    let start = window.map_or(0, |window| end.saturating_sub(window));
    (start - row.cache.first.min(start)) * head_size..(end - row.cache.first) * head_size
}

/// Norms and rotates the query and key heads of each row.
fn rotate_rows(cpu: &Cpu, qkv: &mut Tensor, attention: &Attention<'_, Cpu>, positions: &[(usize, usize)]) {
    let (width, size) = (qkv.width, attention.head_size);
    let q_width = attention.heads * size;
    let turned = q_width + attention.kv_heads * size;
    let shared = Shared::new(&mut qkv.data);
    cpu.pool.ranges(positions.len(), 4, &|range| {
        let frequencies = &attention.rope.inverse_frequencies;
        let mut turns = vec![(0.0, 0.0); frequencies.len()];
        for &(row, position) in &positions[range] {
            for (turn, frequency) in turns.iter_mut().zip(frequencies.iter()) {
                *turn = (position as f32 * frequency).sin_cos();
            }
            // SAFETY: Each row stands in the list once.
            #[expect(unsafe_code, reason = "threads write disjoint parts of one result")]
            let row = unsafe { shared.part(row * width..row * width + turned) };
            let (queries, keys) = row.split_at_mut(q_width);
            for (heads, norm) in [(queries, attention.q_norm), (keys, attention.k_norm)] {
                for head in heads.chunks_exact_mut(size) {
                    if let Some((weight, epsilon)) = norm {
                        crate::rms_norm_row(head, weight, epsilon);
                    }
                    rotate(head, &turns);
                }
            }
        }
    });
}

/// Turns dimension `i` with dimension `i + n` for each of `n` angles given as sine and cosine.
fn rotate(head: &mut [f32], turns: &[(f32, f32)]) {
    let (left, right) = head.split_at_mut(turns.len());
    for ((left, right), (sin, cos)) in left.iter_mut().zip(right).zip(turns) {
        (*left, *right) = (*left * cos - *right * sin, *right * cos + *left * sin);
    }
}
