//! The paths to one peer: their order and their counts.

use super::Via;
use crate::id::PathId;
use crate::time::Instant;

/// Live counts of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStats {
    /// How packets get onto the path.
    pub via: Via,
    /// Packets sent on it.
    pub sent: u64,
    /// Symbols that the peer said had arrived on it.
    pub arrived: u64,
    /// When the peer last said that anything arrived on it.
    pub last_heard: Option<Instant>,
}

/// The paths to one peer, visited in turn (RRB of the DRB paper) from a random start.
#[derive(Clone, Debug)]
pub struct PathSet {
    paths: Vec<PathStats>,
    next: usize,
}

impl PathSet {
    /// Paths numbered as given, visited from path `start % paths` on.
    ///
    /// Senders must differ in `start`: if all began with path 0, the first packets of all
    /// messages of a fabric would meet on one spine.
    pub fn new(vias: Vec<Via>, start: u64) -> Self {
        let next = start.checked_rem(vias.len() as u64).unwrap_or(0) as usize;
        let fresh = |via| PathStats { via, sent: 0, arrived: 0, last_heard: None };
        Self { paths: vias.into_iter().map(fresh).collect(), next }
    }

    /// How many paths there are: packets in a round.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The next path in turn, charged with `packets`.
    ///
    /// # Panics
    ///
    /// When the set is empty; whoever makes it checks that.
    pub fn take_turn(&mut self, packets: usize) -> (PathId, Via) {
        let turn = self.next;
        self.next = (turn + 1) % self.paths.len();
        let path = &mut self.paths[turn];
        path.sent += packets as u64;
        (PathId(turn as u16), path.via)
    }

    /// Notes that the peer has `more` symbols from `path` than it said before. Other numbers
    /// than this set's are ignored: they are the peer's mistake.
    pub fn heard(&mut self, now: Instant, path: PathId, more: u64) {
        if let Some(path) = self.paths.get_mut(usize::from(path.0)) {
            path.arrived += more;
            path.last_heard = Some(now);
        }
    }

    /// The counts, by path number.
    pub fn stats(&self) -> &[PathStats] {
        &self.paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: u16, start: u64) -> PathSet {
        let remote = "10.0.0.1:1".parse().unwrap();
        PathSet::new((0..paths).map(|lane| Via { lane, remote }).collect(), start)
    }

    #[test]
    fn visits_every_path_once_a_round_from_its_start() {
        let mut set = set(3, 5);
        let visited: Vec<u16> = (0..6).map(|_| set.take_turn(1).0.0).collect();
        assert_eq!(visited, [2, 0, 1, 2, 0, 1]);
        assert!(set.stats().iter().all(|path| path.sent == 2));
    }

    #[test]
    fn a_path_number_of_the_peers_own_making_is_ignored() {
        let mut set = set(1, 0);
        set.heard(Instant::ZERO, PathId(9), 4);
        set.heard(Instant::ZERO, PathId(0), 4);
        assert_eq!(set.stats()[0].arrived, 4);
        assert!(PathSet::new(Vec::new(), 7).is_empty());
    }
}
