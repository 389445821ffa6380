//! The schedule: it decides which message sends next.

use crate::id::MessageId;
use crate::proto::fair_queue::{self, FairQueue};
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

pub(super) type ScheduleKey = fair_queue::Key<Rank>;

/// Messages with something to send, the most urgent and then the shortest first.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    ready: FairQueue<Rank, MessageId>,
    /// Others, which have only probes to send. The one that has waited longest goes first, whatever
    /// its rank.
    probing: FairQueue<Rank, MessageId>,
}

impl Schedule {
    /// Whether no message has anything to send but probes.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
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
        let mut ready = self.ready.by_rank().peekable();
        let urgent = ready.peek().map(|(rank, _)| rank.priority);
        ready.take_while(move |(rank, _)| Some(rank.priority) == urgent).map(|(_, id)| id)
    }

    /// The message that has had probes to send for longest.
    pub(super) fn next_probe(&self) -> Option<MessageId> {
        self.probing.longest_waiting()
    }

    /// Moves the message `id`, which is served now, to the end of those that wait.
    pub(super) fn served(&mut self, key: &mut Option<ScheduleKey>, id: MessageId) {
        self.ready.served(key, id);
    }

    /// Gives `id`, whose key is `key`, the rank `to`. `None` means that it has nothing to send.
    pub(super) fn set_ready(
        &mut self,
        key: &mut Option<ScheduleKey>,
        to: Option<Rank>,
        id: MessageId,
    ) {
        let probing = to.map(|rank| rank.probing);
        if let Some(old) = key.map(|key| key.rank().probing)
            && Some(old) != probing
        {
            self.queue(old).set(key, None, id);
        }
        if let Some(probing) = probing {
            self.queue(probing).set(key, to, id);
        }
    }

    fn queue(&mut self, probing: bool) -> &mut FairQueue<Rank, MessageId> {
        if probing { &mut self.probing } else { &mut self.ready }
    }

    /// The number of messages in the schedule.
    pub(super) fn len(&self) -> usize {
        self.ready.len() + self.probing.len()
    }

    /// Whether `id` is queued at `key`. True if there is no key.
    pub(super) fn has(&self, key: Option<ScheduleKey>, id: MessageId) -> bool {
        let probing = key.is_some_and(|key| key.rank().probing);
        if probing { self.probing.has(key, id) } else { self.ready.has(key, id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(priority: u8, remaining: usize) -> Option<Rank> {
        Some(Rank { probing: false, priority: Reverse(priority), remaining })
    }

    /// The messages of the next `count` quanta, if each always has something to send.
    fn quanta(schedule: &mut Schedule, keys: &mut [Option<ScheduleKey>], count: usize) -> Vec<u64> {
        let mut next = || {
            let id = schedule.next_quantum().unwrap();
            schedule.served(&mut keys[id.0 as usize], id);
            id.0
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn priority_goes_before_length_and_length_before_age() {
        let mut schedule = Schedule::default();
        let mut keys = [None; 4];
        for (id, rank) in [rank(4, 1), rank(5, 90), rank(5, 3), rank(5, 3)].into_iter().enumerate()
        {
            schedule.set_ready(&mut keys[id], rank, MessageId(id as u64));
        }
        for expected in [2, 3, 1, 0] {
            let id = schedule.next_quantum().unwrap();
            assert_eq!(id, MessageId(expected));
            schedule.set_ready(&mut keys[expected as usize], None, id);
        }
        assert!(schedule.is_empty() && schedule.next_quantum().is_none());
        assert_eq!(schedule.len(), 0);
    }

    #[test]
    fn probes_are_sent_in_turn_outside_of_quanta() {
        let mut schedule = Schedule::default();
        let mut keys = [None; 3];
        let probe = |remaining| Rank { probing: true, priority: Reverse(7), remaining };
        schedule.set_ready(&mut keys[0], Some(probe(9)), MessageId(0));
        schedule.set_ready(&mut keys[1], rank(0, 500), MessageId(1));
        schedule.set_ready(&mut keys[2], Some(probe(1)), MessageId(2));
        assert_eq!(quanta(&mut schedule, &mut keys, 16), [1; 16]);
        assert_eq!(schedule.next_probe(), Some(MessageId(0)));
        schedule.set_ready(&mut keys[0], Some(probe(8)), MessageId(0));
        assert_eq!(schedule.next_probe(), Some(MessageId(0)), "it has not been served");
        schedule.set_ready(&mut keys[0], rank(4, 8), MessageId(0));
        assert_eq!(schedule.next_probe(), Some(MessageId(2)));
        assert_eq!(quanta(&mut schedule, &mut keys, 1), [0]);
        keys.iter_mut().zip(0..).for_each(|(at, id)| schedule.set_ready(at, None, MessageId(id)));
        assert_eq!((schedule.len(), schedule.next_probe()), (0, None));
    }

    #[test]
    fn every_eighth_quantum_is_for_the_message_that_has_waited_longest() {
        let mut schedule = Schedule::default();
        let mut keys = [None; 3];
        for (id, rank) in [rank(7, 1), rank(0, 500), rank(4, 90)].into_iter().enumerate() {
            schedule.set_ready(&mut keys[id], rank, MessageId(id as u64));
        }
        let came = quanta(&mut schedule, &mut keys, 24);
        let others: Vec<(usize, u64)> =
            came.into_iter().enumerate().filter(|(_, id)| *id != 0).collect();
        assert_eq!(others, [(7, 1), (15, 2), (23, 1)]);
    }

    #[test]
    fn a_message_with_fewer_symbols_left_keeps_its_waiting_time() {
        let mut schedule = Schedule::default();
        let mut keys = [None; 3];
        for (id, key) in keys.iter_mut().enumerate() {
            schedule.set_ready(key, rank(4, 10 * (id + 1)), MessageId(id as u64));
        }
        for left in (1..10).rev() {
            schedule.set_ready(&mut keys[2], rank(4, 20 + left), MessageId(2));
        }
        assert_eq!(quanta(&mut schedule, &mut keys, 16)[15], 2);
    }
}
