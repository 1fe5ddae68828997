//! Which models are resident: loading as a transaction, unloading, telling others about it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

use perch_cpu::Cpu;
use perch_model::{ErrorCode, Model as Files};
use perch_nn::{Decoder, LoadError};
use tokio::sync::{oneshot, watch};

use crate::Failure;
use crate::failure::gigabytes;
use crate::handle::{ModelHandle, ModelInfo};
use crate::machine::{Choice, DevicePreference, Machine};
use crate::model_loop::{self, Command};

/// The models that could be loaded. Asked each time, so that there is one truth about it.
pub trait Catalog: Send + Sync {
    /// All of them, in the order in which they are shown.
    fn models(&self) -> Vec<CatalogEntry>;
}

/// A model that could be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Its unique name.
    pub id: String,
    /// Its folder.
    pub path: PathBuf,
}

/// A model and what it is doing.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelStatus {
    /// Its unique name.
    pub id: String,
    /// Its folder.
    pub path: PathBuf,
    /// What it is doing.
    pub state: ModelState,
}

/// What a model is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelState {
    /// On disk only.
    Unloaded,
    /// Its folder is gone, perhaps with its disk.
    Missing,
    /// On its way into memory: the share done, 0 to 1.
    Loading(f32),
    /// Ready to answer.
    Ready {
        /// What it runs on and why.
        choice: Choice,
        /// Weights in memory, in bytes.
        memory_bytes: u64,
        /// Longest context in tokens for which there is memory.
        context: usize,
    },
    /// It could not be loaded, or broke.
    Failed(Failure),
}

/// Context for which there must be memory before a model is loaded at all.
const LEAST_CONTEXT: usize = 2048;
/// Share of the memory left after loading that caches may take.
const CACHE_SHARE: f64 = 0.75;

/// The resident models. Clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

struct Shared {
    machine: Machine,
    preference: DevicePreference,
    catalog: Arc<dyn Catalog>,
    /// Held while models come and go, so that two never count on the same memory.
    changing: tokio::sync::Mutex<()>,
    models: Mutex<HashMap<String, Entry>>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

enum Entry {
    Loading(f32),
    Failed(Failure),
    Resident(Resident),
}

struct Resident {
    handle: ModelHandle,
    thread: JoinHandle<()>,
    used: Instant,
}

impl Runtime {
    /// A runtime without resident models.
    pub fn new(machine: Machine, preference: DevicePreference, catalog: Arc<dyn Catalog>) -> Self {
        let shared = Shared {
            machine,
            preference,
            catalog,
            changing: tokio::sync::Mutex::new(()),
            models: Mutex::new(HashMap::new()),
            changes: watch::Sender::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// This machine.
    pub fn machine(&self) -> &Machine {
        &self.shared.machine
    }

    /// The engine that models run on here, and why.
    ///
    /// # Errors
    /// A preference that cannot be met.
    pub fn choice(&self) -> Result<Choice, Failure> {
        self.shared.machine.choose(self.shared.preference)
    }

    /// All models of the catalog and what they are doing.
    pub fn models(&self) -> Vec<ModelStatus> {
        let catalog = self.shared.catalog.models();
        let models = self.shared.models();
        let status = |entry: CatalogEntry| {
            let state = match models.get(&entry.id) {
                Some(Entry::Loading(share)) => ModelState::Loading(*share),
                Some(Entry::Failed(failure)) => ModelState::Failed(failure.clone()),
                Some(Entry::Resident(resident)) => resident.state(),
                None if entry.path.exists() => ModelState::Unloaded,
                None => ModelState::Missing,
            };
            ModelStatus { id: entry.id, path: entry.path, state }
        };
        catalog.into_iter().map(status).collect()
    }

    /// Wakes when a model's state has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// The model called `id`, loaded if it is not resident. Waits while it is being loaded for somebody else.
    ///
    /// # Errors
    /// An unknown name, files that are not as they should be, or too little memory, with the numbers.
    pub async fn load(&self, id: &str) -> Result<ModelHandle, Failure> {
        if let Some(handle) = self.shared.resident(id) {
            return Ok(handle);
        }
        let catalog = self.shared.catalog.models();
        let Some(entry) = catalog.iter().find(|entry| entry.id == id) else {
            let known: Vec<_> = catalog.iter().map(|entry| entry.id.as_str()).collect();
            let hint = match known.as_slice() {
                [] => "Add a model first.".to_owned(),
                known => format!("These are there: {}.", known.join(", ")),
            };
            return Err(Failure::new(ErrorCode::NotFound, format!("there is no model called {id:?}"), hint));
        };
        // On a task of its own: who asks may go away while it is half done.
        let (runtime, entry) = (self.clone(), entry.clone());
        let loading = tokio::spawn(async move { runtime.load_entry(&entry).await });
        loading.await.map_err(|_| Failure::internal("loading the model broke off"))?
    }

    async fn load_entry(&self, entry: &CatalogEntry) -> Result<ModelHandle, Failure> {
        let id = entry.id.as_str();
        let _changing = self.shared.changing.lock().await;
        // Whoever held the lock may have loaded it.
        if let Some(handle) = self.shared.resident(id) {
            return Ok(handle);
        }
        self.shared.set(id, Some(Entry::Loading(0.0)));
        let loaded = self.bring_in(id, &entry.path).await;
        match loaded {
            Ok(resident) => {
                let handle = resident.handle.clone();
                self.shared.set(id, Some(Entry::Resident(resident)));
                Ok(handle)
            }
            Err(failure) => {
                self.shared.set(id, Some(Entry::Failed(failure.clone())));
                Err(failure)
            }
        }
    }

    /// Takes a model out of memory and waits until it is gone. Replies that it is writing end.
    pub async fn unload(&self, id: &str) {
        let _changing = self.shared.changing.lock().await;
        self.evict(id).await;
    }

    /// Takes all models out of memory.
    pub async fn shutdown(&self) {
        let _changing = self.shared.changing.lock().await;
        let ids: Vec<String> = self.shared.models().keys().cloned().collect();
        for id in ids {
            self.evict(&id).await;
        }
    }

    async fn evict(&self, id: &str) {
        let entry = self.shared.models().remove(id);
        if let Some(Entry::Resident(Resident { handle, thread, .. })) = entry {
            // A loop that has ended already needs no telling.
            drop(handle.commands.send(Command::Stop));
            if tokio::task::spawn_blocking(move || thread.join()).await.is_err() {
                tracing::warn!(model = id, "could not wait for the model's thread");
            }
        }
        self.shared.changed();
    }

    /// Reads headers, makes room, loads on a thread of the model's own.
    async fn bring_in(&self, id: &str, path: &Path) -> Result<Resident, Failure> {
        let choice = self.choice()?;
        let files = {
            let path = path.to_owned();
            let opened = tokio::task::spawn_blocking(move || Files::open(&path)).await;
            opened.map_err(|_| Failure::internal("reading the model broke off"))??
        };
        let cache_budget = self.make_room(&files).await?;
        let (commands, receiver) = mpsc::channel();
        let (ready, loaded) = oneshot::channel();
        let thread = {
            let (shared, id) = (self.shared.clone(), id.to_owned());
            let spawned = std::thread::Builder::new()
                .name(format!("model {id}"))
                .spawn(move || live(&shared, &id, files, choice, cache_budget, ready, &receiver));
            spawned.map_err(|error| Failure::internal(format!("no thread could be started: {error}")))?
        };
        let info = loaded.await.map_err(|_| Failure::internal("the engine broke off while loading"))??;
        let handle = ModelHandle { info, commands, open: Arc::new(AtomicUsize::new(0)) };
        Ok(Resident { handle, thread, used: Instant::now() })
    }

    /// Evicts idle models, the one not used for longest first, until there is memory. Gives what caches may
    /// take of it, in bytes.
    async fn make_room(&self, files: &Files) -> Result<u64, Failure> {
        let (spec, footprint) = (&files.spec, &files.footprint);
        let needed = footprint.total(LEAST_CONTEXT.min(spec.max_context));
        loop {
            let available = Machine::available_memory();
            if needed <= available {
                return Ok(((available - footprint.total(0)) as f64 * CACHE_SHARE) as u64);
            }
            let Some(idle) = self.shared.longest_idle() else {
                return Err(Failure::new(
                    ErrorCode::OutOfMemory,
                    format!(
                        "{} needs {} of memory, but {} are available",
                        files.name,
                        gigabytes(needed),
                        gigabytes(available)
                    ),
                    "Close other programs, wait for replies to end, or choose a smaller model.",
                ));
            };
            tracing::info!(model = idle, "unloading to make room");
            self.evict(&idle).await;
        }
    }
}

impl Shared {
    fn models(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, id: &str, entry: Option<Entry>) {
        let mut models = self.models();
        match entry {
            Some(entry) => models.insert(id.to_owned(), entry),
            None => models.remove(id),
        };
        drop(models);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn resident(&self, id: &str) -> Option<ModelHandle> {
        match self.models().get_mut(id) {
            Some(Entry::Resident(resident)) if !resident.thread.is_finished() => {
                resident.used = Instant::now();
                Some(resident.handle.clone())
            }
            _ => None,
        }
    }

    fn longest_idle(&self) -> Option<String> {
        let models = self.models();
        let idle = models.iter().filter_map(|(id, entry)| match entry {
            Entry::Resident(resident) if !resident.handle.is_busy() => Some((resident.used, id)),
            _ => None,
        });
        idle.min().map(|(_, id)| id.clone())
    }
}

impl Resident {
    fn state(&self) -> ModelState {
        let info = self.handle.info();
        ModelState::Ready {
            choice: info.choice.clone(),
            memory_bytes: info.footprint.weight_bytes,
            context: info.context.min(info.memory_context),
        }
    }
}

/// The life of a model's thread.
fn live(
    shared: &Arc<Shared>,
    id: &str,
    files: Files,
    choice: Choice,
    cache_budget: u64,
    ready: oneshot::Sender<Result<Arc<ModelInfo>, Failure>>,
    commands: &mpsc::Receiver<Command>,
) {
    let mut told = 0.0;
    let mut progress = |share: f32| {
        if share - told >= 0.02 {
            told = share;
            shared.set(id, Some(Entry::Loading(share)));
        }
    };
    let loaded = Decoder::load(Cpu::new(None), files.spec, &files.checkpoint, &mut progress);
    // The weights are in the backend's own memory now; the files may go.
    drop(files.checkpoint);
    let decoder = match loaded {
        Ok(decoder) => decoder,
        Err(error) => {
            drop(ready.send(Err(load_failure(error))));
            return;
        }
    };
    let context = perch_nn::Model::spec(&decoder).max_context;
    let fits = |context| files.footprint.cache_bytes(context) <= cache_budget;
    let info = Arc::new(ModelInfo {
        id: id.to_owned(),
        path: files.path,
        family: files.family.name,
        context,
        memory_context: longest_context(context, fits),
        cache_budget,
        vocab_size: perch_nn::Model::spec(&decoder).vocab_size,
        choice,
        defaults: files.defaults,
        tokenizer: files.tokenizer,
        template: files.template,
        footprint: files.footprint,
    });
    if ready.send(Ok(info.clone())).is_err() {
        return;
    }
    if let Err(failure) = model_loop::run(Box::new(decoder), info, commands) {
        shared.set(id, Some(Entry::Failed(failure)));
    }
}

fn load_failure(error: LoadError) -> Failure {
    match error {
        LoadError::Model(error) => error.into(),
        LoadError::Backend(error) => Failure::new(
            ErrorCode::Unsupported,
            error.to_string(),
            "Choose another model, or another form of it.",
        ),
    }
}

/// The largest number up to `most` that fits, where everything smaller fits too.
fn longest_context(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}
