//! The rate: scheduling quanta start as far apart as their packets take at the allowed rate.

use crate::time::Instant;
use core::time::Duration;

/// The depth of the token bucket, in time: how much of a late start may be made up for. Timers
/// wake late, and a link that idled because of that would fall behind its rate.
const BUCKET_DEPTH: Duration = Duration::from_micros(500);
/// The depth at a lowered rate: the queue before the bottleneck is short.
const LIMITED_DEPTH: Duration = Duration::from_micros(100);

/// Spaces what all messages of an endpoint send together (Algorithm 1, line 5).
///
/// Every byte of a symbol moves the start of the next scheduling quantum by the time that it takes
/// at `r` of the link. A quantum of one packet on each path is thus followed by
/// `(1/r) * NUM_PATHS * PKT_SIZE / LINK_CAP`.
#[derive(Clone, Debug)]
pub struct Pacer {
    nanos_per_byte: f64,
    /// The same at the configured rate.
    least_nanos_per_byte: f64,
    ready_at: Instant,
    depth: Duration,
}

impl Pacer {
    /// `capacity` in bits a second; `rate` is the share of it that may be used.
    pub fn new(capacity: u64, rate: f64) -> Self {
        let nanos_per_byte = 8e9 / (capacity as f64 * rate);
        let least_nanos_per_byte = nanos_per_byte;
        Self { nanos_per_byte, least_nanos_per_byte, ready_at: Instant::ZERO, depth: BUCKET_DEPTH }
    }

    /// With a bucket of another depth, in time at the rate, than 500 us.
    pub const fn with_depth(self, depth: Duration) -> Self {
        Self { depth, ..self }
    }

    /// Makes the bucket at least so deep, in time at the rate.
    pub(super) fn deepen(&mut self, depth: Duration) {
        self.depth = self.depth.max(depth);
    }

    /// Allows this share of the configured rate from now on.
    pub(crate) fn limit(&mut self, now: Instant, share: f64) {
        self.nanos_per_byte = self.least_nanos_per_byte / share;
        self.depth = if share < 1.0 { LIMITED_DEPTH } else { BUCKET_DEPTH };
        if share >= 1.0 {
            // What was charged at the lower rate must not delay others.
            self.ready_at = self.ready_at.min(now);
        }
    }

    /// Bits a second that are allowed.
    pub(crate) fn bits_per_second(&self) -> u64 {
        (8e9 / self.nanos_per_byte) as u64
    }

    /// When the next quantum may start.
    pub const fn ready_at(&self) -> Instant {
        self.ready_at
    }

    /// Bytes that go on the wire within `time`.
    pub fn bytes_within(&self, time: Duration) -> usize {
        (time.as_nanos() as f64 / self.nanos_per_byte) as usize
    }

    /// How long `bytes` take on the wire.
    pub fn time_of(&self, bytes: usize) -> Duration {
        Duration::from_nanos((bytes as f64 * self.nanos_per_byte) as u64)
    }

    /// Charges `bytes` that go on the wire at `now`.
    pub fn charge(&mut self, now: Instant, bytes: usize) {
        self.ready_at = self.ready_at.max(now - self.depth) + self.time_of(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_spaces_rounds_by_twelve_microseconds() {
        let mut pacer = Pacer::new(10_000_000_000, 0.5);
        let start = Instant::from_nanos(1_000_000_000);
        pacer.charge(start, 0);
        let before = pacer.ready_at();
        for _ in 0..5 {
            pacer.charge(start, 1500);
        }
        assert_eq!(pacer.ready_at().saturating_since(before), Duration::from_micros(12));
    }

    #[test]
    fn a_limit_slows_down_what_follows_and_is_over_at_once() {
        let mut pacer = Pacer::new(1_000_000_000, 1.0);
        let now = Instant::from_nanos(60_000_000_000);
        pacer.limit(now, 0.125);
        assert_eq!(pacer.bits_per_second(), 125_000_000);
        pacer.charge(now, 125_000);
        assert_eq!(pacer.ready_at(), now - LIMITED_DEPTH + Duration::from_millis(8));
        pacer.limit(now, 1.0);
        assert_eq!(pacer.ready_at(), now);
    }

    #[test]
    fn an_idle_link_saves_up_no_more_than_the_bucket_depth() {
        let mut pacer = Pacer::new(1_000_000_000, 1.0);
        let now = Instant::from_nanos(60_000_000_000);
        pacer.charge(now, 125);
        assert_eq!(pacer.ready_at(), now - BUCKET_DEPTH + Duration::from_micros(1));
    }
}
