//! The schedule: it decides which message sends next.

use crate::id::MessageId;
use crate::proto::fair_queue::FairQueue;
use core::cmp::Reverse;

/// The rank of a message: the lowest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) priority: Reverse<u8>,
    /// The number of symbols still to be sent.
    pub(super) remaining: usize,
}

/// Messages with something to send to a responsive peer, the most urgent and then the shortest
/// first. Each is served a scheduling quantum at a time.
pub(super) type Schedule = FairQueue<MessageId, Rank>;

impl Schedule {
    /// The messages of the highest priority that is ready, in the order of their ranks.
    pub(super) fn most_urgent(&self) -> impl Iterator<Item = MessageId> {
        let urgent = self.ranked.first_rank().map(|rank| rank.priority);
        let ready = self.ranked.iter();
        ready.take_while(move |(_, rank)| Some(rank.priority) == urgent).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(priority: u8, remaining: usize) -> Option<Rank> {
        Some(Rank { priority: Reverse(priority), remaining })
    }

    /// The messages of the next `count` quanta, if each always has something to send.
    fn quanta(schedule: &mut Schedule, count: usize) -> Vec<u64> {
        let mut next = || {
            let id = schedule.next().unwrap();
            schedule.served(id);
            id.0
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn priority_goes_before_length_and_length_before_age() {
        let mut schedule = Schedule::default();
        for (id, rank) in [rank(4, 1), rank(5, 90), rank(5, 3), rank(5, 3)].into_iter().enumerate()
        {
            schedule.set(MessageId(id as u64), rank);
        }
        for expected in [2, 3, 1, 0] {
            let id = schedule.next().unwrap();
            assert_eq!(id, MessageId(expected));
            schedule.set(id, None);
        }
        assert!(schedule.ranked.is_empty() && schedule.next().is_none());
    }

    #[test]
    fn every_eighth_quantum_is_for_the_message_that_has_waited_longest() {
        let mut schedule = Schedule::default();
        for (id, rank) in [rank(7, 1), rank(0, 500), rank(4, 90)].into_iter().enumerate() {
            schedule.set(MessageId(id as u64), rank);
        }
        let came = quanta(&mut schedule, 24);
        let others: Vec<(usize, u64)> =
            came.into_iter().enumerate().filter(|(_, id)| *id != 0).collect();
        assert_eq!(others, [(7, 1), (15, 2), (23, 1)]);
    }

    #[test]
    fn a_message_with_fewer_symbols_left_keeps_its_waiting_time() {
        let mut schedule = Schedule::default();
        for id in 0..3 {
            schedule.set(MessageId(id), rank(4, 10 * (id as usize + 1)));
        }
        for left in (1..10).rev() {
            schedule.set(MessageId(2), rank(4, 20 + left));
        }
        assert_eq!(quanta(&mut schedule, 16)[15], 2);
    }
}
