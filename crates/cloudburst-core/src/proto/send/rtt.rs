//! Round-trip time to one peer, and the retransmission timeout (RTO) (RFC 6298, section 2).

use super::sent_times::SentTimes;
use crate::id::PathId;
use crate::proto::limits::MAX_PAUSE;
use crate::time::Instant;
use core::time::Duration;

/// The shortest RTO: threads that wake late must not look like loss.
const MIN_RTO: Duration = Duration::from_micros(500);
const MAX_RTO: Duration = MAX_PAUSE;
/// Packets that took longer have waited for a process that slept, at either end. Such a sample would
/// govern the next dozens.
const MAX_SAMPLE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Rtt {
    smoothed: Duration,
    variation: Duration,
    sent_times: SentTimes,
}

impl Rtt {
    pub(super) fn new() -> Self {
        Self { smoothed: Duration::ZERO, variation: Duration::ZERO, sent_times: SentTimes::new() }
    }

    pub(super) fn on_sent(&mut self, now: Instant, number: u64, path: PathId) {
        // A packet that an answer may still name must not be forgotten for this one: without
        // samples, the RTO would stay as it was when the line was idle.
        let needed = || rto(self.smoothed, self.variation) * 2;
        self.sent_times.on_sent(now, number, path, needed);
    }

    /// When [`on_timeout`](Self::on_timeout) is due, if at all.
    pub(super) const fn wake_at(&self) -> Option<Instant> {
        self.sent_times.wake_at()
    }

    /// Forgets sending times that no answer will name any more, if it is time to.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        let needed = self.rto() * 2;
        self.sent_times.on_timeout(now, needed);
    }

    /// An answer to packet `number` came: that packet was sent once, so the sample is clean. Says
    /// which path the packet took, and how long it was until the answer.
    pub(super) fn on_answer(&mut self, now: Instant, number: u64) -> Option<(PathId, Duration)> {
        let (at, path) = self.sent_times.get(number)?;
        let rtt = now.saturating_since(at);
        self.sample(rtt);
        Some((path, rtt))
    }

    pub(super) fn sample(&mut self, rtt: Duration) {
        if rtt > MAX_SAMPLE {
            return;
        }
        if self.smoothed.is_zero() {
            (self.smoothed, self.variation) = (rtt, rtt / 2);
        } else {
            self.variation = (self.variation * 3 + self.smoothed.abs_diff(rtt)) / 4;
            self.smoothed = (self.smoothed * 7 + rtt) / 8;
        }
    }

    /// The smoothed round-trip time; `None` before the first sample.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        (!self.smoothed.is_zero()).then_some(self.smoothed)
    }

    /// After how long an unanswered ACK request has probably been lost.
    pub(super) fn rto(&self) -> Duration {
        rto(self.smoothed, self.variation)
    }
}

fn rto(smoothed: Duration, variation: Duration) -> Duration {
    if smoothed.is_zero() {
        return MAX_RTO / 10;
    }
    // Twice the variation, not four times as in RFC 6298: to be wrong costs two packets.
    (smoothed + variation * 2).clamp(MIN_RTO, MAX_RTO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::limits::SENT_TIMES;

    #[test]
    fn follows_samples_and_ignores_packets_it_forgot() {
        let mut rtt = Rtt::new();
        assert_eq!(rtt.rto(), Duration::from_millis(10));
        rtt.on_sent(Instant::ZERO, 7, PathId(3));
        let answered = rtt.on_answer(Instant::from_nanos(1_000_000), 7);
        assert_eq!(answered, Some((PathId(3), Duration::from_millis(1))));
        assert_eq!(rtt.rto(), Duration::from_millis(2));
        assert_eq!(rtt.on_answer(Instant::from_nanos(9_000_000), 7 + SENT_TIMES as u64), None);
        assert_eq!(rtt.rto(), Duration::from_millis(2));
        rtt.sample(Duration::from_secs(5));
        assert_eq!(rtt.rto(), Duration::from_millis(2));
        rtt.sample(MAX_SAMPLE);
        assert_eq!(rtt.rto(), MAX_RTO);
    }
}
