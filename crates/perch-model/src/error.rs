//! What a person or a client is told when something goes wrong.

/// The closed set of causes that a user interface or a client can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Nothing at that path.
    NotFound,
    /// The path is there but is no model.
    NotAModel,
    /// A file of the model is missing.
    MissingFile,
    /// A file of the model is cut short, contradicts itself or cannot be read as what it should be.
    Damaged,
    /// A model family or a form of weights that this build does not run.
    Unsupported,
    /// The chat template failed or ran out of its bounds.
    Template,
    /// The request does not fit into the model's context.
    ContextExceeded,
    /// The model does not fit into memory.
    OutOfMemory,
    /// The request asks for something that is not possible or not known.
    InvalidRequest,
    /// The model is not loaded, or went away while it was needed.
    Unavailable,
    /// The person or the client stopped it.
    Cancelled,
    /// The address is taken by another program.
    PortInUse,
    /// Another copy of Perch is already running.
    AlreadyRunning,
    /// A file could not be read or written.
    Io,
    /// The keychain or the database refused.
    Storage,
    /// A defect in Perch.
    Internal,
}

impl ErrorCode {
    /// The name that crosses the boundary, stable between releases.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::NotFound => "not_found",
            ErrorCode::NotAModel => "not_a_model",
            ErrorCode::MissingFile => "missing_file",
            ErrorCode::Damaged => "damaged",
            ErrorCode::Unsupported => "unsupported",
            ErrorCode::Template => "template",
            ErrorCode::ContextExceeded => "context_exceeded",
            ErrorCode::OutOfMemory => "out_of_memory",
            ErrorCode::InvalidRequest => "invalid_request",
            ErrorCode::Unavailable => "unavailable",
            ErrorCode::Cancelled => "cancelled",
            ErrorCode::PortInUse => "port_in_use",
            ErrorCode::AlreadyRunning => "already_running",
            ErrorCode::Io => "io",
            ErrorCode::Storage => "storage",
            ErrorCode::Internal => "internal",
        }
    }
}

/// An error that can be shown: `Display` is the message, and this says the cause and the remedy.
pub trait UserError: std::error::Error {
    /// The cause.
    fn code(&self) -> ErrorCode;
    /// What to do about it, as a sentence, where there is something to do.
    fn hint(&self) -> Option<String>;
}
