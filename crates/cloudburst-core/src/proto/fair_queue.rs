//! A queue in order of rank, in which nothing starves.

use super::indexed::Indexed;
use core::hash::Hash;

/// One in this many items to be served is the one that has waited longest.
// A bound without a clock or a setting, for an eighth of the link at most. An age in milliseconds
// would make half of the queue urgent as soon as the link is overloaded.
pub(super) const LONGEST_WAITING_EVERY: u64 = 8;

/// Items in order of their ranks, the lowest first.
#[derive(Debug)]
pub(super) struct FairQueue<K, R> {
    /// Changed by [`set`](Self::set) alone.
    pub(super) ranked: Indexed<K, R>,
    /// The same items, those that have waited longest first.
    waiting: Indexed<K, u64>,
    served: u64,
}

impl<K, R> Default for FairQueue<K, R> {
    fn default() -> Self {
        Self { ranked: Indexed::default(), waiting: Indexed::default(), served: 0 }
    }
}

impl<K: Copy + Eq + Hash + Ord, R: Copy + Ord> FairQueue<K, R> {
    /// The item to serve: the one with the lowest rank, and among equals the lowest item. But
    /// every eighth is the one that has waited longest: one that finds k others in the queue is
    /// thus served within 8 (k + 1) calls, whatever follows it.
    ///
    /// The caller must [move](Self::served) it to the end of those that wait.
    pub(super) fn next(&mut self) -> Option<K> {
        // Calls while the queue is empty must change nothing, however often a driver makes them.
        let longest = self.waiting.first()?;
        self.served += 1;
        if self.served.is_multiple_of(LONGEST_WAITING_EVERY) {
            Some(longest)
        } else {
            self.ranked.first()
        }
    }

    /// Moves `item`, which is in the queue and served now, to the end of those that wait.
    pub(super) fn served(&mut self, item: K) {
        self.waiting.push_back(item);
        debug_assert_eq!(self.waiting.len(), self.ranked.len());
    }

    /// Gives `item` the rank `rank`, or removes it. An item that stays keeps its waiting time.
    pub(super) fn set(&mut self, item: K, rank: Option<R>) {
        match (self.ranked.set(item, rank), rank) {
            (None, Some(_)) => self.waiting.push_back(item),
            (Some(_), None) => drop(self.waiting.remove(item)),
            _ => {}
        }
    }
}
