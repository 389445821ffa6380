//! A queue in order of rank, in which nothing starves.

use std::collections::BTreeSet;

/// Every this-many-th entry to be served is the one that has waited longest.
const PATIENT_EVERY: u64 = 8;

/// The place of an entry in the queue: in the order of ranks, and in that of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<R> {
    rank: R,
    /// When it entered the queue or was last served, as a count of such events.
    since: u64,
}

impl<R: Copy> Place<R> {
    pub(super) const fn rank(&self) -> R {
        self.rank
    }
}

/// Entries with keys `K` in order of their ranks, the lowest first.
///
/// Each entry's owner keeps its present place and passes it in, so that the queue and its owners cannot
/// disagree.
#[derive(Debug)]
pub(super) struct FairQueue<R, K> {
    ranked: BTreeSet<(R, K)>,
    /// The same entries, those that have waited longest first.
    waiting: BTreeSet<(u64, K)>,
    /// The last `since`.
    clock: u64,
    served: u64,
}

impl<R, K> Default for FairQueue<R, K> {
    fn default() -> Self {
        Self { ranked: BTreeSet::new(), waiting: BTreeSet::new(), clock: 0, served: 0 }
    }
}

impl<R: Copy + Ord, K: Copy + Ord> FairQueue<R, K> {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        debug_assert_eq!(self.ranked.len(), self.waiting.len());
        self.waiting.len()
    }

    /// The entry to serve: the one with the lowest rank, and among equals the lowest key. But every eighth is the
    /// one that has waited longest: one that finds k others in the queue is thus served within 8 (k + 1)
    /// calls, whatever follows it.
    ///
    /// The caller must [move](Self::served) it to the end of those that wait.
    pub(super) fn next(&mut self) -> Option<K> {
        // Calls while the queue is empty must change nothing, however often a driver makes them.
        let longest = self.longest_waiting()?;
        self.served += 1;
        if self.served.is_multiple_of(PATIENT_EVERY) {
            Some(longest)
        } else {
            self.ranked.first().map(|&(_, key)| key)
        }
    }

    /// The entry that has waited longest.
    pub(super) fn longest_waiting(&self) -> Option<K> {
        self.waiting.first().map(|&(_, key)| key)
    }

    /// All entries in order of rank.
    pub(super) fn by_rank(&self) -> impl Iterator<Item = (R, K)> {
        self.ranked.iter().copied()
    }

    /// Moves `key`, which is served now, to the end of those that wait.
    pub(super) fn served(&mut self, place: &mut Option<Place<R>>, key: K) {
        if let Some(place) = place {
            self.waiting.remove(&(place.since, key));
            place.since = self.enter(key);
        }
    }

    /// Gives `key`, which is at `place`, the rank `to`. `None` means that it is not in the queue. An entry
    /// that stays has waited for as long as before.
    pub(super) fn set(&mut self, place: &mut Option<Place<R>>, to: Option<R>, key: K) {
        let old = *place;
        if old.map(|old| old.rank) == to {
            return;
        }
        if let Some(Place { rank, since }) = old {
            self.ranked.remove(&(rank, key));
            if to.is_none() {
                self.waiting.remove(&(since, key));
            }
        }
        *place = to.map(|rank| {
            self.ranked.insert((rank, key));
            Place { rank, since: old.map_or_else(|| self.enter(key), |old| old.since) }
        });
    }

    /// Whether `key` is at `place`. True if there is no place.
    pub(super) fn has(&self, place: Option<Place<R>>, key: K) -> bool {
        place.is_none_or(|Place { rank, since }| {
            self.ranked.contains(&(rank, key)) && self.waiting.contains(&(since, key))
        })
    }

    /// Puts `key` at the end of those that wait.
    fn enter(&mut self, key: K) -> u64 {
        self.clock += 1;
        self.waiting.insert((self.clock, key));
        self.clock
    }
}
