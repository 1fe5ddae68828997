//! What the person has chosen, in `settings.json` of Perch's folder.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use perch_model::ErrorCode;
use serde::{Deserialize, Serialize};

use crate::ipc::types::AppError;

/// The form of the file that this Perch writes.
const VERSION: u32 = 1;

/// What the person has chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    version: u32,
    /// The model that answers, by its id in the library.
    pub(crate) selected_model: Option<String>,
    /// Whether the endpoint is switched on.
    pub(crate) endpoint_enabled: bool,
    /// Its port.
    pub(crate) endpoint_port: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: VERSION,
            selected_model: None,
            endpoint_enabled: false,
            endpoint_port: perch_server::DEFAULT_PORT,
        }
    }
}

impl Settings {
    /// Reads `path`; nothing there means nothing was chosen yet.
    ///
    /// A file that cannot be understood is moved beside itself, so that saving does not destroy it, and said
    /// so in the log.
    ///
    /// # Errors
    /// The file is there but cannot be read or moved, or a newer Perch wrote it.
    pub(crate) fn read(path: &Path) -> Result<Self, AppError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unusable(path, &error)),
        };
        match serde_json::from_slice::<Self>(&text) {
            Ok(settings) if settings.version <= VERSION => Ok(settings),
            Ok(_) => Err(AppError::new(
                ErrorCode::Storage,
                format!("{} was written by a newer version of Perch", path.display()),
                Some("Install the newest Perch."),
            )),
            Err(error) => {
                let aside = path.with_extension("damaged.json");
                fs::rename(path, &aside).map_err(|error| unusable(path, &error))?;
                tracing::error!(%error, kept = %aside.display(), "the settings are damaged; starting with none");
                Ok(Self::default())
            }
        }
    }

    /// Writes the whole file or leaves the old one.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), AppError> {
        let write = || -> io::Result<()> {
            let folder = path.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|error| unusable(path, &error))
    }
}

fn unusable(path: &Path, error: &io::Error) -> AppError {
    AppError::new(
        ErrorCode::Io,
        format!("{} cannot be used: {error}", path.display()),
        Some("Check that the disk has space and that you may write to that folder."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        assert_eq!(Settings::read(&path).unwrap(), Settings::default());
        let chosen = Settings {
            selected_model: Some("tiny".into()),
            endpoint_enabled: true,
            endpoint_port: 4000,
            ..Settings::default()
        };
        chosen.write(&path).unwrap();
        assert_eq!(Settings::read(&path).unwrap(), chosen);
    }

    #[test]
    fn an_older_file_takes_defaults_for_what_it_does_not_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::write(&path, r#"{"endpoint_port": 5000, "something_else": true}"#).unwrap();
        assert_eq!(Settings::read(&path).unwrap(), Settings { endpoint_port: 5000, ..Settings::default() });
    }

    #[test]
    fn a_damaged_file_is_kept_aside_and_a_newer_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::write(&path, "{ \"endpoint_port\": ").unwrap();
        assert_eq!(Settings::read(&path).unwrap(), Settings::default());
        let kept = fs::read_to_string(folder.path().join("settings.damaged.json")).unwrap();
        assert_eq!(kept, "{ \"endpoint_port\": ");

        fs::write(&path, r#"{"version": 99}"#).unwrap();
        assert_eq!(Settings::read(&path).unwrap_err().code, "storage");
        assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"version": 99}"#);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error() {
        let error = Settings::default().write(Path::new("/nowhere/at/all/settings.json")).unwrap_err();
        assert_eq!(error.code, "io");
        assert!(error.message.contains("/nowhere/at/all/settings.json"), "{}", error.message);
    }
}
