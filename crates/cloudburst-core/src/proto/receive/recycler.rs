//! Memory of messages being received, used again for others.

use super::incoming::Incoming;
use super::pool::{MAX_RESERVE, Pool};
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct Recycler {
    /// Buffers and decoders.
    pub(super) pool: Pool,
    /// Finished messages without buffers and decoders.
    pub(super) messages: Vec<Incoming>,
}

impl Recycler {
    /// Takes back a finished message.
    pub(super) fn put_message(&mut self, mut message: Incoming) {
        message.clear(&mut self.pool);
        if self.pool.is_in_use() && self.messages.len() < MAX_RESERVE {
            self.messages.push(message);
        }
    }

    /// Frees what was not used since the last check.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.pool.handle_timeout(now);
        if !self.pool.is_in_use() {
            self.messages = Vec::new();
        }
    }
}
