//! Round-trip time to one peer, and how long to wait for an answer (RFC 6298, section 2).

use crate::id::PathId;
use crate::time::Instant;
use core::time::Duration;

/// Packets whose sending times are remembered, newest first to be overwritten.
const REMEMBERED: usize = 256;

/// The shortest wait for an answer: threads that wake late must not look like loss.
const MIN_WAIT: Duration = Duration::from_micros(500);
const MAX_WAIT: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Rtt {
    smoothed: Duration,
    variation: Duration,
    /// Sending time and path of packet `number`, at `number % REMEMBERED`.
    sent_at: Box<[Option<(u64, Instant, PathId)>]>,
}

impl Rtt {
    pub(super) fn new() -> Self {
        Self {
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
            sent_at: vec![None; REMEMBERED].into_boxed_slice(),
        }
    }

    pub(super) fn on_sent(&mut self, now: Instant, number: u64, path: PathId) {
        self.sent_at[number as usize % REMEMBERED] = Some((number, now, path));
    }

    /// An answer to packet `number` came: that packet was sent once, so the sample is clean. Says
    /// which path the packet took, and how long it was until the answer.
    pub(super) fn on_answer(&mut self, now: Instant, number: u64) -> Option<(PathId, Duration)> {
        let (sent, at, path) = self.sent_at[number as usize % REMEMBERED]?;
        let rtt = (sent == number).then(|| now.saturating_since(at))?;
        self.sample(rtt);
        Some((path, rtt))
    }

    pub(super) fn sample(&mut self, rtt: Duration) {
        if self.smoothed.is_zero() {
            (self.smoothed, self.variation) = (rtt, rtt / 2);
        } else {
            self.variation = (self.variation * 3 + self.smoothed.abs_diff(rtt)) / 4;
            self.smoothed = (self.smoothed * 7 + rtt) / 8;
        }
    }

    /// After how long an unanswered question has probably been lost.
    pub(super) fn wait(&self) -> Duration {
        if self.smoothed.is_zero() {
            return MAX_WAIT / 10;
        }
        (self.smoothed + self.variation * 4).clamp(MIN_WAIT, MAX_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_samples_and_ignores_packets_it_forgot() {
        let mut rtt = Rtt::new();
        assert_eq!(rtt.wait(), Duration::from_millis(10));
        rtt.on_sent(Instant::ZERO, 7, PathId(3));
        let answered = rtt.on_answer(Instant::from_nanos(1_000_000), 7);
        assert_eq!(answered, Some((PathId(3), Duration::from_millis(1))));
        assert_eq!(rtt.wait(), Duration::from_millis(3));
        assert_eq!(rtt.on_answer(Instant::from_nanos(9_000_000), 7 + REMEMBERED as u64), None);
        assert_eq!(rtt.wait(), Duration::from_millis(3));
        rtt.sample(Duration::from_secs(5));
        assert_eq!(rtt.wait(), MAX_WAIT);
    }
}
