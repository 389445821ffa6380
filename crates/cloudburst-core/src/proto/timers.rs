//! Queues of deadlines, to the nanosecond.

use crate::time::Instant;
use std::collections::BTreeSet;

/// Timers, ordered by deadline.
///
/// Each owner keeps the key of its timer and passes it in, so that the queue and its owners cannot
/// disagree.
#[derive(Debug)]
pub(super) struct Timers<T>(BTreeSet<(Instant, T)>);

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<T: Copy + Ord> Timers<T> {
    /// The first deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.first().map(|&(at, _)| at)
    }

    /// The timer with the first deadline.
    pub(super) fn first(&self) -> Option<T> {
        self.0.first().map(|&(_, timer)| timer)
    }

    /// The timer with the first deadline, if that has passed.
    pub(super) fn first_due(&self, now: Instant) -> Option<T> {
        self.first().filter(|_| self.next().is_some_and(|at| at <= now))
    }

    /// The number of timers.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether `timer` is queued at `key`. True if there is no key, because the timer then need not
    /// be queued.
    pub(super) fn has(&self, key: Option<Instant>, timer: T) -> bool {
        key.is_none_or(|at| self.0.contains(&(at, timer)))
    }

    /// All timers, in order of their deadlines.
    pub(super) fn into_iter(self) -> impl Iterator<Item = T> {
        self.0.into_iter().map(|(_, timer)| timer)
    }

    /// Removes a timer that is due. Its owner must forget the key.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<T> {
        self.first_due(now)?;
        self.pop_first()
    }

    /// Removes the first timer, due or not. Its owner must forget the key.
    pub(super) fn pop_first(&mut self) -> Option<T> {
        self.0.pop_first().map(|(_, timer)| timer)
    }

    /// Whether `timer` is set, to the moment `key`.
    pub(super) fn is_set(&self, key: Option<Instant>, timer: T) -> bool {
        key.is_some_and(|at| self.0.contains(&(at, timer)))
    }

    /// Moves `timer` from the moment `key` to the moment `to`, if that is earlier. A timer that
    /// should fire later, or not at all, fires early: its owner then checks and sets it again. That
    /// costs less than moving it with every packet.
    pub(super) fn hasten(&mut self, key: &mut Option<Instant>, to: Option<Instant>, timer: T) {
        if to.is_some_and(|to| key.is_none_or(|at| to < at)) {
            self.set(key, to, timer);
        }
    }

    /// Moves `timer` from the moment `key` to the moment `to`.
    pub(super) fn set(&mut self, key: &mut Option<Instant>, to: Option<Instant>, timer: T) {
        if *key != to {
            if let Some(old) = *key {
                self.0.remove(&(old, timer));
            }
            self.0.extend(to.map(|new| (new, timer)));
            *key = to;
        }
    }
}
