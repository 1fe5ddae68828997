//! Why conversations cannot be read or kept.

use std::path::PathBuf;

/// Why conversations cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum ChatsError {
    /// No such conversation or message; it may have been deleted.
    #[error("that {0} is not there any more")]
    NotFound(&'static str),
    /// A reply that has ended does not grow.
    #[error("that reply has already ended")]
    Ended,
    /// A newer Perch wrote the file.
    #[error("{} was written by a newer version of Perch", path.display())]
    NewerVersion {
        /// The database's file.
        path: PathBuf,
    },
    /// The file is no database, or a broken one. It is left as it is.
    #[error("the conversations in {} are damaged: {reason}", path.display())]
    Damaged {
        /// The database's file.
        path: PathBuf,
        /// What SQLite found.
        reason: String,
    },
    /// The database could not be opened, read or written.
    #[error("the conversations could not be read or saved: {0}")]
    Database(#[from] rusqlite::Error),
}

impl ChatsError {
    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound(_) | Self::Ended => None,
            Self::NewerVersion { .. } => Some("Install the newest Perch.".to_owned()),
            Self::Damaged { path, .. } => Some(format!(
                "Perch leaves the file as it is. Restore {} from a backup, or move it away to start afresh.",
                path.display()
            )),
            Self::Database(_) => {
                Some("Check that the disk has space and that Perch's folder can be written.".to_owned())
            }
        }
    }
}
