//! The queue of HELLOs and OPENs: which is sent next, and when. Those of a first attempt leave at
//! once, repeated ones within a small share of the link.

use crate::rate::Pacer;
use crate::time::Instant;
use core::time::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The maximum rate of repeated HELLOs and OPENs in bits per second, however fast the link: about
/// 3,400 HELLOs or 1,900 OPENs a second.
// With 2,000 dead peers at 100 Mb/s and no share of their own, HELLOs filled the link: 5 KB to a
// live peer took 227 ms instead of 0.1. All of an idle link would be too much as well, since they
// would empty the bucket that messages need.
const MAX_RETRY_RATE: f64 = 2_500_000.0;

/// Their bucket depth, in time at that rate: the HELLOs of five full attempts, or the OPENs of
/// nearly three.
const RETRY_BURST: Duration = Duration::from_millis(25);

/// Rank of a peer among those to which HELLOs are due. The peer with the fewest attempts goes
/// first, so a new peer does not wait for those that have not answered for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HelloRank {
    /// Attempts of the handshake, including this one.
    pub(super) attempt: u32,
    /// Since when they are due.
    pub(super) since: Instant,
}

impl HelloRank {
    /// Whether the HELLOs of this attempt repeat earlier ones.
    pub(super) const fn is_retry(&self) -> bool {
        self.attempt > 1
    }
}

/// Peers to which HELLOs are due.
///
/// Each peer keeps its rank and passes it in, so that the queue and its owners cannot disagree.
#[derive(Debug)]
pub(super) struct Hellos {
    due: BTreeSet<(HelloRank, SocketAddr)>,
    /// Spaces repeated HELLOs.
    retries: Pacer,
}

impl Hellos {
    /// Creates the queue for a link of `capacity` bits per second. Repeated HELLOs may take `share`
    /// of it, or [`MAX_RETRY_RATE`] if that is less.
    pub(super) fn new(capacity: u64, share: f64) -> Self {
        let share = share.min(MAX_RETRY_RATE / capacity as f64);
        Self { due: BTreeSet::new(), retries: Pacer::new(capacity, share).with_depth(RETRY_BURST) }
    }

    /// The number of peers to which HELLOs are due.
    pub(super) fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether `peer` is queued at `key`. True if there is no key.
    pub(super) fn has(&self, key: Option<HelloRank>, peer: SocketAddr) -> bool {
        key.is_none_or(|rank| self.due.contains(&(rank, peer)))
    }

    /// The peer whose HELLO goes next.
    pub(super) fn next(&self) -> Option<(HelloRank, SocketAddr)> {
        self.due.first().copied()
    }

    /// When the next HELLO may go, as far as the share of HELLOs is concerned.
    pub(super) fn ready_at(&self) -> Option<Instant> {
        let (rank, _) = self.next()?;
        Some(if rank.is_retry() { self.retries.ready_at() } else { Instant::ZERO })
    }

    /// Records that a HELLO of `bytes` on the wire goes to a peer of rank `rank`.
    pub(super) fn on_sent(&mut self, now: Instant, rank: HelloRank, bytes: usize) {
        if rank.is_retry() {
            self.retries.charge(now, bytes);
        }
    }

    /// Moves `peer` from the rank `key` to the rank `to`. `None` means that no HELLO is due to it.
    pub(super) fn set(
        &mut self,
        key: &mut Option<HelloRank>,
        to: Option<HelloRank>,
        peer: SocketAddr,
    ) {
        if let Some(old) = key.take() {
            self.due.remove(&(old, peer));
        }
        self.due.extend(to.map(|rank| (rank, peer)));
        *key = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> SocketAddr {
        ([10, 0, 0, number], 7000).into()
    }

    #[test]
    fn peers_with_fewest_attempts_go_first_then_those_that_waited_longest() {
        let mut hellos = Hellos::new(1_000_000_000, 1.0);
        let mut keys = [None; 4];
        for (at, (attempt, since)) in [(9, 1), (2, 8), (2, 7), (1, 9)].into_iter().enumerate() {
            let rank = HelloRank { attempt, since: Instant::from_nanos(since) };
            hellos.set(&mut keys[at], Some(rank), peer(at as u8));
        }
        for expected in [3, 2, 1, 0] {
            assert_eq!(hellos.next().map(|(_, peer)| peer), Some(peer(expected)));
            hellos.set(&mut keys[usize::from(expected)], None, peer(expected));
        }
        assert_eq!(hellos.ready_at(), None);
    }

    #[test]
    fn repeated_hellos_are_paced_to_their_share_and_first_ones_are_not() {
        let mut hellos = Hellos::new(8_000_000, 1.0);
        let mut key = None;
        let now = Instant::from_nanos(1_000_000_000);
        let retry = HelloRank { attempt: 2, since: now };
        hellos.set(&mut key, Some(retry), peer(0));
        let mut sent = 0;
        while hellos.ready_at().is_some_and(|at| at <= now) {
            hellos.on_sent(now, retry, 100);
            sent += 1;
        }
        // At 2.5 of the 8 Mb/s, one in 320 us: the bucket depth of 25 ms allows for 79.
        assert_eq!(sent, 79);
        hellos.set(&mut key, Some(HelloRank { attempt: 1, since: now }), peer(0));
        assert_eq!(hellos.ready_at(), Some(Instant::ZERO));
    }
}
