//! Keys in order of their ranks: timers by deadline, queues by urgency or age.

use core::hash::Hash;
use foldhash::{HashMap, HashMapExt};
use std::collections::BTreeSet;

/// A map from keys to ranks, which is ordered by rank, and for equal ranks by key.
///
/// It alone knows the rank of a key: what is ranked keeps no copy, which could disagree.
#[derive(Debug)]
pub(super) struct Indexed<K, R> {
    ranks: HashMap<K, R>,
    order: BTreeSet<(R, K)>,
}

impl<K, R> Default for Indexed<K, R> {
    fn default() -> Self {
        Self { ranks: HashMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Copy + Eq + Hash + Ord, R: Copy + Ord> Indexed<K, R> {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn contains(&self, key: K) -> bool {
        self.ranks.contains_key(&key)
    }

    pub(super) fn rank(&self, key: K) -> Option<R> {
        self.ranks.get(&key).copied()
    }

    /// The key with the lowest rank.
    pub(super) fn first(&self) -> Option<K> {
        self.order.first().map(|&(_, key)| key)
    }

    /// The lowest rank.
    pub(super) fn first_rank(&self) -> Option<R> {
        self.order.first().map(|&(rank, _)| rank)
    }

    /// All keys, in order of their ranks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, R)> {
        self.order.iter().map(|&(rank, key)| (key, rank))
    }

    /// Gives `key` the rank `rank`, or removes it. Returns its rank before.
    pub(super) fn set(&mut self, key: K, rank: Option<R>) -> Option<R> {
        let old = match rank {
            Some(rank) => self.ranks.insert(key, rank),
            // Spares the hash of the key.
            None if self.is_empty() => return None,
            None => self.ranks.remove(&key),
        };
        if old != rank {
            if let Some(old) = old {
                self.order.remove(&(old, key));
            }
            self.order.extend(rank.map(|rank| (rank, key)));
        }
        old
    }

    /// Gives `key` the rank `rank`, if that is lower than the one it has. A timer that should fire
    /// later, or not at all, thus fires early, and its owner then sets it again. That costs less
    /// than moving it with every packet.
    pub(super) fn hasten(&mut self, key: K, rank: Option<R>) {
        if rank.is_some_and(|rank| self.rank(key).is_none_or(|old| rank < old)) {
            self.set(key, rank);
        }
    }

    pub(super) fn remove(&mut self, key: K) -> Option<R> {
        self.set(key, None)
    }

    /// Removes the key with the lowest rank.
    pub(super) fn pop_first(&mut self) -> Option<K> {
        let (_, key) = self.order.pop_first()?;
        self.ranks.remove(&key);
        Some(key)
    }

    /// Removes the key with the lowest rank, if that is at most `now`.
    pub(super) fn pop_due(&mut self, now: R) -> Option<K> {
        self.first_rank().filter(|rank| *rank <= now)?;
        self.pop_first()
    }
}

impl<K: Copy + Eq + Hash + Ord> Indexed<K, u64> {
    /// Puts `key` behind all others.
    pub(super) fn push_back(&mut self, key: K) {
        let last = self.order.last().map_or(0, |&(rank, _)| rank);
        self.set(key, Some(last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn agrees_with_a_map_that_is_sorted_anew(
            steps in prop::collection::vec((0..6, 0..12_u8, 0..9_u64), 1..200),
        ) {
            let mut indexed = Indexed::default();
            let mut oracle = BTreeMap::new();
            for (step, key, rank) in steps {
                let sorted = |oracle: &BTreeMap<u8, u64>| {
                    let mut sorted: Vec<_> = oracle.iter().map(|(&key, &rank)| (key, rank)).collect();
                    sorted.sort_by_key(|&(key, rank)| (rank, key));
                    sorted
                };
                let first = sorted(&oracle).first().copied();
                match step {
                    0 => prop_assert_eq!(indexed.set(key, Some(rank)), oracle.insert(key, rank)),
                    1 => prop_assert_eq!(indexed.remove(key), oracle.remove(&key)),
                    2 => {
                        indexed.hasten(key, Some(rank));
                        let lowest = oracle.entry(key).or_insert(rank);
                        *lowest = rank.min(*lowest);
                        indexed.hasten(key, None);
                    }
                    3 => {
                        let due = first.filter(|&(_, first)| first <= rank).map(|(key, _)| key);
                        prop_assert_eq!(indexed.pop_due(rank), due);
                        due.map(|key| oracle.remove(&key));
                    }
                    4 => {
                        prop_assert_eq!(indexed.pop_first(), first.map(|(key, _)| key));
                        first.map(|(key, _)| oracle.remove(&key));
                    }
                    _ => {
                        indexed.push_back(key);
                        let last = oracle.values().copied().max().unwrap_or(0);
                        oracle.insert(key, last + 1);
                    }
                }
                let now = sorted(&oracle);
                prop_assert_eq!(indexed.iter().collect::<Vec<_>>(), now.clone());
                prop_assert_eq!(indexed.first(), now.first().map(|&(key, _)| key));
                prop_assert_eq!(indexed.first_rank(), now.first().map(|&(_, rank)| rank));
                prop_assert_eq!((indexed.len(), indexed.is_empty()), (now.len(), now.is_empty()));
                prop_assert_eq!(indexed.rank(key), oracle.get(&key).copied());
                prop_assert_eq!(indexed.contains(key), oracle.contains_key(&key));
            }
        }
    }
}
