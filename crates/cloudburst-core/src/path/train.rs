//! The number of packets that a path carries back to back.

use crate::time::Instant;
use core::time::Duration;

/// The initial and minimum length: a queue of eight packets hardly ever drops from trains this short.
// Of 93 KB messages of four pairs of hosts, queues of eight packets drop 0.07 % with trains of 4,
// 3.4 % with 8, and 9.9 % with 16. Trains of 1 and 2 lose hardly less than 4, and take two to four
// times the system calls.
pub(crate) const SHORTEST_TRAIN: usize = 4;
const SHORTEST: u32 = SHORTEST_TRAIN as u32;
/// The maximum length: the limit of one system call with UDP_SEGMENT (UDP_MAX_SEGMENTS).
pub(crate) const MAX_TRAIN: usize = 64;
const LONGEST: u32 = MAX_TRAIN as u32;
/// Packets that must have arrived before the next step: a queue that is slightly too short drops a
/// few per cent.
const PROOF: u32 = 32;
/// The same after a loss. Each longer train that loses packets doubles it, up to the maximum, at which
/// failed attempts cost 1 packet in 10,000.
// With 256 packets to wait for after each loss, and no doubling, attempts alone cost 1.7 % of the
// packets in front of queues of eight.
const HOLD: u32 = 1_024;
const MAX_HOLD: u32 = 16_384;
/// Packets that may be lost by chance. A train longer than a queue loses more.
const BY_CHANCE: i64 = 2;

/// The length of trains on one path, learned from arrivals: it doubles while no packet is missing, halves
/// when one or two are missing, and falls to the minimum when more are.
///
/// It doubles only when a train of the current length was sent and enough packets have arrived
/// since: short trains do not probe the depth of queues on the path. After a loss every step takes
/// far longer, and longer still each time that it fails: trains that are too long also cause losses
/// for other senders.
#[derive(Clone, Debug)]
pub(super) struct TrainLength {
    length: u32,
    /// Packets in the train that is being sent.
    sent: u32,
    /// Whether a train of the current length was sent.
    tried: bool,
    /// Packets that arrived since.
    arrived: u32,
    /// The number that must arrive before the next step.
    hold: u32,
    /// Losses reported before this time are blamed on the trains sent before the length was halved.
    settled_at: Instant,
    /// Packets reported missing since the length was last halved.
    missing: i64,
    /// Length and hold before that, restored if all of these packets were only late.
    before: (u32, u32),
}

impl Default for TrainLength {
    fn default() -> Self {
        Self {
            length: SHORTEST,
            sent: 0,
            tried: false,
            arrived: 0,
            hold: PROOF,
            settled_at: Instant::ZERO,
            missing: 0,
            before: (SHORTEST, PROOF),
        }
    }
}

impl TrainLength {
    pub(super) const fn now(&self) -> usize {
        self.length as usize
    }

    /// Handles the start of a train of `packets`.
    pub(super) const fn on_sent(&mut self, packets: usize) {
        self.sent = 0;
        self.on_more_sent(packets);
    }

    /// Adds `packets` to the current train.
    pub(super) const fn on_more_sent(&mut self, packets: usize) {
        self.sent += packets as u32;
        // Only a full train is evidence of the queue's depth: if every short message that arrives
        // doubled the length, the first long one would meet a queue of unknown depth (as with
        // unused congestion windows, RFC 7661).
        if self.sent >= self.length && !self.tried {
            self.tried = true;
            self.arrived = 0;
        }
    }

    /// Handles `packets` more sent on the path that are accounted for, none of them missing.
    /// Returns whether the length grows after repeated losses.
    pub(super) fn on_arrived(&mut self, packets: u32) -> bool {
        self.arrived = self.arrived.saturating_add(packets);
        if self.length > SHORTEST && self.arrived >= MAX_HOLD {
            self.hold = self.hold.min(HOLD);
        }
        if !self.tried || self.length == LONGEST || self.arrived < self.hold.max(self.length) {
            return false;
        }
        self.length *= 2;
        self.tried = false;
        self.missing = 0;
        self.hold > HOLD
    }

    /// Handles `packets` that are missing; a round trip on the path takes `round_trip`.
    pub(super) fn on_missing(&mut self, now: Instant, packets: i64, round_trip: Duration) {
        self.arrived = 0;
        if now >= self.settled_at {
            self.settled_at = now + round_trip;
            self.before = (self.length, self.hold);
            self.missing = 0;
            // Losses of the shortest trains are no evidence against longer ones.
            let more = if self.length > SHORTEST { 2 } else { 1 };
            self.hold = (self.hold * more).clamp(HOLD, MAX_HOLD);
            self.length = (self.length / 2).max(SHORTEST);
            self.tried = false;
        }
        self.missing += packets;
        if self.missing > BY_CHANCE {
            self.length = SHORTEST;
        }
    }

    /// Handles `packets` that were missing and have arrived: others had overtaken them.
    pub(super) fn on_late(&mut self, packets: i64) {
        if self.missing == 0 {
            return;
        }
        self.missing = (self.missing - packets).max(0);
        if self.missing == 0 {
            // A whole train often arrives late where two threads send, or where paths differ in
            // delay: in a loss-free flood, such trains would keep most paths at four.
            (self.length, self.hold) = self.before;
            self.settled_at = Instant::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_micros(100);

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    /// Sends trains of the current length, whose packets all arrive, until it has grown.
    fn trains_until_it_grows(train: &mut TrainLength) -> usize {
        let before = train.now();
        (1..)
            .find(|_| {
                train.on_sent(train.now());
                train.on_arrived(before as u32);
                train.now() > before
            })
            .expect("the range has no end")
    }

    /// Returns the state of a path on which no packet has gone missing yet.
    fn grown_to(length: usize) -> TrainLength {
        let mut train = TrainLength::default();
        while train.now() < length {
            trains_until_it_grows(&mut train);
        }
        train
    }

    #[test]
    fn trains_double_every_32_arrivals_up_to_one_system_call() {
        let mut train = TrainLength::default();
        for (length, trains) in [(4, 8), (8, 4), (16, 2), (32, 1)] {
            assert_eq!((train.now(), trains_until_it_grows(&mut train)), (length, trains));
        }
        train.on_sent(64);
        train.on_arrived(64);
        assert_eq!(train.now(), 64);
    }

    #[test]
    fn short_trains_prove_nothing() {
        let mut train = TrainLength::default();
        for _ in 0..1_000 {
            train.on_sent(3);
            train.on_arrived(3);
        }
        assert_eq!(train.now(), 4);
        train.on_sent(3);
        train.on_more_sent(1);
        train.on_arrived(31);
        assert_eq!(train.now(), 4, "earlier arrivals do not count");
        train.on_arrived(1);
        assert_eq!(train.now(), 8);
    }

    #[test]
    fn one_or_two_missing_packets_halve_trains_once_a_round_trip() {
        let mut train = grown_to(64);
        for (micros, length) in [(1_000, 32), (1_099, 32), (1_100, 16), (9_000, 8)] {
            train.on_missing(at(micros), 1, ROUND_TRIP);
            assert_eq!(train.now(), length, "at {micros}");
        }
    }

    #[test]
    fn more_than_two_missing_packets_make_trains_the_shortest() {
        let mut train = grown_to(64);
        train.on_missing(at(1_000), 2, ROUND_TRIP);
        assert_eq!(train.now(), 32);
        train.on_missing(at(1_001), 1, ROUND_TRIP);
        assert_eq!(train.now(), 4);
    }

    #[test]
    fn each_failed_attempt_slows_down_further_growth() {
        let mut train = grown_to(8);
        for (try_at, packets) in (0..).zip([1_024, 2_048, 4_096, 8_192, 16_384, 16_384]) {
            train.on_missing(at(1_000 * (try_at + 1)), 3, ROUND_TRIP);
            assert_eq!(trains_until_it_grows(&mut train), packets / 4);
        }
        assert_eq!(trains_until_it_grows(&mut train), 16_384 / 8);
    }

    #[test]
    fn losses_of_the_shortest_trains_do_not_delay_growth_further() {
        let mut train = TrainLength::default();
        (1..100).for_each(|millis| train.on_missing(at(1_000 * millis), 5, ROUND_TRIP));
        assert_eq!(trains_until_it_grows(&mut train), 1_024 / 4);
    }

    #[test]
    fn longer_trains_that_last_reset_the_penalty_of_failed_attempts() {
        let mut train = grown_to(64);
        (1..6).for_each(|millis| train.on_missing(at(1_000 * millis), 1, ROUND_TRIP));
        assert_eq!((train.now(), train.hold), (4, 8 * HOLD));
        while train.now() < 64 {
            trains_until_it_grows(&mut train);
        }
        assert_eq!(train.hold, 8 * HOLD);
        train.on_sent(64);
        train.on_arrived(MAX_HOLD);
        assert_eq!(train.hold, HOLD);
    }

    #[test]
    fn packets_that_were_overtaken_are_no_loss() {
        let mut train = grown_to(32);
        train.on_missing(at(1), 20, ROUND_TRIP);
        train.on_late(15);
        assert_eq!(train.now(), 4, "five are missing still");
        train.on_late(5);
        assert_eq!(train.now(), 32);
        assert_eq!(trains_until_it_grows(&mut train), 1);
        train.on_late(5);
        assert_eq!(train.now(), 64);
    }
}
