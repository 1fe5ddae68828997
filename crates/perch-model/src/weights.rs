//! Views over weights that stay in their memory-mapped files.

/// Element type of a dense tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Float {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an `F32`.
    Bf16,
}

impl Float {
    /// Bytes an element.
    pub fn size(self) -> usize {
        match self {
            Float::F32 => 4,
            Float::F16 | Float::Bf16 => 2,
        }
    }
}

/// Elements in row-major order, little-endian, at any alignment.
#[derive(Debug, Clone, Copy)]
pub struct DenseView<'a> {
    /// Element type.
    pub float: Float,
    /// `float.size()` bytes an element.
    pub bytes: &'a [u8],
}

impl DenseView<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.float.size()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Every element as `f32`, in order.
    pub fn to_f32(&self) -> Vec<f32> {
        match self.float {
            Float::F32 => {
                self.bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
            }
            Float::F16 => {
                self.bytes.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect()
            }
            Float::Bf16 => {
                self.bytes.chunks_exact(2).map(|b| half::bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect()
            }
        }
    }
}

/// A weight matrix `[rows, columns]` in the form in which the file holds it.
#[derive(Debug, Clone, Copy)]
pub struct MatrixView<'a> {
    /// Output width.
    pub rows: usize,
    /// Input width.
    pub columns: usize,
    /// The elements.
    pub form: MatrixForm<'a>,
    /// Added to the product, `[rows]`.
    pub bias: Option<DenseView<'a>>,
}

/// How a matrix is stored.
#[derive(Debug, Clone, Copy)]
pub enum MatrixForm<'a> {
    /// `rows * columns` floats.
    Dense(DenseView<'a>),
    /// MLX affine group quantisation: `weight = scale * code + offset`, one scale and offset for each
    /// `group_size` consecutive elements of a row.
    ///
    /// Codes are unsigned, packed without gaps into a little-endian bit stream a row, low bits first:
    /// element `i` of a row stands at bit `i * bits` of that row's `columns * bits / 8` bytes.
    Affine {
        /// Bits a code: 2, 3, 4, 5, 6 or 8.
        bits: u8,
        /// Elements a group: 32, 64 or 128.
        group_size: usize,
        /// `rows * columns * bits / 8` bytes.
        codes: &'a [u8],
        /// `[rows, columns / group_size]`.
        scales: DenseView<'a>,
        /// `[rows, columns / group_size]`; MLX calls this tensor `biases`.
        offsets: DenseView<'a>,
    },
}
