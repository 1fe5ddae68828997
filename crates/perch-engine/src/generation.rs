//! The receiving end of one request.

use tokio::sync::mpsc::UnboundedReceiver;

use crate::request::Event;

/// What comes of one request. Dropping it stops the work on it within one step.
///
/// Events wait here without limit: a receiver that is slow holds up nobody else, and what can pile up is bounded
/// by the length of its own reply.
#[derive(Debug)]
pub struct Generation {
    pub(crate) events: UnboundedReceiver<Event>,
}

impl Generation {
    /// The next event; `None` after the last.
    pub async fn recv(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// As [`recv`](Self::recv), for threads that may block.
    pub fn blocking_recv(&mut self) -> Option<Event> {
        self.events.blocking_recv()
    }
}
