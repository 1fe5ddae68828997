//! Folders that are not as they should be: each is refused with the file's name and a remedy, and nothing panics.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use perch_model::config::Config;
use perch_model::families::Family;
use perch_model::{ErrorCode, Model, UserError, inspect};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A copy of a fixture in a folder whose name has a space and an emoji.
struct Copy {
    _root: tempfile::TempDir,
    folder: PathBuf,
}

impl Copy {
    fn of(fixture: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(fixture);
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("my model 🦜");
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(source).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            if !name.to_string_lossy().starts_with("golden") {
                fs::copy(&path, folder.join(name)).unwrap();
            }
        }
        Self { _root: root, folder }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    fn remove(&self, file: &str) {
        fs::remove_file(self.path(file)).unwrap();
    }

    fn configure(&self, key: &str, value: Value) {
        let mut config: Value = serde_json::from_slice(&fs::read(self.path("config.json")).unwrap()).unwrap();
        config[key] = value;
        fs::write(self.path("config.json"), config.to_string()).unwrap();
    }

    /// Rewrites the JSON header of a weight file and leaves the data as it is.
    fn header(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let bytes = fs::read(self.path(file)).unwrap();
        let end = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        let mut header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
        change(&mut header);
        let header = header.to_string();
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(&bytes[end..]);
        fs::write(self.path(file), out).unwrap();
    }
}

const SHARD: &str = "model-00001-of-00002.safetensors";
const NORM: &str = "model.norm.weight";

/// The shard that holds a tensor.
fn shard_of(copy: &Copy, tensor: &str) -> String {
    let index = fs::read(copy.path("model.safetensors.index.json")).unwrap();
    let index: Value = serde_json::from_slice(&index).unwrap();
    index["weight_map"][tensor].as_str().unwrap().to_owned()
}

type Damage = fn(&Copy);

#[test]
fn a_damaged_folder_is_refused_by_file_and_reason() {
    let cases: &[(&str, Damage, ErrorCode, &[&str])] = &[
        ("no config", |c| c.remove("config.json"), ErrorCode::MissingFile, &["config.json"]),
        ("no index", |c| c.remove("model.safetensors.index.json"), ErrorCode::MissingFile, &["index.json"]),
        ("no shard", |c| c.remove(SHARD), ErrorCode::MissingFile, &[SHARD]),
        (
            "config is no JSON",
            |c| fs::write(c.path("config.json"), "{").unwrap(),
            ErrorCode::Damaged,
            &["config.json", "not JSON"],
        ),
        (
            "a shard cut short",
            |c| {
                let length = fs::metadata(c.path(SHARD)).unwrap().len();
                fs::File::options().write(true).open(c.path(SHARD)).unwrap().set_len(length - 100).unwrap();
            },
            ErrorCode::Damaged,
            &[SHARD, "cut short"],
        ),
        (
            "an empty shard",
            |c| fs::write(c.path(SHARD), "").unwrap(),
            ErrorCode::Damaged,
            &[SHARD, "0 bytes"],
        ),
        (
            "an absurd header length",
            |c| fs::write(c.path(SHARD), [0xff; 64]).unwrap(),
            ErrorCode::Damaged,
            &[SHARD, "18446744073709551615", "64"],
        ),
        (
            "a shape whose size overflows",
            |c| {
                let file = shard_of(c, NORM);
                c.header(&file, |h| h[NORM]["shape"] = json!([u64::MAX, 4]));
            },
            ErrorCode::Damaged,
            &[".safetensors", "shape"],
        ),
        (
            "offsets beyond the file",
            |c| {
                let file = shard_of(c, NORM);
                c.header(&file, |h| h[NORM]["data_offsets"] = json!([1_u64 << 60, 1_u64 << 61]));
            },
            ErrorCode::Damaged,
            &[".safetensors"],
        ),
        (
            "a tensor under another name",
            |c| {
                let file = shard_of(c, NORM);
                c.header(&file, |h| {
                    let info = h.as_object_mut().unwrap().remove(NORM).unwrap();
                    h["model.other.weight"] = info;
                });
            },
            ErrorCode::Damaged,
            &[NORM],
        ),
        (
            "a size that the weights do not have",
            |c| c.configure("intermediate_size", json!(1234)),
            ErrorCode::Damaged,
            &["mlp", "1234"],
        ),
        (
            "an unknown family",
            |c| c.configure("model_type", json!("mystery")),
            ErrorCode::Unsupported,
            &["mystery", "llama", "mistral", "qwen2", "qwen3"],
        ),
        (
            "another activation",
            |c| c.configure("hidden_act", json!("gelu")),
            ErrorCode::Unsupported,
            &["hidden_act", "gelu"],
        ),
        (
            "another rope",
            |c| c.configure("rope_parameters", json!({"rope_type": "spiral", "rope_theta": 1e4})),
            ErrorCode::Unsupported,
            &["spiral"],
        ),
        (
            "another quantisation",
            |c| c.configure("quantization_config", json!({"quant_method": "awq", "bits": 4})),
            ErrorCode::Unsupported,
            &["awq"],
        ),
        (
            "another MLX mode",
            |c| c.configure("quantization", json!({"mode": "mxfp4", "bits": 4, "group_size": 32})),
            ErrorCode::Unsupported,
            &["mxfp4"],
        ),
        (
            "no heads",
            |c| c.configure("num_attention_heads", json!(0)),
            ErrorCode::Damaged,
            &["num_attention_heads"],
        ),
        (
            "a tokenizer that is none",
            |c| fs::write(c.path("tokenizer.json"), "{}").unwrap(),
            ErrorCode::Damaged,
            &["tokenizer.json"],
        ),
        (
            "an index that leaves the folder",
            |c| {
                let index = json!({"weight_map": {NORM: "../elsewhere.safetensors"}});
                fs::write(c.path("model.safetensors.index.json"), index.to_string()).unwrap();
            },
            ErrorCode::Damaged,
            &["index.json", "same folder"],
        ),
    ];
    for (name, damage, code, words) in cases {
        let copy = Copy::of("models/qwen2_sharded");
        Model::open(&copy.folder).unwrap();
        damage(&copy);
        let error = Model::open(&copy.folder).map(|_| ()).expect_err(name);
        let message = error.to_string();
        assert_eq!(error.code(), *code, "{name}: {message}");
        assert!(words.iter().all(|word| message.contains(word)), "{name}: {message}");
        assert!(error.hint().is_some(), "{name}");
        let verdict = inspect(&copy.folder).unwrap();
        assert!(!verdict.runnable, "{name}");
        assert!(
            verdict.problems.iter().any(|problem| problem.message == message),
            "{name}: {:?}",
            verdict.problems
        );
    }
}

#[test]
fn a_verdict_lists_every_problem() {
    let copy = Copy::of("models/qwen2_sharded");
    copy.remove("tokenizer.json");
    copy.remove(SHARD);
    fs::write(copy.path("model-00002-of-00002.safetensors"), [0; 4]).unwrap();
    let verdict = inspect(&copy.folder).unwrap();
    let files: Vec<_> = verdict.problems.iter().filter_map(|problem| problem.file.as_deref()).collect();
    assert_eq!(
        files,
        ["tokenizer.json", SHARD, "model-00002-of-00002.safetensors"],
        "{:?}",
        verdict.problems
    );
}

#[test]
fn a_model_without_a_tokenizer_opens_but_its_verdict_says_so() {
    let copy = Copy::of("models/qwen3");
    copy.remove("tokenizer.json");
    assert!(Model::open(&copy.folder).unwrap().tokenizer.is_none());
    let verdict = inspect(&copy.folder).unwrap();
    assert_eq!(verdict.problems[0].file.as_deref(), Some("tokenizer.json"));
}

#[test]
fn companions_of_macos_are_not_weights_and_a_file_stands_for_its_folder() {
    let copy = Copy::of("models/qwen3");
    fs::write(copy.path("._model.safetensors"), "noise").unwrap();
    fs::write(copy.path("._config.json"), "noise").unwrap();
    let verdict = inspect(&copy.path("model.safetensors")).unwrap();
    assert!(verdict.runnable, "{:?}", verdict.problems);
    assert_eq!(verdict.name, "my model 🦜");
}

#[test]
fn what_is_no_model_says_what_to_choose() {
    let empty = tempfile::tempdir().unwrap();
    let error = inspect(empty.path()).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotAModel);
    assert!(error.hint().unwrap().contains("config.json"));
    assert_eq!(inspect(&empty.path().join("gone")).map(|_| ()).unwrap_err().code(), ErrorCode::NotFound);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_weight_files_never_panic(
        changes in prop::collection::vec((0_usize..4096, any::<u8>()), 1..8),
        length in prop::option::of(0_usize..8192),
    ) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/models/qwen3");
        let folder = tempfile::tempdir().unwrap();
        fs::copy(source.join("config.json"), folder.path().join("config.json")).unwrap();
        let mut bytes = fs::read(source.join("model.safetensors")).unwrap();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes.truncate(length.unwrap_or(usize::MAX));
        fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
        let opened = Model::open(folder.path());
        prop_assert!(length.is_none() || opened.is_err());
        prop_assert!(inspect(folder.path()).is_ok());
    }

    #[test]
    fn any_configuration_maps_or_is_refused(
        family in 0_usize..4,
        key in 0_usize..12,
        value in prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z]{0,6}".prop_map(Value::from),
            (0_u64..70).prop_map(Value::from),
            Just(json!([])),
            Just(json!({})),
            Just(json!({"rope_type": "llama3", "factor": 0})),
        ],
    ) {
        const KEYS: [&str; 12] = [
            "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size", "rope_theta",
            "rope_scaling", "rope_parameters", "rms_norm_eps", "sliding_window", "max_position_embeddings",
            "intermediate_size",
        ];
        let model_type = ["llama", "mistral", "qwen2", "qwen3"][family];
        let mut config = json!({
            "model_type": model_type, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
            "intermediate_size": 96, "vocab_size": 128, "num_hidden_layers": 2,
        });
        config[KEYS[key]] = value;
        let config = Config::parse(&config.to_string()).unwrap();
        if let Ok(spec) = Family::of(&config).unwrap().spec(&config) {
            let rope = &spec.layers[0].attention.rope.inverse_frequencies;
            prop_assert!(rope.iter().all(|frequency| frequency.is_finite()));
            prop_assert!(spec.layers[0].attention.heads % spec.layers[0].attention.kv_heads == 0);
        }
    }
}
