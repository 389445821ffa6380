//! The application's queue: messages that were delivered and not yet taken.

use super::Message;
use crate::id::{MessageId, SessionId};
use crate::proto::indexed::Indexed;
use std::collections::VecDeque;

/// Messages of one role, and complete messages that wait for capacity among them.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) messages: VecDeque<Message>,
    bytes: usize,
    /// Complete messages for which there is no capacity yet, oldest first.
    pub(super) waiting: Indexed<(SessionId, MessageId), u64>,
}

impl Inbox {
    /// Whether there is capacity for a message of `length` bytes. One message always fits.
    pub(super) fn has_capacity(&self, length: usize, messages: usize, bytes: usize) -> bool {
        self.messages.len() < messages && (self.messages.is_empty() || self.bytes + length <= bytes)
    }

    pub(super) fn push(&mut self, message: Message) {
        self.bytes += message.bytes.len();
        self.messages.push_back(message);
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.bytes.len();
        Some(message)
    }

    /// Removes the message for which `is_it` holds. Returns whether there was one.
    pub(super) fn take_out(&mut self, is_it: impl Fn(&Message) -> bool) -> bool {
        let Some(at) = self.messages.iter().position(is_it) else { return false };
        let message = self.messages.remove(at);
        self.bytes -= message.map_or(0, |message| message.bytes.len());
        true
    }

    /// Panics unless `waiting` messages wait, and no more than `messages` were delivered.
    pub(super) fn check_invariants(&self, waiting: usize, messages: usize) {
        assert_eq!(self.waiting.len(), waiting, "only whole messages wait");
        let delivered = self.messages.len();
        assert!(delivered <= messages, "{delivered} messages of {messages}");
        let bytes: usize = self.messages.iter().map(|message| message.bytes.len()).sum();
        assert_eq!(bytes, self.bytes, "bytes of the messages in the queue");
    }
}
