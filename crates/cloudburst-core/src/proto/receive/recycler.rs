//! Memory of messages being received, used again for others.

use super::incoming::Incoming;
use super::pool::{MAX_RESERVE, Pool};
use crate::config::Parameters;
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct Recycler {
    /// Buffers and decoders.
    pub(super) pool: Pool,
    /// Finished messages without buffers and decoders.
    messages: Vec<Incoming>,
}

impl Recycler {
    pub(super) fn new(config: &Parameters) -> Self {
        Self { pool: Pool::new(config), messages: Vec::new() }
    }

    /// A finished message, whose memory may be used for another.
    pub(super) fn take_message(&mut self) -> Option<Incoming> {
        self.messages.pop()
    }

    /// Takes back a finished message.
    pub(super) fn put_message(&mut self, mut message: Incoming) {
        message.clear(&mut self.pool);
        if self.pool.is_in_use() && self.messages.len() < MAX_RESERVE {
            self.messages.push(message);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.pool.poll_timeout()
    }

    /// Frees what was not used since the last check.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.pool.handle_timeout(now);
        if !self.pool.is_in_use() {
            self.messages = Vec::new();
        }
    }
}
