//! The model folders that Perch knows.
//!
//! Models stay where they are. The library is one small file, `library.json`, that names the folders a person has
//! added, and one folder, `models`, whose subfolders are models without having been added.

mod error;
mod location;
mod names;
mod store;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

pub use error::LibraryError;
pub use location::data_folder;
pub use names::readable_name;

/// The models a person has, by name. One program at a time changes it.
#[derive(Debug)]
pub struct Library {
    data_folder: PathBuf,
    added: Mutex<Vec<Added>>,
    problem: Option<LibraryError>,
}

/// A model of the library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name, unique in the library: what clients ask for.
    pub id: String,
    /// Its folder.
    pub path: PathBuf,
    /// The folder is not there now: moved, deleted, or on a disk that is not connected.
    pub missing: bool,
}

/// A folder that was added by hand, as `library.json` keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Added {
    id: String,
    path: PathBuf,
}

impl Library {
    /// Opens the library in `data_folder` (see [`data_folder()`]), which is made when it is not there.
    ///
    /// A `library.json` that cannot be understood is moved aside, never overwritten; [`Library::problem`] then says
    /// so.
    ///
    /// # Errors
    /// When the folder cannot be made or read.
    pub fn open(data_folder: &Path) -> Result<Self, LibraryError> {
        let models = data_folder.join(MODELS);
        std::fs::create_dir_all(&models).map_err(|source| LibraryError::Io { path: models, source })?;
        let (added, problem) = store::read(data_folder)?;
        if let Some(problem) = &problem {
            tracing::warn!("{problem}");
        }
        Ok(Self { data_folder: data_folder.to_owned(), added: Mutex::new(added), problem })
    }

    /// What went wrong when the library was opened, where the library could go on without it.
    pub fn problem(&self) -> Option<&LibraryError> {
        self.problem.as_ref()
    }

    /// The folder whose subfolders are models without having been added.
    pub fn models_folder(&self) -> PathBuf {
        self.data_folder.join(MODELS)
    }

    /// Every model, in the order of names.
    pub fn list(&self) -> Vec<Entry> {
        self.entries(&self.added())
    }

    /// Adds the model at `path`, its folder or a file in it, where it stands. Adding it twice changes nothing.
    ///
    /// # Errors
    /// When there is no model, when it cannot be run, or when the library cannot be written.
    pub fn add(&self, path: &Path) -> Result<Entry, LibraryError> {
        let verdict = perch_model::inspect(path)?;
        if !verdict.runnable {
            let problem = verdict.problems.into_iter().next();
            let (reason, hint) =
                problem.map_or_else(Default::default, |problem| (problem.message, problem.hint));
            return Err(LibraryError::NotRunnable { name: verdict.name, reason, hint });
        }
        let folder = canonical(&verdict.path)?;
        let mut added = self.added();
        let entries = self.entries(&added);
        if let Some(known) = entries.iter().find(|entry| same_folder(&entry.path, &folder)) {
            return Ok(known.clone());
        }
        if folder.to_str().is_none() {
            return Err(LibraryError::UnreadableName { path: folder });
        }
        let taken = |id: &str| entries.iter().any(|entry| entry.id.eq_ignore_ascii_case(id));
        let id = names::unique(&readable_name(&folder), taken);
        let mut next = added.clone();
        next.push(Added { id: id.clone(), path: folder.clone() });
        store::write(&self.data_folder, &next)?;
        *added = next;
        Ok(Entry { id, path: folder, missing: false })
    }

    /// Forgets a model that was added; its folder stays untouched.
    ///
    /// # Errors
    /// When there is none of that name, when it is in the library because it stands in the `models` folder, or when
    /// the library cannot be written.
    pub fn remove(&self, id: &str) -> Result<(), LibraryError> {
        let mut added = self.added();
        if !added.iter().any(|known| known.id == id) {
            let entries = self.entries(&added);
            return Err(match entries.iter().find(|entry| entry.id == id) {
                Some(entry) => LibraryError::InModelsFolder { path: entry.path.clone() },
                None => unknown(id, &entries),
            });
        }
        let next: Vec<Added> = added.iter().filter(|known| known.id != id).cloned().collect();
        store::write(&self.data_folder, &next)?;
        *added = next;
        Ok(())
    }

    /// The model that `name_or_path` means: a name in the library, else the path of a folder or of a file in one.
    /// A folder outside the library is given its own name.
    ///
    /// # Errors
    /// When it is neither; the message lists the names there are.
    pub fn resolve(&self, name_or_path: &str) -> Result<Entry, LibraryError> {
        let entries = self.list();
        if let Some(entry) = entries.iter().find(|entry| entry.id == name_or_path) {
            return Ok(entry.clone());
        }
        let path = Path::new(name_or_path);
        if path.exists() {
            let folder = match canonical(path)? {
                file if file.is_file() => file.parent().map(Path::to_owned).unwrap_or(file),
                folder => folder,
            };
            return Ok(self.find(&folder).unwrap_or_else(|| Entry {
                id: readable_name(&folder),
                path: folder,
                missing: false,
            }));
        }
        let mut alike = entries.iter().filter(|entry| entry.id.eq_ignore_ascii_case(name_or_path));
        alike.next().cloned().ok_or_else(|| unknown(name_or_path, &entries))
    }

    /// The model of the library whose folder, or a file in it, is at `path`, however the path is written.
    pub fn find(&self, path: &Path) -> Option<Entry> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = if path.is_file() { path.parent().map(Path::to_owned)? } else { path };
        self.list().into_iter().find(|entry| same_folder(&entry.path, &folder))
    }

    fn added(&self) -> MutexGuard<'_, Vec<Added>> {
        // The list is replaced whole, so a panic elsewhere leaves nothing half done.
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self, added: &[Added]) -> Vec<Entry> {
        let mut entries: Vec<Entry> = added
            .iter()
            .map(|known| Entry {
                id: known.id.clone(),
                path: known.path.clone(),
                missing: !known.path.is_dir(),
            })
            .collect();
        for folder in models_in(&self.models_folder()) {
            if entries.iter().any(|entry| same_folder(&entry.path, &folder)) {
                continue;
            }
            let taken = |id: &str| entries.iter().any(|entry| entry.id.eq_ignore_ascii_case(id));
            let id = names::unique(&readable_name(&folder), taken);
            entries.push(Entry { id, path: folder, missing: false });
        }
        entries.sort_by_cached_key(|entry| (entry.id.to_lowercase(), entry.id.clone()));
        entries
    }
}

/// The subfolders of `folder` that look like models, in the order of their names. Hidden ones and what macOS leaves
/// behind (`._*`) are passed over; a folder that cannot be read has none.
pub fn models_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .filter(|path| path.join("config.json").is_file())
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

const MODELS: &str = "models";

fn unknown(name: &str, entries: &[Entry]) -> LibraryError {
    LibraryError::Unknown {
        name: name.to_owned(),
        known: entries.iter().map(|entry| entry.id.clone()).collect(),
    }
}

fn canonical(path: &Path) -> Result<PathBuf, LibraryError> {
    path.canonicalize().map_err(|source| LibraryError::Io { path: path.to_owned(), source })
}

/// Whether a known path is `folder`, which is canonical; the disk below a known path may have moved since.
fn same_folder(known: &Path, folder: &Path) -> bool {
    known == folder || known.canonicalize().is_ok_and(|known| known == folder)
}
