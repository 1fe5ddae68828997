//! Which model is meant.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use perch_engine::{
    Catalog, CatalogEntry, DevicePreference, ErrorCode, Failure, Machine, ModelHandle, Runtime,
};
use perch_library::{Library, data_folder};

use crate::output::failure;

/// The folder that `model` means: a path, or a name in the library. Without one, the only model there is.
pub(crate) fn find(model: Option<&str>) -> Result<PathBuf, Failure> {
    if let Some(path) = model.map(Path::new).filter(|path| path.exists()) {
        return Ok(path.to_owned());
    }
    let entries = Library::open(&data_folder())?.list();
    let known = || entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(", ");
    match (model, entries.as_slice()) {
        (Some(name), entries) => match entries.iter().find(|entry| entry.id == name) {
            Some(entry) => Ok(entry.path.clone()),
            None => Err(Failure::new(
                ErrorCode::NotFound,
                format!("{name:?} is neither a folder nor a model in the library"),
                if entries.is_empty() {
                    "The library is empty; give a model's folder.".to_owned()
                } else {
                    format!("The library has: {}.", known())
                },
            )),
        },
        (None, [only]) => Ok(only.path.clone()),
        (None, []) => Err(failure("no model was named and the library is empty", "Give a model's folder.")),
        (None, _) => Err(failure("no model was named", &format!("Name one of these: {}.", known()))),
    }
}

/// A list of models that does not change.
pub(crate) struct Fixed(pub(crate) Vec<CatalogEntry>);

impl Catalog for Fixed {
    fn models(&self) -> Vec<CatalogEntry> {
        self.0.clone()
    }
}

/// Loads one model; the runtime goes with it.
pub(crate) async fn load(
    model: Option<&str>,
    device: impl Into<DevicePreference>,
) -> Result<(Runtime, ModelHandle), Failure> {
    let path = find(model)?;
    let id = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let catalog = Arc::new(Fixed(vec![CatalogEntry { id: id.clone(), path }]));
    let runtime = Runtime::new(Machine::detect(), device.into(), catalog);
    let handle = runtime.load(&id).await?;
    Ok((runtime, handle))
}
