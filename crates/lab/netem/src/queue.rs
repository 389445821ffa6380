//! A drop-tail FIFO with ECN: the queue of emulated links and of the simulator's ports.

use std::collections::VecDeque;

/// A length of a queue: a limit or a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Packets, including the one in service.
    Packets(usize),
    /// Bytes that have not left.
    Bytes(usize),
    /// No limit.
    Unlimited,
}

/// A drop-tail FIFO that marks packets from an ECN threshold.
///
/// The departure of a packet is known when it arrives, so only times are stored. They may be in any unit.
#[derive(Clone, Debug)]
// One queue for emulated links and simulated ports: a queue of 8 means the same in both.
pub struct DropTail {
    limit: Depth,
    mark_at: Depth,
    /// When the last packet will have left.
    busy_until: u64,
    /// When each packet leaves; kept only if a depth is in packets.
    departures: VecDeque<u64>,
}

/// The departure of an accepted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When its first bit leaves.
    pub starts: u64,
    /// When its last bit has left.
    pub ends: u64,
    /// Whether it must be marked.
    pub marked: bool,
}

impl DropTail {
    /// Creates a queue with a limit and without marks.
    pub const fn new(limit: Depth) -> Self {
        Self::with_ecn(limit, Depth::Unlimited)
    }

    /// Creates a queue with a limit that marks packets if its instantaneous length is `mark_at` or more, as in DCTCP
    /// (SIGCOMM 2010).
    pub const fn with_ecn(limit: Depth, mark_at: Depth) -> Self {
        Self { limit, mark_at, busy_until: 0, departures: VecDeque::new() }
    }

    /// Changes the limit for later packets.
    pub const fn set_limit(&mut self, limit: Depth) {
        self.limit = limit;
    }

    /// Returns the time until the packets queued at `now` have left.
    pub const fn backlog(&self, now: u64) -> u64 {
        self.busy_until.saturating_sub(now)
    }

    /// Offers a packet of `size` bytes at `now`, which must not decrease. `time` returns the transmission time of a
    /// number of bytes. Returns `None` if the packet is dropped.
    #[inline]
    pub fn offer(
        &mut self,
        now: u64,
        size: usize,
        time: impl Fn(usize) -> u64,
    ) -> Option<Departure> {
        let starts = self.busy_until.max(now);
        let service = time(size);
        let counts =
            matches!(self.limit, Depth::Packets(_)) || matches!(self.mark_at, Depth::Packets(_));
        if counts {
            while self.departures.front().is_some_and(|&left| left <= now) {
                self.departures.pop_front();
            }
        }
        let fits = match self.limit {
            Depth::Packets(limit) => self.departures.len() < limit,
            Depth::Bytes(limit) => (starts - now).saturating_add(service) <= time(limit),
            Depth::Unlimited => true,
        };
        if !fits {
            return None;
        }
        let marked = match self.mark_at {
            Depth::Packets(threshold) => self.departures.len() >= threshold,
            Depth::Bytes(threshold) => starts - now >= time(threshold),
            Depth::Unlimited => false,
        };
        let ends = starts.saturating_add(service);
        self.busy_until = ends;
        if counts {
            self.departures.push_back(ends);
        }
        Some(Departure { starts, ends, marked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(queue: &mut DropTail, now: u64, size: usize) -> Option<u64> {
        queue.offer(now, size, |bytes| 10 * bytes as u64).map(|departure| departure.ends)
    }

    #[test]
    fn a_limit_in_packets_counts_the_one_in_service() {
        let mut queue = DropTail::new(Depth::Packets(2));
        assert_eq!(ends(&mut queue, 0, 100), Some(1_000));
        assert_eq!(ends(&mut queue, 0, 100), Some(2_000));
        assert_eq!(ends(&mut queue, 999, 100), None);
        assert_eq!(ends(&mut queue, 1_000, 100), Some(3_000));
    }

    #[test]
    fn a_limit_in_bytes_counts_packets_that_have_not_departed() {
        let mut queue = DropTail::new(Depth::Bytes(200));
        assert_eq!(ends(&mut queue, 0, 100), Some(1_000));
        assert_eq!(ends(&mut queue, 0, 100), Some(2_000));
        assert_eq!(ends(&mut queue, 499, 50), None);
        assert_eq!(ends(&mut queue, 500, 50), Some(2_500));
    }

    #[test]
    fn packets_that_arrive_beyond_the_threshold_are_marked() {
        for mark_at in [Depth::Packets(2), Depth::Bytes(200)] {
            let mut queue = DropTail::with_ecn(Depth::Unlimited, mark_at);
            let marked = [0; 4].map(|now| queue.offer(now, 100, |b| b as u64).unwrap().marked);
            assert_eq!(marked, [false, false, true, true]);
        }
    }
}
