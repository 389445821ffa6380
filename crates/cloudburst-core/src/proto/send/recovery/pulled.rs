//! Bursts that wait for requests: an opening, then as many symbols as the receiver pulls (SCDP,
//! section IV-C).

use super::{AnyPolicy, Policy, Pull, backoff};
use crate::proto::limits::{MAX_BACKOFF, MAX_BLOCKS_IN_FLIGHT};
use crate::time::Instant;
use crate::wire::answer::NONE_ACKNOWLEDGED;
use core::time::Duration;

/// The wait for a PULL, as a multiple of the last one.
const GAPS: u32 = 4;

#[derive(Clone, Copy, Debug)]
pub(in crate::proto::send) struct Pulled {
    /// Symbols that the message sends without a PULL.
    window: u32,
    /// Of these, those of the block. For a message: those that are left for blocks to begin.
    opening: u32,
    /// The latest PULL of the block.
    pull: Option<Pull>,
    /// The number of the next packet when the credit last rose.
    raised_at: u64,
    /// When the credit last rose, or else the last ACK request left.
    raised: Instant,
    /// The time for which the credit did not rise before it last rose.
    gap: Duration,
}

impl Pulled {
    /// The policy of a message that opens with `window` symbols, if given, or with as many as suit
    /// a link of `capacity` bits per second.
    pub(super) fn new(window: Option<u16>, capacity: u64) -> Self {
        let window = window.map_or_else(|| window_for(capacity), u32::from);
        Self {
            window,
            opening: window,
            pull: None,
            raised_at: 0,
            raised: Instant::ZERO,
            gap: MAX_BACKOFF,
        }
    }
}

impl Policy for Pulled {
    fn begin(&mut self, source_symbols: u32, _: u32, _: bool) -> AnyPolicy {
        let opening = self.opening.min(source_symbols);
        let block = Self { opening, ..*self };
        self.opening -= opening;
        self.pull = None;
        self.raised_at = 0;
        AnyPolicy::Pulled(block)
    }

    fn slots(&self, _: usize) -> usize {
        if self.opening > 0 || self.pull.is_some() { MAX_BLOCKS_IN_FLIGHT } else { 0 }
    }

    fn to_begin(&self, _: usize) -> usize {
        // Requested symbols come first, because the receiver has reserved its link for them.
        usize::from(self.pull.is_some())
    }

    fn on_timeout(&mut self) {
        // The receiver has forgotten the message, or its PULL was lost.
        self.opening = 1;
    }

    fn reset(&mut self) {
        *self = Self {
            opening: self.window,
            pull: None,
            raised_at: 0,
            raised: Instant::ZERO,
            gap: MAX_BACKOFF,
            ..*self
        };
    }

    fn opening(&self) -> u32 {
        self.opening
    }

    fn resumption(&self) -> u32 {
        // The receiver pulls what it has capacity for.
        0
    }

    fn probes_opening(&self, _: bool) -> bool {
        true
    }

    fn requests_ack(&self, left: u32) -> bool {
        // Until the first PULL, and at the end of the block. In between, the receiver detects
        // losses.
        left <= 1 && self.pull.is_none_or(|pull| pull.fin)
    }

    fn on_ack_request(&mut self, now: Instant, _: u64, _: u32) {
        if self.pull.is_none() {
            self.raised = now;
        }
    }

    fn on_pull(&mut self, now: Instant, pull: Pull, next: u64) -> Option<u32> {
        let known = self.pull.map_or(0, |pull| pull.credit);
        let is_newer =
            pull.acknowledged != NONE_ACKNOWLEDGED && pull.acknowledged >= self.raised_at;
        if pull.credit < known && !is_newer {
            // A later PULL overtook it.
            return Some(0);
        }
        // A receiver that answers a later packet with less credit has forgotten the message.
        let more = pull.credit.saturating_sub(known);
        if more > 0 {
            self.raised_at = next;
            self.gap = now.saturating_since(self.raised);
            self.raised = now;
        }
        self.pull = Some(pull);
        Some(more)
    }

    fn pulled(&self) -> Option<u32> {
        Some(self.pull.map_or(0, |pull| pull.credit))
    }

    fn wait(&self, rto: Duration, unanswered: u32) -> Duration {
        match self.pull {
            None => backoff(rto, unanswered),
            // The receiver's own timers expire first.
            Some(Pull { fin: true, .. }) => backoff(rto * 2, unanswered),
            // The receiver may serve others first.
            // A wait of 100 ms costs that much wherever the last PULLs or the STOP are lost. With one of
            // two RTOs, 64 senders whose receiver pulls the shortest message first send 17 % more.
            Some(_) => backoff((rto * 2).max(self.gap.saturating_mul(GAPS)), unanswered),
        }
    }
}

/// Symbols that a message opens with, by the capacity of the sender's link in bits per second: as
/// measured for SCDP (sections V-F and V-I) at 1, 5 and 10 Gb/s, and interpolated between these.
fn window_for(capacity: u64) -> u32 {
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

    fn block() -> Pulled {
        Pulled::new(Some(4), 0)
    }

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    const fn pull(acknowledged: u64, credit: u32) -> Pull {
        Pull { acknowledged, credit, fin: false }
    }

    #[test]
    fn the_credit_of_pulls_counts_once_in_any_order() {
        let mut pulled = block();
        assert!(pulled.requests_ack(1));
        let mut more = |credit| pulled.on_pull(at(1), pull(NONE_ACKNOWLEDGED, credit), 20);
        assert_eq!([1, 4, 2, 4, 7].map(&mut more), [1, 3, 0, 0, 3].map(Some));
        assert!(!pulled.requests_ack(1));
        assert_eq!(
            pulled.on_pull(at(1), Pull { fin: true, ..pull(NONE_ACKNOWLEDGED, 8) }, 20),
            Some(1)
        );
        assert!(pulled.requests_ack(1));
    }

    #[test]
    fn the_wait_for_a_pull_is_as_long_as_the_last_ones_suggest() {
        let mut pulled = block();
        let rto = Duration::from_millis(1);
        let wait = |pulled: &Pulled| pulled.wait(rto, 0).as_millis();
        assert_eq!(wait(&pulled), 1);
        pulled.on_ack_request(at(10), 3, 4);
        pulled.on_pull(at(11), pull(3, 0), 20);
        assert_eq!(wait(&pulled), 100, "it is not known when its turn is");
        for (time, expected) in [(30, 80), (31, 4), (31, 2), (60, 100)] {
            let credit = pulled.pull.map_or(0, |pull| pull.credit) + 1;
            pulled.on_pull(at(time), pull(NONE_ACKNOWLEDGED, credit), 20);
            assert_eq!(wait(&pulled), expected, "a PULL after {time} ms");
        }
        let fin = Pull { fin: true, ..pull(NONE_ACKNOWLEDGED, 9) };
        pulled.on_pull(at(90), fin, 20);
        assert_eq!(wait(&pulled), 2, "no other is to come");
    }

    #[test]
    fn a_receiver_that_forgot_the_message_restarts_its_credit() {
        let mut pulled = block();
        assert_eq!(pulled.on_pull(at(1), pull(3, 9), 20), Some(9));
        assert_eq!(
            pulled.on_pull(at(1), pull(19, 0), 30),
            Some(0),
            "packet 19 is older than the credit"
        );
        assert_eq!(pulled.on_pull(at(1), pull(20, 0), 30), Some(0));
        assert_eq!(pulled.on_pull(at(1), pull(NONE_ACKNOWLEDGED, 2), 30), Some(2));
    }

    #[test]
    fn blocks_share_the_window_and_the_next_has_what_was_pulled_before_it_began() {
        let mut message = Pulled::new(Some(12), 0);
        assert_eq!(message.begin(8, 8, false).opening(), 8);
        assert_eq!(message.on_pull(at(1), pull(3, 2), 20), Some(2));
        let block = message.begin(8, 8, false);
        assert_eq!((block.opening(), block.pulled()), (4, Some(2)));
        assert_eq!((message.slots(2), message.pulled()), (0, Some(0)), "it waits for a PULL");
        message.on_timeout();
        assert_eq!(message.begin(8, 8, false).opening(), 1);
        message.reset();
        assert_eq!(message.opening(), 12);
    }

    #[test]
    fn the_window_grows_with_the_link() {
        let windows = [1, 10, 30, 50, 75, 100, 400].map(|tenths| window_for(tenths * 100_000_000));
        assert_eq!(windows, [12, 12, 18, 24, 28, 32, 32]);
    }
}
