//! Where output goes.

use std::io::{ErrorKind, Stdout, Write};

use perch_engine::{ErrorCode, Failure};
use serde::Serialize;
use serde_json::json;

/// Standard output for data, standard error for people.
pub(crate) struct Output {
    out: Stdout,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { out: std::io::stdout() }
    }

    /// Text as it is, at once.
    pub(crate) fn text(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        match written {
            Ok(()) => {}
            // Whoever read has seen enough, as in `perch run … | head`.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            Err(_) => std::process::exit(1),
        }
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.text(&format!("{text}\n"));
    }

    /// One JSON value on a line.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(|error| {
            failure(format!("the result cannot be written as JSON: {error}"), "Please report it.")
        })?;
        self.line(&text);
        Ok(())
    }

    /// Something for the person, not for a program that reads the data.
    pub(crate) fn note(&mut self, text: &str) {
        // Nobody can be told that standard error is closed.
        drop(writeln!(std::io::stderr(), "{text}"));
    }

    pub(crate) fn failure(&mut self, failure: &Failure, json: bool) {
        if json {
            let error =
                json!({ "code": failure.code.as_str(), "message": failure.message, "hint": failure.hint });
            self.line(&json!({ "error": error }).to_string());
        }
        self.note(&format!("error: {}", failure.message));
        if let Some(hint) = &failure.hint {
            self.note(&format!("hint: {hint}"));
        }
    }
}

/// An error of the command line's own.
pub(crate) fn failure(message: impl Into<String>, hint: &str) -> Failure {
    Failure::new(ErrorCode::InvalidRequest, message, hint)
}
