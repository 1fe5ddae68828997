//! Weight matrices in memory and their products with activations.

use perch_model::weights::{Float, MatrixForm, MatrixView};

use crate::kernels::{self, Simd, TILE};
use crate::packed::{Packed, ROWS, Rounded};
use crate::pool::Pool;
use crate::tensor::{Shared, Tensor};

/// One matrix, or several one below another that are multiplied with the same input.
#[derive(Debug)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    /// First row in the whole.
    first: usize,
    rows: usize,
    form: Form,
    bias: Option<Vec<f32>>,
}

#[derive(Debug)]
enum Form {
    Dense { float: Float, data: Vec<u8> },
    Packed(Packed),
}

/// Below this many columns, the error of rounding activations to eight bits is worth a second pass over the weights.
///
/// Narrow matrices are those of small models: they have few layers, so that the error is a large part of what they
/// compute with, and their weights lie in the cache, so that a second pass costs little.
const NARROW: usize = 1024;

/// Rows of activations that stay in the cache while a group of weight rows passes over them.
const X_ROWS: usize = 64;

impl Matrix {
    /// Copies and repacks; after this, the files are not needed.
    pub(crate) fn new(pool: &Pool, views: &[MatrixView<'_>]) -> Self {
        let mut parts = Vec::with_capacity(views.len());
        let mut first = 0;
        for view in views {
            let form = match view.form {
                MatrixForm::Dense(dense) => Form::Dense { float: dense.float, data: dense.bytes.to_vec() },
                MatrixForm::Affine { bits, group_size, codes, scales, offsets } => Form::Packed(Packed::new(
                    pool,
                    (view.rows, view.columns),
                    bits,
                    group_size,
                    codes,
                    scales,
                    offsets,
                )),
            };
            parts.push(Part { first, rows: view.rows, form, bias: view.bias.map(|bias| bias.to_f32()) });
            first += view.rows;
        }
        Self { rows: first, columns: views.first().map_or(0, |view| view.columns), parts }
    }

    /// One row as floats, without bias.
    pub(crate) fn row(&self, row: usize, out: &mut [f32]) {
        let Some(part) = self.parts.iter().rev().find(|part| part.first <= row) else { return };
        let row = row - part.first;
        match &part.form {
            Form::Packed(packed) => packed.row(row, out),
            Form::Dense { float, data } => {
                let bytes = self.columns * float.size();
                let view = perch_model::weights::DenseView {
                    float: *float,
                    bytes: &data[row * bytes..(row + 1) * bytes],
                };
                out.copy_from_slice(&view.to_f32());
            }
        }
    }

    /// Columns.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// `x · selfᵀ + bias`.
    ///
    /// Quantised parts see `x` rounded to eight bits; for a narrow matrix, what rounding took away is multiplied too.
    pub(crate) fn multiply(&self, pool: &Pool, simd: Simd, x: &Tensor) -> Tensor {
        let mut out = Tensor::zeros(x.rows, self.rows);
        let shared = Shared::new(&mut out.data);
        let place = |part: &Part, bias| Place { out: &shared, width: self.rows, first: part.first, bias };
        for part in &self.parts {
            if let Form::Dense { float, data } = &part.form {
                let place = place(part, part.bias.as_deref());
                multiply_dense(pool, simd, (*float, data, part.rows), x, &place);
            }
        }
        let mut left = std::borrow::Cow::Borrowed(x);
        for pass in 0..if self.columns < NARROW { 2 } else { 1 } {
            let mut rounded: Vec<(usize, Rounded)> = Vec::new();
            for part in &self.parts {
                let Form::Packed(packed) = &part.form else { continue };
                let known = rounded.iter().position(|(size, _)| *size == packed.group_size);
                let index = known.unwrap_or_else(|| {
                    rounded.push((packed.group_size, round(pool, &left, packed.group_size)));
                    rounded.len() - 1
                });
                let place = place(part, part.bias.as_deref().filter(|_| pass == 0));
                multiply_packed(pool, simd, packed, &rounded[index].1, &place);
            }
            // Rounding goes by blocks, which are the same for every group size.
            let Some((_, rounded)) = rounded.first() else { break };
            left = std::borrow::Cow::Owned(rounded.rest_of(&left));
        }
        out
    }
}

/// Where a part's results go.
struct Place<'a> {
    out: &'a Shared<'a>,
    /// Width of a result row.
    width: usize,
    /// Column of the part's first row.
    first: usize,
    bias: Option<&'a [f32]>,
}

impl Place<'_> {
    /// Adds results of consecutive weight rows from `row` on for activation row `x_row`.
    ///
    /// # Safety
    /// No other thread may write or read the same results.
    #[expect(unsafe_code, reason = "threads write disjoint parts of one result")]
    unsafe fn add(&self, x_row: usize, row: usize, values: &[f32]) {
        let start = x_row * self.width + self.first + row;
        // SAFETY: Passed on to the caller.
        let out = unsafe { self.out.part(start..start + values.len()) };
        for (out, value) in out.iter_mut().zip(values) {
            *out += value;
        }
        for (out, bias) in out.iter_mut().zip(self.bias.map_or(&[][..], |bias| &bias[row..])) {
            *out += bias;
        }
    }
}

/// Rounds the rows of `x`, on all threads where there are many.
fn round(pool: &Pool, x: &Tensor, group_size: usize) -> Rounded {
    if x.rows < 2 * pool.threads() {
        return Rounded::new(&x.data, group_size);
    }
    let parts = pool.threads();
    let done: Vec<std::sync::Mutex<Rounded>> = (0..parts).map(|_| Default::default()).collect();
    pool.run(parts, &|part| {
        let rows = x.rows * part / parts * x.width..x.rows * (part + 1) / parts * x.width;
        if let Ok(mut done) = done[part].lock() {
            *done = Rounded::new(&x.data[rows], group_size);
        }
    });
    let mut all = Rounded::default();
    for part in done {
        let part = part.into_inner().unwrap_or_default();
        all.codes.extend(part.codes);
        all.scales.extend(part.scales);
        all.sums.extend(part.sums);
    }
    all
}

fn multiply_packed(pool: &Pool, simd: Simd, packed: &Packed, x: &Rounded, place: &Place<'_>) {
    let x_rows = x.codes.len() / packed.columns;
    for x_first in (0..x_rows).step_by(X_ROWS) {
        let x_last = (x_first + X_ROWS).min(x_rows);
        pool.ranges(packed.rows.div_ceil(ROWS), 8, &|row_groups| {
            for row_group in row_groups {
                let row = row_group * ROWS;
                let rows = ROWS.min(packed.rows - row);
                for x_row in (x_first..x_last).step_by(TILE) {
                    let mut out = [[0.0; ROWS]; TILE];
                    let tile = &mut out[..TILE.min(x_last - x_row)];
                    kernels::packed_rows(simd, packed, row_group, x, x_row, tile);
                    for (index, values) in tile.iter().enumerate() {
                        // SAFETY: Each row group is one thread's, and each of its results is written once.
                        #[expect(unsafe_code, reason = "threads write disjoint parts of one result")]
                        unsafe {
                            place.add(x_row + index, row, &values[..rows]);
                        };
                    }
                }
            }
        });
    }
}

fn multiply_dense(
    pool: &Pool,
    simd: Simd,
    (float, data, rows): (Float, &[u8], usize),
    x: &Tensor,
    place: &Place<'_>,
) {
    let bytes = x.width * float.size();
    for x_first in (0..x.rows).step_by(X_ROWS) {
        let x_last = (x_first + X_ROWS).min(x.rows);
        pool.ranges(rows, 16, &|range| {
            for row in range {
                let weights = &data[row * bytes..(row + 1) * bytes];
                for x_row in (x_first..x_last).step_by(TILE) {
                    let count = TILE.min(x_last - x_row);
                    let tile: [&[f32]; TILE] = std::array::from_fn(|i| x.row(x_row + i.min(count - 1)));
                    let mut out = [0.0; TILE];
                    kernels::dense_row(simd, float, weights, &tile[..count], &mut out[..count]);
                    for (index, value) in out[..count].iter().enumerate() {
                        // SAFETY: Each weight row is one thread's, and each of its results is written once.
                        #[expect(unsafe_code, reason = "threads write disjoint parts of one result")]
                        unsafe {
                            place.add(x_row + index, row, std::slice::from_ref(value));
                        };
                    }
                }
            }
        });
    }
}
