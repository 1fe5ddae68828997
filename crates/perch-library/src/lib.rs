//! The model folders that Perch knows, read in place.
//!
//! A model is known because its folder was added, or because it lies in the `models` folder of Perch's own data
//! folder. The list of added folders is one JSON file, written whole and renamed into place.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use perch_model::{ErrorCode, ModelError, UserError, inspect};
use serde::{Deserialize, Serialize};

/// Name of the list in the data folder.
const LIST: &str = "library.json";
/// Name of the folder in the data folder whose subfolders are models.
const MODELS: &str = "models";

/// The known models.
#[derive(Debug)]
pub struct Library {
    folder: PathBuf,
    list: Mutex<List>,
}

/// What is on disk.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct List {
    /// Folders that were added, in that order.
    #[serde(default)]
    added: Vec<PathBuf>,
}

/// A known model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its unique name: the folder's, with a number where two share it.
    pub id: String,
    /// Its folder.
    pub path: PathBuf,
    /// Whether the folder is gone, perhaps with its disk.
    pub missing: bool,
}

/// Why the library could not do it.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// What was to be added is no model that runs.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model is there but has problems.
    #[error("{name} cannot be run: {reason}")]
    NotRunnable {
        /// The model.
        name: String,
        /// Its first problem.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// No model of that name.
    #[error("there is no model called {0:?}")]
    Unknown(String),
    /// A model in the `models` folder cannot be taken off the list.
    #[error("{0} lies in Perch's own models folder")]
    Own(String),
    /// The list could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl UserError for LibraryError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Model(error) => error.code(),
            Self::NotRunnable { .. } => ErrorCode::Damaged,
            Self::Unknown(_) => ErrorCode::NotFound,
            Self::Own(_) => ErrorCode::InvalidRequest,
            Self::Io { .. } => ErrorCode::Io,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Model(error) => error.hint(),
            Self::NotRunnable { hint, .. } => hint.clone(),
            Self::Unknown(_) => {
                Some("Choose one of the models in the list, or add the folder first.".to_owned())
            }
            Self::Own(_) => Some("Move its folder elsewhere or delete it.".to_owned()),
            Self::Io { .. } => Some("Check that the disk has room and that the folder is yours.".to_owned()),
        }
    }
}

/// Perch's data folder: `PERCH_HOME`, or the place where programs of this system keep their data.
pub fn data_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variable("HOME").unwrap_or_else(std::env::temp_dir);
    variable("PERCH_HOME").unwrap_or_else(|| {
        if cfg!(target_os = "macos") {
            home().join("Library/Application Support/Perch")
        } else {
            variable("XDG_DATA_HOME").unwrap_or_else(|| home().join(".local/share")).join("perch")
        }
    })
}

impl Library {
    /// Opens the library in a data folder, which is made if need be. A list that cannot be read is kept beside
    /// under another name, never overwritten.
    ///
    /// # Errors
    /// A folder or file that cannot be read or written.
    pub fn open(folder: &Path) -> Result<Self, LibraryError> {
        let models = folder.join(MODELS);
        std::fs::create_dir_all(&models).map_err(|source| LibraryError::Io { path: models, source })?;
        let path = folder.join(LIST);
        let io = |source| LibraryError::Io { path: path.clone(), source };
        let list = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => List::default(),
            Err(error) => return Err(io(error)),
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(list) => list,
                Err(error) => {
                    let kept = unused(&folder.join("library.damaged.json"));
                    std::fs::rename(&path, &kept).map_err(io)?;
                    tracing::warn!(%error, kept = %kept.display(), "the list of models could not be read; starting a new one");
                    List::default()
                }
            },
        };
        Ok(Self { folder: folder.to_owned(), list: Mutex::new(list) })
    }

    /// All known models: those that were added, then those in the `models` folder by name.
    pub fn list(&self) -> Vec<Entry> {
        let mut paths = self.list.lock().unwrap_or_else(PoisonError::into_inner).added.clone();
        paths.extend(self.own_folders());
        let mut seen: HashMap<String, usize> = HashMap::new();
        let entry = |path: PathBuf| {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            let count = seen.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
            let id = if *count == 1 { name } else { format!("{name}-{count}") };
            let missing = !path.is_dir();
            Entry { id, path, missing }
        };
        paths.into_iter().map(entry).collect()
    }

    /// Adds the model at `path`, a folder or a file in one, where it is. A model that is known already is not
    /// added again.
    ///
    /// # Errors
    /// What is no model, or one that cannot be run.
    pub fn add(&self, path: &Path) -> Result<Entry, LibraryError> {
        let verdict = inspect(path)?;
        if !verdict.runnable {
            let problem = verdict.problems.into_iter().next();
            let (reason, hint) =
                problem.map_or_else(Default::default, |problem| (problem.message, problem.hint));
            return Err(LibraryError::NotRunnable { name: verdict.name, reason, hint });
        }
        let folder = verdict.path;
        if let Some(entry) = self.find(&folder) {
            return Ok(entry);
        }
        self.change(|list| list.added.push(folder.clone()))?;
        self.find(&folder).ok_or_else(|| LibraryError::Unknown(verdict.name))
    }

    /// Takes an added model off the list. Its files stay.
    ///
    /// # Errors
    /// An unknown name, or a model in Perch's own folder.
    pub fn remove(&self, id: &str) -> Result<(), LibraryError> {
        let Some(entry) = self.list().into_iter().find(|entry| entry.id == id) else {
            return Err(LibraryError::Unknown(id.to_owned()));
        };
        if entry.path.parent() == Some(&self.folder.join(MODELS)) {
            return Err(LibraryError::Own(id.to_owned()));
        }
        self.change(|list| list.added.retain(|path| *path != entry.path))
    }

    /// The known model at a path, however the path is written.
    pub fn find(&self, path: &Path) -> Option<Entry> {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = canonical(path);
        self.list().into_iter().find(|entry| canonical(&entry.path) == path)
    }

    fn own_folders(&self) -> Vec<PathBuf> {
        models_in(&self.folder.join(MODELS))
    }

    fn change(&self, change: impl FnOnce(&mut List)) -> Result<(), LibraryError> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = list.clone();
        change(&mut changed);
        self.write(&changed)?;
        *list = changed;
        Ok(())
    }

    fn write(&self, list: &List) -> Result<(), LibraryError> {
        let path = self.folder.join(LIST);
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            serde_json::to_writer_pretty(&mut file, list)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|source| LibraryError::Io { path: path.clone(), source })
    }
}

/// The model folders directly in `folder`, by name; folders without a `config.json` are none.
pub fn models_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries
        .filter_map(|entry| entry.ok())
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .filter(|path| path.join("config.json").is_file())
        .collect();
    paths.sort();
    paths
}

/// `path`, or the same with a number that is not taken.
fn unused(path: &Path) -> PathBuf {
    let taken = |path: &PathBuf| path.exists();
    let numbered = (2..).map(|number| path.with_extension(format!("{number}.json")));
    std::iter::once(path.to_owned())
        .chain(numbered)
        .find(|path| !taken(path))
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/fixtures/models")
            .join(name)
            .canonicalize()
            .unwrap()
    }

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    #[test]
    fn what_was_added_is_there_after_a_restart_and_once_only() {
        let home = tempfile::tempdir().unwrap();
        let library = Library::open(home.path()).unwrap();
        let entry = library.add(&fixture("qwen3")).unwrap();
        assert_eq!(entry.id, "qwen3");
        assert_eq!(library.add(&fixture("qwen3").join("config.json")).unwrap(), entry);
        drop(library);
        let library = Library::open(home.path()).unwrap();
        assert_eq!(library.list(), [entry]);
        library.remove("qwen3").unwrap();
        assert!(library.list().is_empty());
        assert!(fixture("qwen3").join("config.json").exists());
    }

    #[test]
    fn two_folders_of_one_name_can_be_told_apart() {
        let home = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        copy(&fixture("qwen3"), &other.path().join("qwen3"));
        copy(&fixture("llama"), &home.path().join("models/my llama 🦙"));
        let library = Library::open(home.path()).unwrap();
        library.add(&fixture("qwen3")).unwrap();
        library.add(&other.path().join("qwen3")).unwrap();
        let ids: Vec<_> = library.list().into_iter().map(|entry| entry.id).collect();
        assert_eq!(ids, ["qwen3", "qwen3-2", "my llama 🦙"]);
        assert!(matches!(library.remove("my llama 🦙"), Err(LibraryError::Own(_))));
    }

    #[test]
    fn a_folder_that_vanishes_is_missing_and_not_lost() {
        let home = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        copy(&fixture("qwen3"), &other.path().join("gone"));
        let library = Library::open(home.path()).unwrap();
        library.add(&other.path().join("gone")).unwrap();
        drop(other);
        let list = library.list();
        assert!(list[0].missing && list[0].id == "gone");
    }

    #[test]
    fn a_damaged_list_is_kept() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(LIST), b"{ not json").unwrap();
        let library = Library::open(home.path()).unwrap();
        library.add(&fixture("qwen3")).unwrap();
        assert_eq!(std::fs::read(home.path().join("library.damaged.json")).unwrap(), b"{ not json");
    }

    #[test]
    fn what_cannot_run_is_not_added() {
        let home = tempfile::tempdir().unwrap();
        let broken = home.path().join("broken");
        copy(&fixture("qwen3"), &broken);
        std::fs::remove_file(broken.join("tokenizer.json")).unwrap();
        let library = Library::open(home.path()).unwrap();
        let error = library.add(&broken).unwrap_err();
        assert!(error.to_string().contains("tokenizer.json"), "{error}");
        assert!(matches!(
            library.add(&home.path().join("nothing")),
            Err(LibraryError::Model(ModelError::NotFound { .. }))
        ));
        assert!(library.list().is_empty());
    }
}
