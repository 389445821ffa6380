//! The paths to one peer: their order and their counts.

use super::{Order, OrderError, Sequence, Via};
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

/// The paths to one peer, visited in an order from a random start.
#[derive(Clone, Debug)]
pub struct PathSet {
    paths: Vec<PathStats>,
    sequence: Sequence,
}

impl PathSet {
    /// Paths numbered as given, visited in `order` from where `start` stands for: from path
    /// `start % paths` on, if the order is round robin.
    ///
    /// Peers and senders must differ in `start`; see [`Sequence::new`].
    ///
    /// # Errors
    ///
    /// [`OrderError`] if the order is for another number of paths, or if there are none.
    pub fn new(vias: Vec<Via>, order: Order, start: u64) -> Result<Self, OrderError> {
        let sequence = Sequence::new(order, vias.len(), start)?;
        let fresh = |via| PathStats { via, sent: 0, arrived: 0, last_heard: None };
        Ok(Self { paths: vias.into_iter().map(fresh).collect(), sequence })
    }

    /// How many paths there are, at least one: packets in a round.
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// The next path in the order, charged with `packets`.
    pub fn take_turn(&mut self, packets: usize) -> (PathId, Via) {
        let turn = self.sequence.next_path();
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

    fn set(paths: u16, order: &str, start: u64) -> Result<PathSet, OrderError> {
        let remote = "10.0.0.1:1".parse().unwrap();
        let vias = (0..paths).map(|lane| Via { lane, remote }).collect();
        PathSet::new(vias, order.parse().unwrap(), start)
    }

    #[test]
    fn visits_every_path_once_a_round_from_its_start() {
        for (paths, order, expected) in
            [(3, "rrb", [2, 0, 1, 2, 0, 1]), (6, "drb:2x3", [5, 0, 3, 1, 4, 2])]
        {
            let mut set = set(paths, order, 5).unwrap();
            let visited: Vec<u16> = (0..6).map(|_| set.take_turn(1).0.0).collect();
            assert_eq!(visited, expected);
            assert!(set.stats().iter().all(|path| path.sent == 6 / u64::from(paths)));
        }
    }

    #[test]
    fn paths_that_do_not_fit_the_order_are_refused() {
        assert!(matches!(set(3, "drb:2x2", 0), Err(OrderError::Paths { paths: 3, .. })));
        assert!(matches!(set(0, "rrb", 0), Err(OrderError::NoPaths)));
    }

    #[test]
    fn a_path_number_of_the_peers_own_making_is_ignored() {
        let mut set = set(1, "rrb", 0).unwrap();
        set.heard(Instant::ZERO, PathId(9), 4);
        set.heard(Instant::ZERO, PathId(0), 4);
        assert_eq!(set.stats()[0].arrived, 4);
    }
}
