//! What the application has not taken yet.

use crate::id::{MessageId, SessionId};
use std::collections::VecDeque;

/// Messages of one role that were delivered and not taken, and those that wait for room.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    messages: usize,
    bytes: usize,
    /// Messages that are whole, for which there is no room yet; oldest first.
    pub(super) waiting: VecDeque<(SessionId, MessageId)>,
}

impl Inbox {
    /// Whether there is room for a message of `length` bytes: one always fits.
    pub(super) const fn has_room(&self, length: usize, messages: usize, bytes: usize) -> bool {
        self.messages < messages && (self.messages == 0 || self.bytes + length <= bytes)
    }

    pub(super) const fn enter(&mut self, length: usize) {
        self.messages += 1;
        self.bytes += length;
    }

    pub(super) const fn leave(&mut self, length: usize) {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(length);
    }
}
