//! Memory of messages that have ended, used again for others.

use super::Outgoing;
use crate::proto::idle::IdleTimer;
use crate::time::Instant;

/// The maximum number of messages kept.
const MAX_KEPT: usize = 256;

/// Messages without their bytes.
#[derive(Debug, Default)]
pub(super) struct Recycler {
    messages: Vec<Outgoing>,
    /// Messages are kept only while it runs.
    idle: IdleTimer,
}

impl Recycler {
    /// Takes a message that has ended, if there is one, whose memory a new one may use.
    pub(super) fn take(&mut self, now: Instant) -> Option<Outgoing> {
        self.idle.on_use(now);
        self.messages.pop()
    }

    /// Keeps the memory of a message that has ended.
    pub(super) fn put(&mut self, mut message: Outgoing) {
        if self.idle.due().is_some() && self.messages.len() < MAX_KEPT {
            message.source.clear();
            message.transfer.clear();
            self.messages.push(message);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.idle.due()
    }

    /// Frees everything if no message was sent for a while.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.idle.check(now) == Some(false) {
            self.messages = Vec::new();
        }
    }
}
