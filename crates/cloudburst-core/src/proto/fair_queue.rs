//! A queue in order of rank, in which nothing starves.

use std::collections::BTreeSet;

/// One in this many items to be served is the one that has waited longest.
// A bound without a clock or a setting, for an eighth of the link at most. An age in milliseconds
// would make half of the queue urgent as soon as the link is overloaded.
const LONGEST_WAITING_EVERY: u64 = 8;

/// The key of an item in the queue: its position in the order of ranks, and in that of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key<R> {
    rank: R,
    /// When it entered the queue or was last served, as a count of such events.
    since: u64,
}

impl<R: Copy> Key<R> {
    pub(super) const fn rank(&self) -> R {
        self.rank
    }
}

/// Items in order of their ranks, the lowest first.
///
/// Each item's owner keeps its present key and passes it in, so that the queue and its owners
/// cannot disagree.
#[derive(Debug)]
pub(super) struct FairQueue<R, T> {
    ranked: BTreeSet<(R, T)>,
    /// The same items, those that have waited longest first.
    waiting: BTreeSet<(u64, T)>,
    /// The last `since`.
    clock: u64,
    served: u64,
}

impl<R, T> Default for FairQueue<R, T> {
    fn default() -> Self {
        Self { ranked: BTreeSet::new(), waiting: BTreeSet::new(), clock: 0, served: 0 }
    }
}

impl<R: Copy + Ord, T: Copy + Ord> FairQueue<R, T> {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        debug_assert_eq!(self.ranked.len(), self.waiting.len());
        self.waiting.len()
    }

    /// The item to serve: the one with the lowest rank, and among equals the lowest item. But
    /// every eighth is the one that has waited longest: one that finds k others in the queue is
    /// thus served within 8 (k + 1) calls, whatever follows it.
    ///
    /// The caller must [move](Self::served) it to the end of those that wait.
    pub(super) fn next(&mut self) -> Option<T> {
        // Calls while the queue is empty must change nothing, however often a driver makes them.
        let longest = self.longest_waiting()?;
        self.served += 1;
        if self.served.is_multiple_of(LONGEST_WAITING_EVERY) {
            Some(longest)
        } else {
            self.ranked.first().map(|&(_, item)| item)
        }
    }

    /// The item that has waited longest.
    pub(super) fn longest_waiting(&self) -> Option<T> {
        self.waiting.first().map(|&(_, item)| item)
    }

    /// All items in order of rank.
    pub(super) fn by_rank(&self) -> impl Iterator<Item = (R, T)> {
        self.ranked.iter().copied()
    }

    /// Moves `item`, which is served now, to the end of those that wait.
    pub(super) fn served(&mut self, key: &mut Option<Key<R>>, item: T) {
        if let Some(key) = key {
            self.waiting.remove(&(key.since, item));
            key.since = self.enter(item);
        }
    }

    /// Gives `item`, whose key is `key`, the rank `to`. `None` means that it is not in the queue.
    /// An item that stays keeps its waiting time.
    pub(super) fn set(&mut self, key: &mut Option<Key<R>>, to: Option<R>, item: T) {
        let old = *key;
        if old.map(|old| old.rank) == to {
            return;
        }
        if let Some(Key { rank, since }) = old {
            self.ranked.remove(&(rank, item));
            if to.is_none() {
                self.waiting.remove(&(since, item));
            }
        }
        *key = to.map(|rank| {
            self.ranked.insert((rank, item));
            Key { rank, since: old.map_or_else(|| self.enter(item), |old| old.since) }
        });
    }

    /// Whether `item` is queued at `key`. True if there is no key.
    pub(super) fn has(&self, key: Option<Key<R>>, item: T) -> bool {
        key.is_none_or(|Key { rank, since }| {
            self.ranked.contains(&(rank, item)) && self.waiting.contains(&(since, item))
        })
    }

    /// Puts `item` at the end of those that wait.
    fn enter(&mut self, item: T) -> u64 {
        self.clock += 1;
        self.waiting.insert((self.clock, item));
        self.clock
    }
}
