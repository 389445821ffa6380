//! Bursts that wait for requests: an opening, then as many symbols as the receiver pulls (SCDP,
//! section IV-C).

use super::backoff;
use crate::proto::limits::MAX_BACKOFF;
use crate::wire::answer::NONE_ACKNOWLEDGED;
use core::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Pulled {
    /// Symbols that the receiver has requested in all.
    credit: u32,
    /// The number of the next packet when the credit last rose.
    raised_at: u64,
    /// Whether the receiver has begun to receive the message, and requests what it needs.
    known: bool,
    /// Whether it requests no more unless symbols are lost.
    fin: bool,
}

impl Pulled {
    /// Handles a PULL that acknowledges packet `acknowledged`, and requests `credit` symbols in
    /// all. `next` is the number of the next packet. Returns by how many symbols the credit rose.
    pub(super) fn on_pull(&mut self, acknowledged: u64, next: u64, credit: u32, fin: bool) -> u32 {
        let is_newer = acknowledged != NONE_ACKNOWLEDGED && acknowledged >= self.raised_at;
        self.known = true;
        if credit < self.credit && !is_newer {
            // A later PULL overtook it.
            return 0;
        }
        // A receiver that answers a later packet with less credit has forgotten the message.
        let more = credit.saturating_sub(self.credit);
        if more > 0 {
            self.raised_at = next;
        }
        self.credit = credit;
        self.fin = fin;
        more
    }

    /// Symbols that the receiver has requested in all.
    pub(super) const fn credit(&self) -> u32 {
        self.credit
    }

    /// Whether the last symbol that may be sent requests an ACK: until the first PULL, and at the
    /// end of the block. In between, the receiver detects losses.
    pub(super) const fn requests_ack(&self) -> bool {
        !self.known || self.fin
    }

    /// How long to wait for the receiver, after `unanswered` RTOs in a row without an answer.
    pub(super) fn timeout(&self, rto: Duration, unanswered: u32) -> Duration {
        match (self.known, self.fin) {
            (false, _) => backoff(rto, unanswered),
            // The receiver's own timers expire first.
            (true, true) => backoff(rto * 2, unanswered),
            // The receiver serves others first, or has no capacity.
            (true, false) => MAX_BACKOFF,
        }
    }
}

/// Symbols that a message opens with, by the capacity of the sender's link in bits per second: as
/// measured for SCDP (sections V-F and V-I) at 1, 5 and 10 Gb/s, and interpolated between these.
pub(in crate::proto::send) fn window(capacity: u64) -> u32 {
    const GBPS: u64 = 1_000_000_000;
    // Over six hops with 200 us of round trip, 16 symbols would be better at 1 Gb/s: there, set the
    // window to what a round trip carries.
    let measured = [(GBPS, 12), (5 * GBPS, 24), (10 * GBPS, 32)];
    let capacity = capacity.clamp(GBPS, 10 * GBPS);
    let at = measured.partition_point(|&(rate, _)| rate < capacity).max(1);
    let (below, least) = measured[at - 1];
    let (above, most) = measured[at];
    least + ((capacity - below) * u64::from(most - least) / (above - below)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credit_of_pulls_counts_once_in_any_order() {
        let mut pulled = Pulled::default();
        assert!(pulled.requests_ack());
        let mut more = |credit| pulled.on_pull(NONE_ACKNOWLEDGED, 20, credit, false);
        assert_eq!([1, 4, 2, 4, 7].map(&mut more), [1, 3, 0, 0, 3]);
        assert!(!pulled.requests_ack());
        assert_eq!(pulled.timeout(Duration::from_millis(1), 0), MAX_BACKOFF);
        assert_eq!(pulled.on_pull(NONE_ACKNOWLEDGED, 20, 8, true), 1);
        assert!(pulled.requests_ack());
        assert_eq!(pulled.timeout(Duration::from_millis(1), 0), Duration::from_millis(2));
    }

    #[test]
    fn a_receiver_that_forgot_the_message_restarts_its_credit() {
        let mut pulled = Pulled::default();
        assert_eq!(pulled.on_pull(3, 20, 9, false), 9);
        assert_eq!(pulled.on_pull(19, 30, 0, false), 0, "packet 19 is older than the credit");
        assert_eq!(pulled.on_pull(20, 30, 0, false), 0);
        assert_eq!(pulled.on_pull(NONE_ACKNOWLEDGED, 30, 2, false), 2);
    }

    #[test]
    fn the_window_grows_with_the_link() {
        let windows = [1, 10, 30, 50, 75, 100, 400].map(|tenths| window(tenths * 100_000_000));
        assert_eq!(windows, [12, 12, 18, 24, 28, 32, 32]);
    }
}
