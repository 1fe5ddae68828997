//! Names of models.

use std::path::Path;

/// What a person would call the model in `folder`: the folder's name, or the repository's where the folder is a
/// snapshot in a Hugging Face cache (`models--OWNER--NAME/snapshots/COMMIT`), which is named by a number.
pub fn readable_name(folder: &Path) -> String {
    let repository = || {
        let snapshots = folder.parent()?;
        let cached = snapshots.parent()?.file_name()?.to_str()?.strip_prefix("models--")?;
        (snapshots.file_name()? == "snapshots").then_some(cached.rsplit("--").next()?.to_owned())
    };
    repository()
        .or_else(|| Some(folder.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "model".to_owned())
}

/// `name`, or `name-2`, `name-3`, … where it is taken.
pub(crate) fn unique(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut candidate = name.to_owned();
    let mut number = 1;
    while taken(&candidate) {
        number += 1;
        candidate = format!("{name}-{number}");
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_a_person_would_say() {
        for (path, name) in [
            ("/models/Qwen3-0.6B-4bit", "Qwen3-0.6B-4bit"),
            ("/a/my models/🐦 small", "🐦 small"),
            ("/c/models--mlx-community--Qwen3-0.6B-4bit/snapshots/73e3e38d98", "Qwen3-0.6B-4bit"),
            ("/c/models--gpt2/snapshots/607a30d783", "gpt2"),
            ("/c/snapshots/x", "x"),
            ("/", "model"),
        ] {
            assert_eq!(readable_name(Path::new(path)), name, "{path}");
        }
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        assert_eq!(unique("a", |_| false), "a");
        assert_eq!(unique("a", |id| ["a", "a-2"].contains(&id)), "a-3");
    }
}
