//! The application's queue: messages that were delivered and not yet taken.

use super::Message;
use super::round_robin::RoundRobin;
use crate::id::{MessageId, SessionId};
use crate::proto::indexed::Indexed;
use foldhash::HashMap;
use std::net::SocketAddr;

/// Messages of one role, and complete messages that wait for capacity among them. Peers take turns, so that
/// a quiet one does not wait behind all that a busy one has sent.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The message that is taken next. With no more than one, no peer is looked up.
    next: Option<Message>,
    /// The others.
    queues: RoundRobin<SocketAddr, Message>,
    len: usize,
    bytes: usize,
    /// Complete messages for which there is no capacity yet.
    pub(super) waiting: Waiting,
}

/// Complete messages that wait, the oldest of each session first. Sessions take turns.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    turns: Indexed<SessionId, u64>,
    queues: HashMap<SessionId, Indexed<MessageId, u64>>,
}

impl Default for Inbox {
    fn default() -> Self {
        let waiting = Waiting::default();
        Self { next: None, queues: RoundRobin::new(usize::MAX), len: 0, bytes: 0, waiting }
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
            self.queues.push(message.peer, message);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.next.take()?;
        self.next = self.queues.pop();
        self.len -= 1;
        self.bytes -= message.bytes.len();
        Some(message)
    }

    /// Removes the message for which `is_it` holds. Returns whether there was one.
    pub(super) fn take_out(&mut self, is_it: impl Fn(&Message) -> bool) -> bool {
        if self.next.as_ref().is_some_and(&is_it) {
            return self.pop().is_some();
        }
        let taken = self.queues.take_first(usize::MAX, |_| true, is_it);
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

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    fn len(&self) -> usize {
        self.queues.values().map(Indexed::len).sum()
    }

    /// The message that is delivered next.
    pub(super) fn first(&self) -> Option<(SessionId, MessageId)> {
        let session = self.turns.first()?;
        Some((session, self.queues.get(&session)?.first()?))
    }

    pub(super) fn contains(&self, session: SessionId, message: MessageId) -> bool {
        self.queues.get(&session).is_some_and(|queue| queue.contains(message))
    }

    pub(super) fn push_back(&mut self, session: SessionId, message: MessageId) {
        self.queues.entry(session).or_default().push_back(message);
        if !self.turns.contains(session) {
            self.turns.push_back(session);
        }
    }

    /// Removes a message if it waits, and ends the turn of its session.
    pub(super) fn remove(&mut self, session: SessionId, message: MessageId) {
        if self.is_empty() {
            return;
        }
        let Some(queue) = self.queues.get_mut(&session) else { return };
        if queue.remove(message).is_none() {
            return;
        }
        self.turns.remove(session);
        if queue.is_empty() {
            self.queues.remove(&session);
        } else {
            self.turns.push_back(session);
        }
    }
}
