//! The weights of a model: one safetensors file or several with an index.
//!
//! Format: <https://huggingface.co/docs/safetensors>: eight bytes header length, a JSON header that gives each
//! tensor's type, shape and place, then the tensors' bytes. The `safetensors` crate checks that the places cover
//! the file exactly and agree with types and shapes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata, SafeTensorError, SafeTensors};
use serde_json::Value;

use crate::error::ModelError;
use crate::mapped::MappedFile;
use crate::quantization::{Quantization, QuantizedForm};
use crate::spec::{DecoderSpec, LinearSpec, NormSpec};
use crate::weights::{DenseView, Float, MatrixForm, MatrixView};

/// Name of a single weight file.
const SINGLE: &str = "model.safetensors";
/// Name of the index that says which file holds which tensor.
const INDEX: &str = "model.safetensors.index.json";

/// All weight files of a model, mapped, with their headers read.
#[derive(Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    files: Vec<WeightFile>,
    tensors: BTreeMap<String, TensorPlace>,
    quantization: Quantization,
}

#[derive(Debug)]
struct WeightFile {
    name: String,
    bytes: MappedFile,
}

#[derive(Debug)]
struct TensorPlace {
    file: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    start: usize,
    end: usize,
}

impl Checkpoint {
    /// Maps the weight files of `folder` and reads their headers.
    ///
    /// # Errors
    /// A missing, damaged or unreadable file, by name.
    pub fn open(folder: &Path, quantization: Quantization) -> Result<Self, ModelError> {
        let (checkpoint, mut problems) = Self::open_lenient(folder, quantization)?;
        if problems.is_empty() { Ok(checkpoint) } else { Err(problems.remove(0)) }
    }

    /// As [`open`](Self::open), but goes on past files that are missing or damaged and lists them all.
    ///
    /// # Errors
    /// When there are no weight files to speak of.
    pub fn open_lenient(
        folder: &Path,
        quantization: Quantization,
    ) -> Result<(Self, Vec<ModelError>), ModelError> {
        let mut problems = Vec::new();
        let (names, placed) = weight_files(folder, &mut problems)?;
        let mut checkpoint =
            Self { folder: folder.to_owned(), files: Vec::new(), tensors: BTreeMap::new(), quantization };
        for name in names {
            if let Err(problem) = checkpoint.add_file(&name) {
                problems.push(problem);
            }
        }
        if problems.is_empty() {
            for (tensor, file) in &placed {
                if !checkpoint.tensors.contains_key(tensor) {
                    problems.push(ModelError::damaged(
                        file,
                        format!("{INDEX} says that it holds the tensor {tensor}, but it does not"),
                    ));
                }
            }
        }
        Ok((checkpoint, problems))
    }

    fn add_file(&mut self, name: &str) -> Result<(), ModelError> {
        let path = self.folder.join(name);
        let bytes = MappedFile::open(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                ModelError::MissingFile { folder: self.folder.clone(), file: name.to_owned() }
            }
            _ => ModelError::Io { path: path.clone(), source },
        })?;
        let (header, metadata) =
            SafeTensors::read_metadata(&bytes).map_err(|error| describe(name, &bytes, &error))?;
        let data = 8 + header;
        for (tensor, info) in metadata.tensors() {
            let place = TensorPlace {
                file: self.files.len(),
                dtype: info.dtype,
                shape: info.shape.clone(),
                start: data + info.data_offsets.0,
                end: data + info.data_offsets.1,
            };
            if let Some(other) = self.tensors.insert(tensor.clone(), place) {
                let other = self.files.get(other.file).map_or(name, |f| f.name.as_str());
                return Err(ModelError::damaged(
                    name,
                    format!("the tensor {tensor} is also in {other}; each may be in one file only"),
                ));
            }
        }
        self.files.push(WeightFile { name: name.to_owned(), bytes });
        Ok(())
    }

    /// The matrix of `spec` with its bias, in the form in which the file holds it.
    ///
    /// # Errors
    /// A tensor that is missing, has another shape, or another type.
    pub fn matrix(&self, spec: &LinearSpec) -> Result<MatrixView<'_>, ModelError> {
        let weight = format!("{}.weight", spec.name);
        let scales = format!("{}.scales", spec.name);
        let form = if self.tensors.contains_key(&scales) {
            let QuantizedForm { bits, group_size } = self.quantization.form_of(&spec.name)?;
            if !spec.input.is_multiple_of(group_size) {
                return Err(ModelError::damaged(
                    self.file_of(&weight),
                    format!(
                        "{weight} has {} columns, which do not divide into groups of {group_size}",
                        spec.input
                    ),
                ));
            }
            let words = spec.input * usize::from(bits) / 32;
            let groups = spec.input / group_size;
            MatrixForm::Affine {
                bits,
                group_size,
                codes: self.codes(&weight, &[spec.output, words])?,
                scales: self.dense(&scales, &[spec.output, groups])?,
                offsets: self.dense(&format!("{}.biases", spec.name), &[spec.output, groups])?,
            }
        } else {
            MatrixForm::Dense(self.dense(&weight, &[spec.output, spec.input])?)
        };
        let bias =
            if spec.bias { Some(self.dense(&format!("{}.bias", spec.name), &[spec.output])?) } else { None };
        Ok(MatrixView { rows: spec.output, columns: spec.input, form, bias })
    }

    /// The weight of a norm, `[size]`.
    ///
    /// # Errors
    /// A tensor that is missing, has another shape, or another type.
    pub fn vector(&self, spec: &NormSpec) -> Result<DenseView<'_>, ModelError> {
        self.dense(&spec.name, &[spec.size])
    }

    /// Everything that `spec` needs and that is missing, misshapen or of a wrong type. Reads headers only.
    pub fn verify(&self, spec: &DecoderSpec) -> Vec<ModelError> {
        let matrices = spec.linears().into_iter().filter_map(|linear| self.matrix(linear).err());
        let vectors = spec.norms().into_iter().filter_map(|norm| self.vector(norm).err());
        matrices.chain(vectors).collect()
    }

    /// Bytes of all weight files.
    pub fn bytes_on_disk(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.len() as u64).sum()
    }

    /// Number of weights, quantised ones counted as what they stand for.
    pub fn parameters(&self) -> u64 {
        self.tensors
            .iter()
            .map(|(name, place)| {
                let elements = place.shape.iter().product::<usize>() as u64;
                match name.strip_suffix(".weight") {
                    Some(base) if place.dtype == Dtype::U32 => match self.quantization.form_of(base) {
                        Ok(form) => elements * 32 / u64::from(form.bits),
                        Err(_) => elements,
                    },
                    _ if name.ends_with(".scales") || name.ends_with(".biases") => 0,
                    _ => elements,
                }
            })
            .sum()
    }

    /// The widest float type in which weights are stored, for naming the form; `None` without dense tensors.
    pub fn dense_float(&self, name: &str) -> Option<Float> {
        self.tensors.get(name).and_then(|place| float(place.dtype))
    }

    /// How quantised matrices are stored.
    pub fn quantization(&self) -> &Quantization {
        &self.quantization
    }

    fn dense(&self, name: &str, shape: &[usize]) -> Result<DenseView<'_>, ModelError> {
        let place = self.place(name, shape)?;
        let float = float(place.dtype).ok_or_else(|| {
            ModelError::unsupported(
                self.file_of(name),
                format!("{name} holds {:?}; Perch reads F32, F16 and BF16 there", place.dtype),
            )
        })?;
        Ok(DenseView { float, bytes: &self.files[place.file].bytes[place.start..place.end] })
    }

    fn codes(&self, name: &str, shape: &[usize]) -> Result<&[u8], ModelError> {
        let place = self.place(name, shape)?;
        if place.dtype != Dtype::U32 {
            return Err(ModelError::damaged(
                self.file_of(name),
                format!("{name} holds {:?}, expected U32 beside its scales", place.dtype),
            ));
        }
        Ok(&self.files[place.file].bytes[place.start..place.end])
    }

    fn place(&self, name: &str, shape: &[usize]) -> Result<&TensorPlace, ModelError> {
        let Some(place) = self.tensors.get(name) else {
            return Err(ModelError::damaged(
                self.file_of(name),
                format!("the tensor {name} is missing, expected with shape {shape:?}"),
            ));
        };
        if place.shape != shape {
            return Err(ModelError::damaged(
                self.file_of(name),
                format!("{name} has shape {:?}, expected {shape:?} by config.json", place.shape),
            ));
        }
        Ok(place)
    }

    /// The file that holds a tensor, or that should.
    fn file_of(&self, tensor: &str) -> &str {
        match (self.tensors.get(tensor), self.files.as_slice()) {
            (Some(place), files) => files.get(place.file).map_or(SINGLE, |file| file.name.as_str()),
            (None, [only]) => &only.name,
            (None, _) => INDEX,
        }
    }
}

/// The names of the weight files in order, and which tensor the index promises in which file.
fn weight_files(
    folder: &Path,
    problems: &mut Vec<ModelError>,
) -> Result<(Vec<String>, BTreeMap<String, String>), ModelError> {
    let index = folder.join(INDEX);
    if index.is_file() {
        let placed = read_index(&index)?;
        let names: BTreeSet<String> = placed.values().cloned().collect();
        return Ok((names.into_iter().collect(), placed));
    }
    if folder.join(SINGLE).is_file() {
        return Ok((vec![SINGLE.to_owned()], BTreeMap::new()));
    }
    let mut names = safetensors_in(folder)?;
    match names.len() {
        0 => Err(ModelError::MissingFile { folder: folder.to_owned(), file: SINGLE.to_owned() }),
        1 if shard_count(&names[0]).is_none_or(|count| count == 1) => Ok((names, BTreeMap::new())),
        _ => {
            // Shards carry their number, so a set can be checked without its index; what it cannot do is promise
            // that a tensor is in no shard at all.
            problems.push(ModelError::MissingFile { folder: folder.to_owned(), file: INDEX.to_owned() });
            if let Some(count) = names.iter().find_map(|name| shard_count(name)) {
                names = (1..=count.min(10_000))
                    .map(|i| format!("model-{i:05}-of-{count:05}.safetensors"))
                    .collect();
            }
            Ok((names, BTreeMap::new()))
        }
    }
}

/// Weight files in a folder, without the `._*` companions that macOS leaves on foreign disks.
fn safetensors_in(folder: &Path) -> Result<Vec<String>, ModelError> {
    let io = |source| ModelError::Io { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".safetensors") && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// `N` of `model-00001-of-0000N.safetensors`.
fn shard_count(name: &str) -> Option<usize> {
    let (numbers, count) = name.strip_suffix(".safetensors")?.rsplit_once("-of-")?;
    numbers.rsplit_once('-')?.1.parse::<usize>().ok()?;
    count.parse().ok()
}

fn read_index(path: &Path) -> Result<BTreeMap<String, String>, ModelError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
    let index: Value = serde_json::from_str(&text)
        .map_err(|e| ModelError::damaged(INDEX, format!("it is not JSON: {e}")))?;
    let Some(map) = index.get("weight_map").and_then(Value::as_object) else {
        return Err(ModelError::damaged(INDEX, "the key weight_map is missing or no object"));
    };
    let mut placed = BTreeMap::new();
    for (tensor, file) in map {
        let Some(file) = file.as_str() else {
            return Err(ModelError::damaged(
                INDEX,
                format!("weight_map.{tensor} is {file}, expected a file name"),
            ));
        };
        // The index may only point at files beside it.
        if Path::new(file).components().count() != 1 || file.starts_with('.') {
            return Err(ModelError::damaged(
                INDEX,
                format!("weight_map.{tensor} names {file:?}, expected a file in the same folder"),
            ));
        }
        placed.insert(tensor.clone(), file.to_owned());
    }
    if placed.is_empty() {
        return Err(ModelError::damaged(INDEX, "weight_map is empty"));
    }
    Ok(placed)
}

fn float(dtype: Dtype) -> Option<Float> {
    match dtype {
        Dtype::F32 => Some(Float::F32),
        Dtype::F16 => Some(Float::F16),
        Dtype::BF16 => Some(Float::Bf16),
        _ => None,
    }
}

/// What is wrong with a weight file, with numbers where there are any.
fn describe(name: &str, bytes: &[u8], error: &SafeTensorError) -> ModelError {
    let length = bytes.len();
    let header = bytes.first_chunk::<8>().map(|b| u64::from_le_bytes(*b));
    let reason = match (error, header) {
        (SafeTensorError::HeaderTooSmall, _) => format!("it has {length} bytes, too few for a header"),
        (SafeTensorError::HeaderTooLarge | SafeTensorError::InvalidHeaderLength, Some(header)) => {
            format!("its header claims {header} bytes, but the file has {length}")
        }
        (SafeTensorError::MetadataIncompleteBuffer, Some(header)) => {
            let promised = usize::try_from(header)
                .ok()
                .and_then(|header| Some((header, bytes.get(8..8usize.checked_add(header)?)?)))
                .and_then(|(header, text)| {
                    let metadata: Metadata = serde_json::from_slice(text).ok()?;
                    metadata.data_len().checked_add(header)?.checked_add(8)
                });
            match promised {
                Some(promised) if promised > length => {
                    format!("it is cut short: {length} of {promised} bytes are there")
                }
                Some(promised) => format!("it has {length} bytes, but its header accounts for {promised}"),
                None => format!("its header does not account for its {length} bytes"),
            }
        }
        (SafeTensorError::InvalidHeaderDeserialization(e), _) => {
            format!("its header is not as it should be: {e}")
        }
        (SafeTensorError::InvalidHeader(_), _) => "its header is not UTF-8 text".to_owned(),
        (SafeTensorError::InvalidOffset(tensor), _) => {
            format!("its header puts the tensor {tensor} in a wrong place")
        }
        (SafeTensorError::TensorInvalidInfo, _) => {
            "its header gives a tensor a size that does not match its shape".to_owned()
        }
        (SafeTensorError::ValidationOverflow, _) => {
            "its header gives a tensor an impossible shape".to_owned()
        }
        (other, _) => format!("{other:?}"),
    };
    ModelError::damaged(name, reason)
}
