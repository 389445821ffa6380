//! The schedule: it decides which message sends next.

use crate::id::MessageId;
use crate::proto::fair_queue::FairQueue;
use crate::proto::indexed::Indexed;
use core::cmp::Reverse;

/// The rank of a message: the lowest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Whether it has only probes to send, to a peer that has not answered for long.
    pub(super) probing: bool,
    pub(super) priority: Reverse<u8>,
    /// The number of symbols still to be sent.
    pub(super) remaining: usize,
}

/// Messages with something to send, the most urgent and then the shortest first.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    ready: FairQueue<MessageId, Rank>,
    /// Others, which have only probes to send. The one that has waited longest goes first, whatever
    /// its rank.
    probing: Indexed<MessageId, u64>,
}

impl Schedule {
    /// Whether no message has anything to send but probes.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.ranked.is_empty()
    }

    /// The message that the next scheduling quantum is for: among those of the highest priority,
    /// the one with the fewest symbols still to be sent, and among equals the oldest, except that
    /// [none starves](FairQueue::next).
    ///
    /// The caller must say that it is [served](Self::served).
    pub(super) fn next_quantum(&mut self) -> Option<MessageId> {
        self.ready.next()
    }

    /// The messages of the highest priority that is ready, in the order of their ranks.
    pub(super) fn most_urgent(&self) -> impl Iterator<Item = MessageId> {
        let urgent = self.ready.ranked.first_rank().map(|rank| rank.priority);
        let ready = self.ready.ranked.iter();
        ready.take_while(move |(_, rank)| Some(rank.priority) == urgent).map(|(id, _)| id)
    }

    /// The message that has had probes to send for longest.
    pub(super) fn next_probe(&self) -> Option<MessageId> {
        self.probing.first()
    }

    /// Moves the message `id`, which is served now, to the end of those that wait.
    pub(super) fn served(&mut self, id: MessageId) {
        self.ready.served(id);
    }

    /// Gives `id` the rank `rank`. `None` means that it has nothing to send.
    pub(super) fn set(&mut self, id: MessageId, rank: Option<Rank>) {
        let probing = rank.is_some_and(|rank| rank.probing);
        self.ready.set(id, rank.filter(|_| !probing));
        if !probing {
            self.probing.remove(id);
        } else if !self.probing.contains(id) {
            self.probing.push_back(id);
        }
    }

    /// The number of messages in the schedule.
    pub(super) fn len(&self) -> usize {
        self.ready.ranked.len() + self.probing.len()
    }

    /// Whether `id` has the rank `rank`, as far as that counts.
    pub(super) fn agrees(&self, id: MessageId, rank: Option<Rank>) -> bool {
        let probing = rank.is_some_and(|rank| rank.probing);
        let ready = rank.filter(|_| !probing);
        self.probing.contains(id) == probing && self.ready.ranked.rank(id) == ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(priority: u8, remaining: usize) -> Option<Rank> {
        Some(Rank { probing: false, priority: Reverse(priority), remaining })
    }

    /// The messages of the next `count` quanta, if each always has something to send.
    fn quanta(schedule: &mut Schedule, count: usize) -> Vec<u64> {
        let mut next = || {
            let id = schedule.next_quantum().unwrap();
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
            let id = schedule.next_quantum().unwrap();
            assert_eq!(id, MessageId(expected));
            schedule.set(id, None);
        }
        assert!(schedule.is_empty() && schedule.next_quantum().is_none());
        assert_eq!(schedule.len(), 0);
    }

    #[test]
    fn probes_are_sent_in_turn_outside_of_quanta() {
        let mut schedule = Schedule::default();
        let probe = |remaining| Rank { probing: true, priority: Reverse(7), remaining };
        schedule.set(MessageId(0), Some(probe(9)));
        schedule.set(MessageId(1), rank(0, 500));
        schedule.set(MessageId(2), Some(probe(1)));
        assert_eq!(quanta(&mut schedule, 16), [1; 16]);
        assert_eq!(schedule.next_probe(), Some(MessageId(0)));
        schedule.set(MessageId(0), Some(probe(8)));
        assert_eq!(schedule.next_probe(), Some(MessageId(0)), "it has not been served");
        schedule.set(MessageId(0), rank(4, 8));
        assert_eq!(schedule.next_probe(), Some(MessageId(2)));
        assert_eq!(quanta(&mut schedule, 1), [0]);
        (0..3).for_each(|id| schedule.set(MessageId(id), None));
        assert_eq!((schedule.len(), schedule.next_probe()), (0, None));
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
