//! A calendar queue: a wheel of fine buckets for the near future, a wheel of coarse ones beyond it, and a heap for
//! the far future.
//!
//! Scheduling touches a single bucket, so its cost does not depend on the number of pending events. Events with
//! equal times are served in the order in which they were scheduled.

use super::{Handle, Packets, Time};
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Log2 of the number of fine buckets, which together span one coarse bucket.
// Two wheels, because with 3,456 hosts a heap, or a single ring whose horizon deep queues exceed, reaches
// 1.3 to 4 million events a second, and the bench `sim` demands 8.
const FINE: u32 = 14;
/// Log2 of the number of coarse buckets.
const COARSE: u32 = 12;

/// The pending events.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// Log2 of the width of a fine bucket, in picoseconds.
    shift: u32,
    fine: Wheel,
    coarse: Wheel,
    /// Events beyond the coarse wheel, with a count that keeps equal times in order.
    later: BinaryHeap<Reverse<(Time, u64, Handle)>>,
    scheduled_later: u64,
    /// The fine bucket being served, counted from time 0.
    epoch: u64,
    /// Its events in order.
    current: Vec<(Time, Handle)>,
    /// How many of them have been served.
    served: usize,
}

/// A ring of buckets, with a bitmap of those that have events.
#[derive(Debug)]
struct Wheel {
    buckets: Vec<Vec<(Time, Handle)>>,
    taken: Vec<u64>,
}

impl Wheel {
    fn new(log2: u32) -> Self {
        Self { buckets: vec![Vec::new(); 1 << log2], taken: vec![0; 1 << (log2 - 6)] }
    }

    #[inline]
    fn push(&mut self, bucket: usize, event: (Time, Handle)) {
        self.buckets[bucket].push(event);
        self.taken[bucket / 64] |= 1 << (bucket % 64);
    }

    /// Exchanges the events of a bucket for an empty list.
    fn swap(&mut self, bucket: usize, list: &mut Vec<(Time, Handle)>) {
        core::mem::swap(&mut self.buckets[bucket], list);
        self.taken[bucket / 64] &= !(1 << (bucket % 64));
    }

    /// The first bucket from `start` on that has events. With `around`, the search wraps at the end of the wheel.
    fn next_taken(&self, start: usize, around: bool) -> Option<usize> {
        let words = self.taken.len();
        let first = start / 64;
        if first < words {
            let bits = self.taken[first] & (!0 << (start % 64));
            if bits != 0 {
                return Some(first * 64 + bits.trailing_zeros() as usize);
            }
        }
        let rest = (first + 1..words).chain(0..if around { (first + 1).min(words) } else { 0 });
        rest.map(|word| (word, self.taken[word]))
            .find(|(_, bits)| *bits != 0)
            .map(|(word, bits)| word * 64 + bits.trailing_zeros() as usize)
    }
}

impl Calendar {
    /// A calendar that is fastest if events are `spacing` apart on average.
    pub(crate) fn new(spacing: Time) -> Self {
        Self {
            shift: (8 * spacing.max(1)).ilog2().clamp(8, 32),
            fine: Wheel::new(FINE),
            coarse: Wheel::new(COARSE),
            later: BinaryHeap::new(),
            scheduled_later: 0,
            epoch: 0,
            current: Vec::new(),
            served: 0,
        }
    }

    /// Schedules an event for `at`, which must not be before the last one served.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Time, handle: Handle) {
        let epoch = at >> self.shift;
        if epoch <= self.epoch {
            let rest = &self.current[self.served..];
            let place = self.served + rest.partition_point(|&(other, _)| other <= at);
            self.current.insert(place, (at, handle));
        } else if epoch >> FINE == self.epoch >> FINE {
            self.fine.push(epoch as usize % (1 << FINE), (at, handle));
        } else if (epoch >> FINE) - (self.epoch >> FINE) < 1 << COARSE {
            self.coarse.push((epoch >> FINE) as usize % (1 << COARSE), (at, handle));
        } else {
            self.scheduled_later += 1;
            self.later.push(Reverse((at, self.scheduled_later, handle)));
        }
    }

    /// Takes the next event, if it is due by `until`.
    #[inline]
    pub(crate) fn next(&mut self, packets: &Packets, until: Time) -> Option<(Time, Handle)> {
        loop {
            if let Some(&(at, handle)) = self.current.get(self.served) {
                if at > until {
                    return None;
                }
                self.served += 1;
                return Some((at, handle));
            }
            if !self.advance(packets, until) {
                return None;
            }
        }
    }

    /// Advances to the next fine bucket that has events, unless it begins after `until`.
    fn advance(&mut self, packets: &Packets, until: Time) -> bool {
        let place = self.epoch as usize % (1 << FINE);
        let Some(bucket) = self.fine.next_taken(place + 1, false) else {
            return self.advance_coarse(until);
        };
        let epoch = self.epoch - place as u64 + bucket as u64;
        if epoch << self.shift > until {
            return false;
        }
        self.epoch = epoch;
        self.current.clear();
        self.served = 0;
        self.fine.swap(bucket, &mut self.current);
        if self.current.len() > 1 {
            // Stable: equal times stay in the order of scheduling.
            self.current.sort_by_key(|&(at, _)| at);
            // In a large fabric packets are far apart in memory. Reading them together overlaps the cache
            // misses.
            packets.warm(&self.current);
        }
        true
    }

    /// Spreads the next coarse bucket that has events over the fine wheel, unless it begins after `until`.
    fn advance_coarse(&mut self, until: Time) -> bool {
        let period = self.epoch >> FINE;
        let place = period as usize % (1 << COARSE);
        let in_wheel = self.coarse.next_taken((place + 1) % (1 << COARSE), true).map(|bucket| {
            period + 1 + ((bucket + (1 << COARSE) - place - 1) % (1 << COARSE)) as u64
        });
        let in_heap = self.later.peek().map(|Reverse((at, ..))| at >> self.shift >> FINE);
        let Some(next) = in_wheel.into_iter().chain(in_heap).min() else {
            return false;
        };
        if next << FINE << self.shift > until {
            return false;
        }
        // Events that are now within the wheel's reach enter it before any new ones, which preserves order.
        while let Some(&Reverse((at, _, handle))) = self.later.peek() {
            let period = at >> self.shift >> FINE;
            if period - next >= 1 << COARSE {
                break;
            }
            self.later.pop();
            self.coarse.push(period as usize % (1 << COARSE), (at, handle));
        }
        // The first fine bucket is served at once.
        self.epoch = next << FINE;
        self.current.clear();
        self.served = 0;
        let mut events = Vec::new();
        self.coarse.swap(next as usize % (1 << COARSE), &mut events);
        for &(at, handle) in &events {
            let epoch = at >> self.shift;
            if epoch == self.epoch {
                self.current.push((at, handle));
            } else {
                self.fine.push(epoch as usize % (1 << FINE), (at, handle));
            }
        }
        self.current.sort_by_key(|&(at, _)| at);
        events.clear();
        self.coarse.buckets[next as usize % (1 << COARSE)] = events;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Packet;
    use super::*;
    use cloudburst_core::rng::SplitMix64;

    #[test]
    fn events_are_ordered_by_time_and_then_by_scheduling() {
        for spacing in [1, 100, 5_000, 1_000_000] {
            let mut rng = SplitMix64::new(spacing);
            let mut calendar = Calendar::new(spacing);
            let mut packets = Packets::new();
            let mut now = 0;
            let mut expected = Vec::new();
            let mut served = Vec::new();
            let mut number = 0;
            for _ in 0..20_000 {
                for _ in 0..rng.below(3) {
                    // Equal times, near ones, and some beyond the wheels.
                    let reach = [1, 3 * spacing, 30_000 * spacing, 2_000_000_000 * spacing]
                        [rng.below(4) as usize];
                    let at = now + rng.below(reach);
                    let handle = packets.insert(Packet { sequence: number, ..Packet::default() });
                    calendar.schedule(at, handle);
                    expected.push((at, number));
                    number += 1;
                }
                if let Some((at, handle)) = calendar.next(&packets, now + 10 * spacing) {
                    assert!(at >= now);
                    now = at;
                    served.push((at, packets[handle].sequence));
                    packets.remove(handle);
                } else {
                    now += 10 * spacing;
                }
            }
            while let Some((at, handle)) = calendar.next(&packets, Time::MAX) {
                served.push((at, packets[handle].sequence));
                packets.remove(handle);
            }
            expected.sort_unstable();
            assert_eq!(served, expected);
            assert_eq!(packets.in_use(), 0);
        }
    }
}
