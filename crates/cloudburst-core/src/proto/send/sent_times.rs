//! Send times and paths of the most recent packets to one peer, in a ring that grows with the
//! packets under way and shrinks afterwards.

use crate::id::PathId;
use crate::proto::limits::{MAX_SENT_TIMES, SENT_TIMES};
use crate::time::Instant;
use core::time::Duration;

/// How often a ring that has grown is checked for shrinking. Successive bursts thus need not grow
/// it again.
const SHRINK_EVERY: Duration = Duration::from_secs(1);
/// The factor by which the ring grows and shrinks.
const FACTOR: usize = 4;
const _: () = assert!(SENT_TIMES.is_power_of_two() && FACTOR.is_power_of_two());

#[derive(Debug)]
pub(super) struct SentTimes {
    /// Packet `number` is at index [`at`](Self::at).
    ring: Vec<Option<(u64, Instant, PathId)>>,
    /// The number of the packet that was sent last.
    newest: u64,
    /// When a ring that has grown is checked next.
    shrink_at: Option<Instant>,
}

impl SentTimes {
    pub(super) fn new() -> Self {
        Self { ring: vec![None; SENT_TIMES], newest: 0, shrink_at: None }
    }

    /// Records that packet `number` is being sent. Packets may still be answered for `needed` after
    /// they were sent.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        number: u64,
        path: PathId,
        needed: impl FnOnce() -> Duration,
    ) {
        if let Some((_, before, _)) = self.ring[self.at(number)]
            && self.ring.len() < MAX_SENT_TIMES
            && now.saturating_since(before) < needed()
        {
            self.resize(self.ring.len() * FACTOR);
            self.shrink_at.get_or_insert(now + SHRINK_EVERY);
        }
        let at = self.at(number);
        self.ring[at] = Some((number, now, path));
        self.newest = number;
    }

    /// When packet `number` was sent, and on which path, if it is remembered.
    pub(super) fn get(&self, number: u64) -> Option<(Instant, PathId)> {
        let (sent, at, path) = self.ring[self.at(number)]?;
        (sent == number).then_some((at, path))
    }

    /// When [`on_timeout`](Self::on_timeout) is due, if at all.
    pub(super) const fn wake_at(&self) -> Option<Instant> {
        self.shrink_at
    }

    /// Frees memory that answers within `needed` no longer require, if that is due.
    pub(super) fn on_timeout(&mut self, now: Instant, needed: Duration) {
        if self.shrink_at.is_none_or(|at| at > now) {
            return;
        }
        while self.ring.len() > SENT_TIMES && !self.fills(now, self.ring.len() / FACTOR, needed) {
            self.resize(self.ring.len() / FACTOR);
        }
        self.shrink_at = (self.ring.len() > SENT_TIMES).then(|| now + SHRINK_EVERY);
    }

    /// Whether more than `len` packets may still be answered.
    fn fills(&self, now: Instant, len: usize, needed: Duration) -> bool {
        let oldest = self.newest.checked_sub(len as u64).and_then(|number| self.get(number));
        oldest.is_some_and(|(sent_at, _)| now.saturating_since(sent_at) < needed)
    }

    /// Replaces the ring with one of `len`, with the newest entries of the old one.
    fn resize(&mut self, len: usize) {
        let known = core::mem::replace(&mut self.ring, vec![None; len]);
        for sent in known.into_iter().flatten() {
            if self.newest.checked_sub(sent.0).is_some_and(|age| age < len as u64) {
                let at = self.at(sent.0);
                self.ring[at] = Some(sent);
            }
        }
    }

    /// The index of packet `number`. The length of a ring is a power of two.
    const fn at(&self, number: u64) -> usize {
        number as usize & (self.ring.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: Duration = Duration::from_millis(20);

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    /// One packet a microsecond.
    fn burst(packets: u64) -> SentTimes {
        let mut times = SentTimes::new();
        (0..packets).for_each(|number| times.on_sent(at(number), number, PathId(0), || NEEDED));
        times
    }

    #[test]
    fn send_times_of_all_packets_in_flight_are_remembered_within_limits() {
        let sent = 4 * MAX_SENT_TIMES as u64;
        let times = burst(sent);
        assert_eq!(times.ring.len(), MAX_SENT_TIMES);
        let oldest = sent - MAX_SENT_TIMES as u64;
        assert_eq!(times.get(oldest - 1), None);
        assert_eq!(times.get(oldest), Some((at(oldest), PathId(0))));
        // One packet a millisecond is few, however many were sent before.
        let mut times = SentTimes::new();
        (0..1_000).for_each(|n| times.on_sent(at(n * 1_000), n, PathId(0), || NEEDED / 4));
        assert_eq!(times.ring.len(), SENT_TIMES);
    }

    #[test]
    fn the_ring_shrinks_to_packets_in_flight_and_keeps_the_newest() {
        let sent = 4 * MAX_SENT_TIMES as u64;
        let mut times = burst(sent);
        let end = times.wake_at().unwrap();
        // 1,000 packets in the last 20 ms: a ring of 1,024 is enough.
        let first = end.as_nanos() / 1_000 - 20_000;
        for n in 0..1_000 {
            times.on_sent(at(first + n * 20), sent + n, PathId(1), || NEEDED);
        }
        times.on_timeout(end - Duration::from_nanos(1), NEEDED);
        assert_eq!(times.ring.len(), MAX_SENT_TIMES, "not yet");
        times.on_timeout(end, NEEDED);
        assert_eq!(times.ring.len(), 1_024);
        assert_eq!(times.get(sent), Some((at(first), PathId(1))));
        assert_eq!(times.wake_at(), Some(end + SHRINK_EVERY));
        times.on_timeout(end + SHRINK_EVERY, NEEDED);
        assert_eq!(times.ring.len(), SENT_TIMES);
        assert_eq!(times.wake_at(), None);
        assert_eq!(times.get(sent), None);
        assert!(times.get(sent + 999).is_some());
    }

    #[test]
    fn packet_numbers_that_restart_at_0_do_not_grow_the_ring() {
        let mut times = burst(4 * MAX_SENT_TIMES as u64);
        let end = times.wake_at().unwrap();
        times.on_sent(end, 0, PathId(0), || NEEDED);
        times.on_timeout(end, NEEDED);
        assert_eq!((times.ring.len(), times.wake_at()), (SENT_TIMES, None));
        assert_eq!(times.get(0), Some((end, PathId(0))));
    }
}
