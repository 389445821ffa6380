//! Queues served in turn, so that items for one peer do not delay those for another.

use core::hash::Hash;
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;

/// Empty queues whose memory is kept for reuse.
const MAX_RESERVE: usize = 64;

/// A queue for each key. All queues together hold about `limit` items.
///
/// Once all are full, each may hold `limit` divided by the number of queues. At most `limit (1 + ln
/// limit)` items are therefore held, and one key cannot push out the items of another.
#[derive(Debug)]
pub(super) struct RoundRobin<K, V> {
    queues: HashMap<K, VecDeque<V>>,
    /// Keys of non-empty queues, in turn.
    ring: VecDeque<K>,
    reserve: Vec<VecDeque<V>>,
    limit: usize,
}

impl<K: Copy + Eq + Hash, V> RoundRobin<K, V> {
    pub(super) fn new(limit: usize) -> Self {
        let queues = HashMap::new();
        let ring = VecDeque::new();
        Self { queues, ring, reserve: Vec::new(), limit }
    }

    /// Appends an item to its queue. Returns whether an item was dropped: the oldest of the queue,
    /// or this one if there are too many queues.
    pub(super) fn push(&mut self, key: K, item: V) -> bool {
        if !self.queues.contains_key(&key) {
            if self.ring.len() >= self.limit {
                return true;
            }
            self.ring.push_back(key);
            self.queues.insert(key, self.reserve.pop().unwrap_or_default());
        }
        let share = self.limit / self.ring.len();
        let Some(queue) = self.queues.get_mut(&key) else { return true };
        let full = queue.len() >= share;
        if full {
            queue.pop_front();
        }
        queue.push_back(item);
        full
    }

    /// Removes the next item, and ends the turn of its key.
    pub(super) fn pop(&mut self) -> Option<V> {
        let key = self.next()?;
        let item = self.queues.get_mut(&key)?.pop_front();
        self.end_turn();
        item
    }

    /// All items, by key in turn.
    pub(super) fn items(&self) -> impl Iterator<Item = &V> {
        self.ring.iter().filter_map(|key| self.queues.get(key)).flatten()
    }

    /// The items of `key`.
    pub(super) fn queue(&mut self, key: K) -> Option<&mut VecDeque<V>> {
        self.queues.get_mut(&key)
    }

    /// The number of non-empty queues.
    pub(super) fn len(&self) -> usize {
        self.ring.len()
    }

    /// The key whose turn it is.
    pub(super) fn next(&self) -> Option<K> {
        self.ring.front().copied()
    }

    /// Ends the turn of the first queue.
    pub(super) fn end_turn(&mut self) {
        let Some(key) = self.ring.pop_front() else { return };
        if self.queues.get(&key).is_some_and(|queue| !queue.is_empty()) {
            self.ring.push_back(key);
        } else {
            self.remove_queue(key);
        }
    }

    /// Removes, out of turn, the first item for which `fits` holds, of a key for which `key_fits`
    /// does. Examines only the first `limit` keys and items.
    pub(super) fn take_first(
        &mut self,
        limit: usize,
        key_fits: impl Fn(K) -> bool,
        fits: impl Fn(&V) -> bool,
    ) -> Option<(K, V)> {
        let (position, key, at) =
            self.ring.iter().take(limit).enumerate().find_map(|(position, &key)| {
                let queue = self.queues.get(&key).filter(|_| key_fits(key))?;
                let at = queue.iter().take(limit).position(&fits)?;
                Some((position, key, at))
            })?;
        let queue = self.queues.get_mut(&key)?;
        let item = queue.remove(at)?;
        if queue.is_empty() {
            self.ring.remove(position);
            self.remove_queue(key);
        }
        Some((key, item))
    }

    /// Panics unless each queue is non-empty, has one turn, and respects the limit.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.queues.len(), self.ring.len(), "one turn for each queue");
        assert!(self.ring.len() <= self.limit, "{} queues", self.ring.len());
        for key in &self.ring {
            let items = self.queues.get(key).map_or(0, VecDeque::len);
            assert!((1..=self.limit).contains(&items), "{items} items of a queue");
        }
    }

    fn remove_queue(&mut self, key: K) {
        if let Some(mut queue) = self.queues.remove(&key)
            && self.reserve.len() < MAX_RESERVE
        {
            queue.clear();
            self.reserve.push(queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queues: &mut RoundRobin<u8, u32>) -> Vec<(u8, u32)> {
        core::iter::from_fn(|| {
            let key = queues.next()?;
            let item = queues.queue(key)?.pop_front()?;
            queues.end_turn();
            Some((key, item))
        })
        .collect()
    }

    #[test]
    fn queues_take_turns_and_each_keeps_its_newest() {
        let mut queues = RoundRobin::new(4);
        assert_eq!([1, 2, 3, 4].map(|item| queues.push(0, item)), [false; 4]);
        assert!(queues.push(0, 5), "the oldest gives way");
        assert!(!queues.push(1, 6));
        assert_eq!(drain(&mut queues), [(0, 2), (1, 6), (0, 3), (0, 4), (0, 5)]);
        assert_eq!(queues.next(), None);
    }

    #[test]
    fn queued_items_are_bounded_for_any_number_of_keys() {
        let mut queues = RoundRobin::new(16);
        for item in 0..10_000 {
            queues.push((item % 200) as u8, item);
        }
        assert_eq!(drain(&mut queues).len(), 16, "one for each of the first 16");
        for key in 0..200 {
            for item in 0..100 {
                queues.push(key, item);
            }
        }
        assert!(drain(&mut queues).len() <= 60, "16 (1 + ln 16)");
    }
}
