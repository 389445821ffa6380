//! Round-trip time to one peer, and how long to wait for an answer (RFC 6298, section 2).

use crate::id::PathId;
use crate::proto::limits::{MAX_SENT_TIMES, SENT_TIMES};
use crate::time::Instant;
use core::time::Duration;

/// The shortest wait for an answer: threads that wake late must not look like loss.
const MIN_WAIT: Duration = Duration::from_micros(500);
const MAX_WAIT: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Rtt {
    smoothed: Duration,
    variation: Duration,
    /// Sending time and path of packet `number`, at `number % sent_at.len()`.
    sent_at: Vec<Option<(u64, Instant, PathId)>>,
}

impl Rtt {
    pub(super) fn new() -> Self {
        Self {
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
            sent_at: vec![None; SENT_TIMES],
        }
    }

    pub(super) fn on_sent(&mut self, now: Instant, number: u64, path: PathId) {
        let at = |len: usize| (number % len as u64) as usize;
        // A packet that an answer may still name must not be forgotten for this one: without
        // samples, the wait would stay as it was when the line was idle.
        if let Some((_, before, _)) = self.sent_at[at(self.sent_at.len())]
            && now.saturating_since(before) < self.wait() * 2
            && self.sent_at.len() < MAX_SENT_TIMES
        {
            self.grow();
        }
        let at = at(self.sent_at.len());
        self.sent_at[at] = Some((number, now, path));
    }

    fn grow(&mut self) {
        let len = self.sent_at.len() * 4;
        let known = core::mem::replace(&mut self.sent_at, vec![None; len]);
        for sent in known.into_iter().flatten() {
            self.sent_at[(sent.0 % len as u64) as usize] = Some(sent);
        }
    }

    /// An answer to packet `number` came: that packet was sent once, so the sample is clean. Says
    /// which path the packet took, and how long it was until the answer.
    pub(super) fn on_answer(&mut self, now: Instant, number: u64) -> Option<(PathId, Duration)> {
        let (sent, at, path) = self.sent_at[(number % self.sent_at.len() as u64) as usize]?;
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

    /// The smoothed round-trip time; `None` before the first sample.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        (!self.smoothed.is_zero()).then_some(self.smoothed)
    }

    /// After how long an unanswered question has probably been lost.
    pub(super) fn wait(&self) -> Duration {
        if self.smoothed.is_zero() {
            return MAX_WAIT / 10;
        }
        // Twice the variation, not four times as in RFC 6298: to be wrong costs two packets.
        (self.smoothed + self.variation * 2).clamp(MIN_WAIT, MAX_WAIT)
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
        assert_eq!(rtt.wait(), Duration::from_millis(2));
        assert_eq!(rtt.on_answer(Instant::from_nanos(9_000_000), 7 + SENT_TIMES as u64), None);
        assert_eq!(rtt.wait(), Duration::from_millis(2));
        rtt.sample(Duration::from_secs(5));
        assert_eq!(rtt.wait(), MAX_WAIT);
    }

    #[test]
    fn remembers_as_many_as_are_on_their_way_within_limits() {
        let mut rtt = Rtt::new();
        let at = |micros: u64| Instant::from_nanos(micros * 1_000);
        let sent = 4 * MAX_SENT_TIMES as u64;
        (0..sent).for_each(|number| rtt.on_sent(at(number), number, PathId(0)));
        assert_eq!(rtt.sent_at.len(), MAX_SENT_TIMES);
        let oldest = sent - MAX_SENT_TIMES as u64;
        assert_eq!(rtt.on_answer(at(sent), oldest - 1), None);
        let waited = Duration::from_micros(sent - oldest);
        assert_eq!(rtt.on_answer(at(sent), oldest), Some((PathId(0), waited)));
        // One a millisecond is few, however many have gone before.
        let mut rtt = Rtt::new();
        (0..1_000).for_each(|number| rtt.on_sent(at(number * 1_000), number, PathId(0)));
        assert_eq!(rtt.sent_at.len(), SENT_TIMES);
    }
}
