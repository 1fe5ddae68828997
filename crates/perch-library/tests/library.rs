//! The library as a person meets it: folders added, moved, unplugged, and a file that was damaged.

use std::path::{Path, PathBuf};

use perch_library::{Entry, Library, LibraryError};
use perch_model::{ErrorCode, UserError};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/models").join(name)
}

/// A copy of a small model, so that tests may move and break it.
fn model(at: &Path) -> PathBuf {
    std::fs::create_dir_all(at).expect("the fixture is copied");
    for entry in std::fs::read_dir(fixture("qwen3")).expect("the fixture is copied") {
        let entry = entry.expect("the fixture is copied");
        if !entry.file_name().to_string_lossy().starts_with("golden") {
            std::fs::copy(entry.path(), at.join(entry.file_name())).expect("the fixture is copied");
        }
    }
    at.canonicalize().expect("the fixture is copied")
}

fn names(library: &Library) -> Vec<String> {
    library.list().into_iter().map(|entry| entry.id).collect()
}

#[test]
fn what_was_added_is_there_after_reopening() {
    let home = tempfile::tempdir().unwrap();
    let folder = model(&home.path().join("my models/🐦 small"));
    let added = Library::open(home.path()).unwrap().add(&folder).unwrap();
    assert_eq!(added, Entry { id: "🐦 small".to_owned(), path: folder, missing: false });
    assert_eq!(Library::open(home.path()).unwrap().list(), [added]);
}

#[test]
fn the_same_folder_is_added_once() {
    let home = tempfile::tempdir().unwrap();
    let library = Library::open(home.path()).unwrap();
    let folder = model(&home.path().join("a/small"));
    let first = library.add(&folder).unwrap();
    assert_eq!(library.add(&folder.join("config.json")).unwrap(), first);
    assert_eq!(library.add(&folder.join("../small")).unwrap(), first);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&folder, home.path().join("link")).unwrap();
        assert_eq!(library.add(&home.path().join("link")).unwrap(), first);
    }
    assert_eq!(library.list().len(), 1);
}

#[test]
fn folders_of_one_name_get_different_names() {
    let home = tempfile::tempdir().unwrap();
    let library = Library::open(home.path()).unwrap();
    for place in ["a/small", "b/small", "c/Small"] {
        library.add(&model(&home.path().join(place))).unwrap();
    }
    assert_eq!(names(&library), ["small", "small-2", "Small-3"]);
    library.remove("small").unwrap();
    assert_eq!(names(&library), ["small-2", "Small-3"], "names do not move when another goes");
}

#[test]
fn a_folder_that_vanishes_is_listed_as_missing_and_comes_back() {
    let home = tempfile::tempdir().unwrap();
    let library = Library::open(home.path()).unwrap();
    let folder = model(&home.path().join("disk/small"));
    library.add(&folder).unwrap();
    let elsewhere = home.path().join("elsewhere");
    std::fs::rename(&folder, &elsewhere).unwrap();
    assert!(library.list()[0].missing);
    assert!(Library::open(home.path()).unwrap().resolve("small").unwrap().missing);
    std::fs::rename(&elsewhere, &folder).unwrap();
    assert!(!library.list()[0].missing);
}

#[test]
fn the_models_folder_is_part_of_the_library() {
    let home = tempfile::tempdir().unwrap();
    let library = Library::open(home.path()).unwrap();
    let folder = model(&library.models_folder().join("inside"));
    std::fs::create_dir(library.models_folder().join("empty")).unwrap();
    std::fs::write(library.models_folder().join("._inside"), "").unwrap();
    model(&library.models_folder().join(".hidden"));
    assert_eq!(library.list(), [Entry { id: "inside".to_owned(), path: folder.clone(), missing: false }]);
    assert_eq!(library.add(&folder).unwrap().id, "inside");
    let error = library.remove("inside").unwrap_err();
    assert!(matches!(error, LibraryError::InModelsFolder { .. }), "{error}");
    assert!(folder.join("config.json").is_file());
}

#[test]
fn a_damaged_list_is_kept_and_reported() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("library.json");
    for (number, text) in
        ["{\"version\": 1, \"mod", "[]", "{\"version\": 99, \"models\": []}", "\u{0}"].into_iter().enumerate()
    {
        std::fs::write(&file, text).unwrap();
        let library = Library::open(home.path()).unwrap();
        let problem = library.problem().expect("the damage is reported");
        assert_eq!(problem.code(), ErrorCode::Storage);
        let kept = home.path().join(format!("library.json.damaged-{}", number + 1));
        assert!(problem.to_string().contains(&kept.display().to_string()), "{problem}");
        assert_eq!(std::fs::read_to_string(kept).unwrap(), text);
        library.add(&model(&home.path().join("small"))).unwrap();
        assert!(Library::open(home.path()).unwrap().problem().is_none());
    }
}

#[test]
fn what_is_no_model_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let library = Library::open(home.path()).unwrap();
    let empty = home.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let broken = model(&home.path().join("broken"));
    std::fs::remove_file(broken.join("tokenizer.json")).unwrap();
    let cases = [(empty, ErrorCode::NotAModel), (home.path().join("nothing"), ErrorCode::NotFound)];
    for (path, code) in cases {
        let error = library.add(&path).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.hint().is_some());
    }
    assert!(library.list().is_empty());
}

#[test]
fn names_and_paths_are_resolved() {
    let home = tempfile::tempdir().unwrap();
    let library = Library::open(home.path()).unwrap();
    let known = library.add(&model(&home.path().join("a/Small"))).unwrap();
    let other = model(&home.path().join("b/other"));
    assert_eq!(library.resolve("Small").unwrap(), known);
    assert_eq!(library.resolve("small").unwrap(), known);
    assert_eq!(library.resolve(&known.path.to_string_lossy()).unwrap(), known);
    let file = other.join("model.safetensors");
    let found = library.resolve(&file.to_string_lossy()).unwrap();
    assert_eq!(found, Entry { id: "other".to_owned(), path: other, missing: false });
    let error = library.resolve("smoll").unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound);
    assert!(error.to_string().contains("smoll") && error.to_string().contains("Small"), "{error}");
}
