//! Whose turn it is, and who is to be woken when.

use crate::id::MessageId;
use crate::time::Instant;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Message(MessageId),
    Peer(SocketAddr),
}

/// Messages with something to send, the shortest remaining first, and all timers.
///
/// Each entry's owner keeps its present key and passes it in, so that the schedule and its
/// owners cannot disagree.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    ready: BTreeSet<(usize, MessageId)>,
    timers: BTreeSet<(Instant, Timer)>,
}

impl Schedule {
    /// The ready message with the fewest symbols to go; the oldest of equals.
    pub(super) fn shortest(&self) -> Option<MessageId> {
        self.ready.first().map(|&(_, id)| id)
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Takes out a timer that is due; its owner must forget the key.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        if self.next_timer()? > now {
            return None;
        }
        self.timers.pop_first().map(|(_, timer)| timer)
    }

    /// Moves `id` from the place `key` to the place `to`.
    pub(super) fn set_ready(&mut self, key: &mut Option<usize>, to: Option<usize>, id: MessageId) {
        if *key != to {
            if let Some(old) = *key {
                self.ready.remove(&(old, id));
            }
            self.ready.extend(to.map(|new| (new, id)));
            *key = to;
        }
    }

    /// Moves `timer` from the moment `key` to the moment `to`.
    pub(super) fn set_timer(
        &mut self,
        key: &mut Option<Instant>,
        to: Option<Instant>,
        timer: Timer,
    ) {
        if *key != to {
            if let Some(old) = *key {
                self.timers.remove(&(old, timer));
            }
            self.timers.extend(to.map(|new| (new, timer)));
            *key = to;
        }
    }
}
