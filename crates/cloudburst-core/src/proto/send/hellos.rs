//! The queue of HELLOs and OPENs: which is sent next, and when. Those of a first attempt leave at
//! once, repeated ones within a small share of the link.

use crate::proto::indexed::Indexed;
use crate::rate::Pacer;
use crate::time::Instant;
use core::time::Duration;
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

/// Rank among those whose HELLOs are due. The one with the fewest attempts goes first, so a new peer
/// does not wait for those that have not answered for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HelloRank {
    /// Attempts of the handshake, or copies of the check, including this one.
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

/// Identifies a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CheckId {
    pub(super) peer: SocketAddr,
    pub(super) nonce: u64,
}

/// What a HELLO is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum HelloOf {
    /// The handshake with a peer.
    Handshake(SocketAddr),
    Check(CheckId),
}

/// Handshakes and checks whose HELLOs are due.
#[derive(Debug)]
pub(super) struct Hellos {
    pub(super) due: Indexed<HelloOf, HelloRank>,
    /// Spaces repeated HELLOs.
    retries: Pacer,
}

impl Hellos {
    /// Creates the queue for a link of `capacity` bits per second. Repeated HELLOs may take `share`
    /// of it, or [`MAX_RETRY_RATE`] if that is less.
    pub(super) fn new(capacity: u64, share: f64) -> Self {
        let share = share.min(MAX_RETRY_RATE / capacity as f64);
        let retries = Pacer::new(capacity, share).with_depth(RETRY_BURST);
        Self { due: Indexed::default(), retries }
    }

    /// When the next HELLO may go, as far as the share of HELLOs is concerned.
    pub(super) fn ready_at(&self) -> Option<Instant> {
        let rank = self.due.first_rank()?;
        Some(if rank.is_retry() { self.retries.ready_at() } else { Instant::ZERO })
    }

    /// Records that a HELLO of `bytes` on the wire goes to a peer of rank `rank`.
    pub(super) fn on_sent(&mut self, now: Instant, rank: HelloRank, bytes: usize) {
        if rank.is_retry() {
            self.retries.charge(now, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> HelloOf {
        HelloOf::Handshake(([10, 0, 0, number], 7000).into())
    }

    #[test]
    fn peers_with_fewest_attempts_go_first_then_those_that_waited_longest() {
        let mut hellos = Hellos::new(1_000_000_000, 1.0);
        for (at, (attempt, since)) in [(9, 1), (2, 8), (2, 7), (1, 9)].into_iter().enumerate() {
            let rank = HelloRank { attempt, since: Instant::from_nanos(since) };
            hellos.due.set(peer(at as u8), Some(rank));
        }
        for expected in [3, 2, 1, 0] {
            assert_eq!(hellos.due.pop_first(), Some(peer(expected)));
        }
        assert_eq!(hellos.ready_at(), None);
    }

    #[test]
    fn repeated_hellos_are_paced_to_their_share_and_first_ones_are_not() {
        let mut hellos = Hellos::new(8_000_000, 1.0);
        let now = Instant::from_nanos(1_000_000_000);
        let retry = HelloRank { attempt: 2, since: now };
        hellos.due.set(peer(0), Some(retry));
        let mut sent = 0;
        while hellos.ready_at().is_some_and(|at| at <= now) {
            hellos.on_sent(now, retry, 100);
            sent += 1;
        }
        // At 2.5 of the 8 Mb/s, one in 320 us: the bucket depth of 25 ms allows for 79.
        assert_eq!(sent, 79);
        hellos.due.set(peer(0), Some(HelloRank { attempt: 1, since: now }));
        assert_eq!(hellos.ready_at(), Some(Instant::ZERO));
    }
}
