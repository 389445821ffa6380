//! The fate of the messages of one session, from its low watermark on.

use super::incoming::Incoming;
use super::quota::Usage;
use crate::id::{Digest, MessageId};
use crate::proto::steps::step;
use crate::wire::{Certificate, RejectReason, Role};
use foldhash::{HashMap, HashMapExt};
use std::collections::BTreeMap;

/// How the receiver ended a message, for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Delivered(Digest),
    Rejected(RejectReason),
}

/// The messages of one session that are remembered: being received, complete, or ended.
#[derive(Debug)]
pub(super) struct Window {
    /// The low watermark: the peer has finished with all messages below.
    // A watermark and no timer: a receiver remembers how each message ended for exactly as long as
    // its sender may repeat it.
    pub(super) low_watermark: MessageId,
    /// How messages from the watermark on have ended.
    pub(super) ended: BTreeMap<MessageId, Ending>,
    /// Messages from the watermark on of which symbols are missing.
    receiving: BTreeMap<MessageId, Incoming>,
    /// Complete messages that wait for the application. The watermark may pass them: their delivery
    /// was not promised, but they are delivered all the same.
    pub(super) whole: HashMap<MessageId, Incoming>,
    /// The number of bytes that messages that have not ended may take.
    memory: usize,
    /// How many of these bytes belong to complete messages, by role.
    backlog: [usize; Role::COUNT],
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            low_watermark: MessageId(0),
            ended: BTreeMap::new(),
            receiving: BTreeMap::new(),
            whole: HashMap::new(),
            memory: 0,
            backlog: [0; Role::COUNT],
        }
    }

    /// The state that the window holds.
    pub(super) fn usage(&self) -> Usage {
        Usage { memory: self.memory, backlog: self.backlog, endings: self.ended.len() }
    }

    /// The number of messages whose fate must be remembered.
    pub(super) fn span(&self) -> usize {
        self.ended.len() + self.receiving.len() + self.whole.len()
    }

    /// Whether no message is being received, or waits for the application.
    pub(super) fn is_idle(&self) -> bool {
        self.receiving.is_empty() && self.whole.is_empty()
    }

    /// A message of which symbols are missing.
    #[inline]
    pub(super) fn receiving(&mut self, id: MessageId) -> Option<&mut Incoming> {
        self.receiving.get_mut(&id)
    }

    /// A message that has not ended.
    pub(super) fn unended(&mut self, id: MessageId) -> Option<&mut Incoming> {
        self.receiving.get_mut(&id).or_else(|| self.whole.get_mut(&id))
    }

    /// Adds a message that begins.
    pub(super) fn begin(&mut self, id: MessageId, incoming: Incoming) {
        self.memory += incoming.memory();
        self.receiving.insert(id, incoming);
    }

    /// Handles the completion of `id`: from now on, it waits for the application.
    pub(super) fn complete(&mut self, id: MessageId) {
        if let Some(incoming) = self.receiving.remove(&id) {
            self.backlog[incoming.role as usize] += incoming.memory();
            self.whole.insert(id, incoming);
        }
    }

    /// Remembers how `id` ended, and returns its state.
    pub(super) fn end(&mut self, id: MessageId, ending: Ending) -> Option<Incoming> {
        if id >= self.low_watermark {
            self.ended.entry(id).or_insert(ending);
        }
        self.forget(id)
    }

    /// What to certify when the session ends and nothing is delivered in it any more.
    pub(super) fn certificate(&self) -> Certificate {
        let last = self.ended.last_key_value().map(|(id, _)| MessageId(id.0 + 1));
        let next = last.unwrap_or(self.low_watermark).max(self.low_watermark);
        // The peer has finished with all messages below the watermark.
        let covered = next.0 - self.low_watermark.0;
        let oldest = MessageId(next.0.saturating_sub(Certificate::MAX_COVERED));
        Certificate::new(next, covered, self.delivered_from(oldest).map(|(id, _)| id))
    }

    /// The messages from `oldest` on that were delivered, the last ones first, and their digests.
    pub(super) fn delivered_from(
        &self,
        oldest: MessageId,
    ) -> impl Iterator<Item = (MessageId, Digest)> {
        self.ended.range(oldest..).rev().filter_map(|(id, ending)| match ending {
            Ending::Delivered(digest) => Some((*id, *digest)),
            Ending::Rejected(_) => None,
        })
    }

    /// Forgets `id`, as if it had never begun, and returns its state.
    pub(super) fn forget(&mut self, id: MessageId) -> Option<Incoming> {
        if let Some(incoming) = self.receiving.remove(&id) {
            self.memory -= incoming.memory();
            return Some(incoming);
        }
        let incoming = self.whole.remove(&id)?;
        self.memory -= incoming.memory();
        self.backlog[incoming.role as usize] -= incoming.memory();
        Some(incoming)
    }

    /// Forgets the endings of messages older than `low_watermark`, with which the peer has
    /// finished. Returns those that were being received.
    pub(super) fn raise_low_watermark(
        &mut self,
        low_watermark: MessageId,
    ) -> Vec<(MessageId, Incoming)> {
        let mut dropped = Vec::new();
        if low_watermark <= self.low_watermark {
            return dropped;
        }
        self.low_watermark = low_watermark;
        // `split_off` would count the remaining entries.
        while let Some(oldest) =
            self.ended.first_entry().filter(|oldest| *oldest.key() < low_watermark)
        {
            step();
            oldest.remove();
        }
        while let Some(oldest) = self.receiving.first_entry().filter(|at| *at.key() < low_watermark)
        {
            step();
            self.memory -= oldest.get().memory();
            dropped.push(oldest.remove_entry());
        }
        dropped
    }

    /// All messages that have not ended.
    pub(super) fn messages(&self) -> impl Iterator<Item = (MessageId, &Incoming)> {
        self.receiving.iter().map(|(id, incoming)| (*id, incoming)).chain(self.whole_messages())
    }

    /// The messages that wait for the application.
    pub(super) fn whole_messages(&self) -> impl Iterator<Item = (MessageId, &Incoming)> {
        self.whole.iter().map(|(id, incoming)| (*id, incoming))
    }

    /// Panics unless sums agree with messages, and only complete ones are below the watermark.
    pub(super) fn check_invariants(&self) {
        let memory: usize = self.messages().map(|(_, incoming)| incoming.memory()).sum();
        assert_eq!(self.memory, memory, "memory of the messages held");
        let mut backlog = [0; Role::COUNT];
        for (id, incoming) in self.whole_messages() {
            assert!(incoming.is_whole() && !self.ended.contains_key(&id), "{id} is whole");
            backlog[incoming.role as usize] += incoming.memory();
        }
        assert_eq!(self.backlog, backlog, "memory of the messages that are whole");
        for (id, incoming) in &self.receiving {
            let open = !incoming.is_whole() && !self.ended.contains_key(id);
            assert!(open && *id >= self.low_watermark, "{id} is being received");
        }
        assert!(
            self.ended.keys().all(|id| *id >= self.low_watermark),
            "endings below the watermark"
        );
    }
}
