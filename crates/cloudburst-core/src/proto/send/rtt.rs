//! Round-trip times of packets to one peer.

use super::sent_times::SentTimes;
use crate::id::PathId;
use crate::proto::round_trip::RoundTrip;
use crate::time::Instant;
use core::time::Duration;

/// How long the shortest round trip is remembered, at least: routes change.
const SHORTEST_FOR: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Rtt {
    round_trip: RoundTrip,
    /// The shortest round trip since `shortest_since`, and of the period before.
    shortest: [Option<Duration>; 2],
    shortest_since: Instant,
    sent_times: SentTimes,
}

impl Rtt {
    pub(super) fn new() -> Self {
        Self {
            round_trip: RoundTrip::default(),
            shortest: [None; 2],
            shortest_since: Instant::ZERO,
            sent_times: SentTimes::new(),
        }
    }

    pub(super) fn on_sent(&mut self, now: Instant, number: u64, path: PathId) {
        // A packet that an answer may still acknowledge must not be forgotten for this one: without
        // samples, the RTO would stay as it was when the link was idle.
        let needed = || self.round_trip.rto() * 2;
        self.sent_times.on_sent(now, number, path, needed);
    }

    /// When [`on_timeout`](Self::on_timeout) is due, if at all.
    pub(super) const fn wake_at(&self) -> Option<Instant> {
        self.sent_times.wake_at()
    }

    /// Forgets send times that no answer will refer to any more, if that is due.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        let needed = self.rto() * 2;
        self.sent_times.on_timeout(now, needed);
    }

    /// Handles an answer to packet `number`. Each packet is sent once, so the sample is
    /// unambiguous. Returns the path that the packet took, and the time until the answer.
    pub(super) fn on_answer(&mut self, now: Instant, number: u64) -> Option<(PathId, Duration)> {
        let (at, path) = self.sent_times.get(number)?;
        let rtt = now.saturating_since(at);
        self.sample(now, rtt);
        Some((path, rtt))
    }

    /// Starts over with the round trip of an OPEN, if it took much longer than those before.
    pub(super) fn begin_with(&mut self, rtt: Duration) {
        self.round_trip.begin_with(rtt);
    }

    pub(super) fn sample(&mut self, now: Instant, rtt: Duration) {
        self.round_trip.sample(rtt);
        if now.saturating_since(self.shortest_since) >= SHORTEST_FOR {
            self.shortest_since = now;
            self.shortest = [None, self.shortest[0]];
        }
        self.shortest[0] = Some(self.shortest[0].map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// The shortest round-trip time lately; `None` before the first sample.
    pub(super) fn shortest(&self) -> Option<Duration> {
        self.shortest.into_iter().flatten().min()
    }

    /// The smoothed round-trip time; `None` before the first sample.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.round_trip.smoothed()
    }

    /// The time after which an unanswered ACK request was probably lost.
    pub(super) fn rto(&self) -> Duration {
        self.round_trip.rto()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::limits::SENT_TIMES;

    #[test]
    fn rto_follows_samples_and_ignores_forgotten_packets() {
        let mut rtt = Rtt::new();
        rtt.on_sent(Instant::ZERO, 7, PathId(3));
        let answered = rtt.on_answer(Instant::from_nanos(1_000_000), 7);
        assert_eq!(answered, Some((PathId(3), Duration::from_millis(1))));
        assert_eq!(rtt.rto(), Duration::from_millis(2));
        assert_eq!(rtt.on_answer(Instant::from_nanos(9_000_000), 7 + SENT_TIMES as u64), None);
        assert_eq!(rtt.rto(), Duration::from_millis(2));
    }
}
