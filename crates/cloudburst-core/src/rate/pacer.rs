//! Pacing: scheduling quanta start as far apart as their packets take at the allowed rate.

use crate::time::Instant;
use core::time::Duration;

/// The depth of the token bucket, in time: how much of a late start may be made up for. Timers
/// fire late, and without it the link would fall behind its rate.
const BUCKET_DEPTH: Duration = Duration::from_micros(500);
/// The least depth with a limit: the queue at the bottleneck may be short, and must not be mistaken for one
/// that others fill.
pub(crate) const LIMITED_DEPTH: Duration = Duration::from_micros(100);

/// Paces the packets of all messages of an endpoint together (Algorithm 1, line 5).
///
/// Every byte of a symbol delays the start of the next scheduling quantum by the time that it takes
/// at the share `r` of the link. A quantum of one packet on each path is thus followed by a pause of
/// `(1/r) * NUM_PATHS * PKT_SIZE / LINK_CAP`.
#[derive(Clone, Debug)]
pub struct Pacer {
    nanos_per_byte: f64,
    /// The value at the configured rate.
    least_nanos_per_byte: f64,
    ready_at: Instant,
    pub(super) depth: Duration,
}

impl Pacer {
    /// Creates a pacer for a link of `capacity` bits per second, of which the share `rate` may be used.
    pub fn new(capacity: u64, rate: f64) -> Self {
        let nanos_per_byte = 8e9 / (capacity as f64 * rate);
        let least_nanos_per_byte = nanos_per_byte;
        Self { nanos_per_byte, least_nanos_per_byte, ready_at: Instant::ZERO, depth: BUCKET_DEPTH }
    }

    /// Replaces the bucket depth of 500 us, in time at the rate.
    pub const fn with_depth(self, depth: Duration) -> Self {
        Self { depth, ..self }
    }

    /// Limits the rate to this share of the configured one from now on. `burst` bytes may be sent at once.
    pub(crate) fn limit(&mut self, now: Instant, share: f64, burst: usize) {
        self.nanos_per_byte = self.least_nanos_per_byte / share;
        self.depth = LIMITED_DEPTH.max(self.time_of(burst));
        if share >= 1.0 {
            // Charges at the lower rate must not delay later packets.
            self.ready_at = self.ready_at.min(now);
        }
    }

    /// Lets as much be sent at once as after a pause.
    pub(crate) fn fill(&mut self, now: Instant) {
        self.ready_at = self.ready_at.min(now - self.depth);
    }

    /// Returns the allowed rate in bits per second.
    pub(crate) fn bits_per_second(&self) -> u64 {
        (8e9 / self.nanos_per_byte) as u64
    }

    /// Returns when the next quantum may start.
    pub const fn ready_at(&self) -> Instant {
        self.ready_at
    }

    /// Returns the bytes that can be sent within `time`.
    pub fn bytes_within(&self, time: Duration) -> usize {
        (time.as_nanos() as f64 / self.nanos_per_byte) as usize
    }

    /// Returns how long `bytes` take to send.
    pub fn time_of(&self, bytes: usize) -> Duration {
        Duration::from_nanos((bytes as f64 * self.nanos_per_byte) as u64)
    }

    /// Charges `bytes` sent at `now`.
    pub fn charge(&mut self, now: Instant, bytes: usize) {
        self.ready_at = self.ready_at.max(now - self.depth) + self.time_of(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_spaces_quanta_by_twelve_microseconds() {
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
        pacer.limit(now, 0.125, 1_500);
        assert_eq!(pacer.bits_per_second(), 125_000_000);
        pacer.charge(now, 125_000);
        assert_eq!(pacer.ready_at(), now - LIMITED_DEPTH + Duration::from_millis(8));
        pacer.limit(now, 1.0, 1_500);
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
