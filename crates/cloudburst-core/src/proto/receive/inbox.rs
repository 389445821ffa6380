//! The application's queue: messages that were delivered and not yet taken.

use super::Message;
use super::quota::HostKey;
use super::round_robin::RoundRobin;
use super::turns::Turns;
use std::net::SocketAddr;

/// Messages of one role, and complete messages that wait for capacity among them. Hosts take turns, so that
/// a quiet one does not wait behind all that a busy one has sent, from however many ports.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The message that is taken next. With no more than one, no host is looked up.
    next: Option<Message>,
    /// The others.
    queues: RoundRobin<HostKey, Message>,
    len: usize,
    bytes: usize,
    /// Complete messages for which there is no capacity yet.
    pub(super) waiting: Turns,
}

impl Default for Inbox {
    fn default() -> Self {
        let queues = RoundRobin::new(usize::MAX);
        Self { next: None, queues, len: 0, bytes: 0, waiting: Turns::default() }
    }
}

impl Inbox {
    /// Whether there is capacity for a message of `length` bytes. One message always fits.
    pub(super) const fn has_capacity(&self, length: usize, messages: usize, bytes: usize) -> bool {
        self.len < messages && (self.len == 0 || self.bytes + length <= bytes)
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// All messages; the first is the one that is taken next.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Message> {
        self.next.iter().chain(self.queues.items())
    }

    pub(super) fn push(&mut self, message: Message) {
        self.len += 1;
        self.bytes += message.bytes.len();
        if self.next.is_none() {
            self.next = Some(message);
        } else {
            self.queues.push(HostKey::of(message.peer.ip()), message);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.next.take()?;
        self.len -= 1;
        if self.len > 0 {
            self.next = self.queues.pop();
        }
        self.bytes -= message.bytes.len();
        Some(message)
    }

    /// Removes the message of `peer` for which `is_it` holds. Returns whether there was one.
    pub(super) fn take_out(&mut self, peer: SocketAddr, is_it: impl Fn(&Message) -> bool) -> bool {
        if self.next.as_ref().is_some_and(&is_it) {
            return self.pop().is_some();
        }
        let host = HostKey::of(peer.ip());
        let taken = self.queues.take_first(usize::MAX, |key| key == host, is_it);
        if let Some((_, message)) = &taken {
            self.len -= 1;
            self.bytes -= message.bytes.len();
        }
        taken.is_some()
    }

    /// Panics unless `waiting` messages wait, and no more than `messages` were delivered.
    pub(super) fn check_invariants(&self, waiting: usize, messages: usize) {
        assert_eq!(self.waiting.len(), waiting, "only whole messages wait");
        let delivered = self.iter().count();
        assert_eq!(self.len, delivered, "messages in the queue");
        assert!(delivered <= messages, "{delivered} messages of {messages}");
        let bytes: usize = self.iter().map(|message| message.bytes.len()).sum();
        assert_eq!(bytes, self.bytes, "bytes of the messages in the queue");
        self.queues.check_invariants();
    }
}
