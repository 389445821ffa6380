//! The schedule: it decides which message sends next.

use crate::id::MessageId;
use core::cmp::Reverse;
use std::collections::BTreeSet;

/// One of this many scheduling quanta is for the message that has waited longest.
const PATIENT_EVERY: u64 = 8;

/// The rank of a message: the lowest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Whether it has only probes to send, to a peer that has not answered for long.
    pub(super) probing: bool,
    pub(super) priority: Reverse<u8>,
    /// The number of symbols still to be sent.
    pub(super) remaining: usize,
}

/// The place of a ready message in the schedule: in the order of ranks, and in that of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    rank: Rank,
    /// When it became ready or was last served, as a count of such events.
    since: u64,
}

impl Place {
    pub(super) const fn rank(&self) -> Rank {
        self.rank
    }
}

/// Messages with something to send, the most urgent and then the shortest first.
///
/// Each entry's owner keeps its present key and passes it in, so that the schedule and its
/// owners cannot disagree.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    ready: BTreeSet<(Rank, MessageId)>,
    /// The same messages, those that have waited longest first.
    waiting: BTreeSet<(u64, MessageId)>,
    /// Others, which have only probes to send, in turn.
    probing: BTreeSet<(u64, MessageId)>,
    /// The next `since`.
    clock: u64,
    rounds: u64,
}

impl Schedule {
    /// Whether no message has anything to send but probes.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// The message that the next scheduling quantum is for: among those of the highest priority,
    /// the one with the fewest symbols still to be sent, and among equals the oldest. But every
    /// eighth quantum is for the message that has waited longest: one that finds k others ready is
    /// thus served within 8 (k + 1) quanta, whatever messages follow it.
    ///
    /// The caller must [move](Self::passed) it to the end of those that wait.
    pub(super) fn next_round(&mut self) -> Option<MessageId> {
        // Calls when nothing is ready must change nothing, however often a driver makes them.
        if self.ready.is_empty() {
            return None;
        }
        self.rounds += 1;
        if self.rounds.is_multiple_of(PATIENT_EVERY) {
            self.waiting.first().map(|&(_, id)| id)
        } else {
            self.ready.first().map(|&(_, id)| id)
        }
    }

    /// The messages of the highest priority that is ready, in the order of their turns.
    pub(super) fn most_urgent(&self) -> impl Iterator<Item = MessageId> {
        let urgent = self.ready.first().map(|(rank, _)| rank.priority);
        let same = move |(rank, _): &&(Rank, MessageId)| Some(rank.priority) == urgent;
        self.ready.iter().take_while(same).map(|&(_, id)| id)
    }

    /// The message that has had probes to send for longest.
    pub(super) fn next_probe(&self) -> Option<MessageId> {
        self.probing.first().map(|&(_, id)| id)
    }

    /// Moves the message `id`, which is served now, to the end of those that wait.
    pub(super) fn passed(&mut self, place: &mut Option<Place>, id: MessageId) {
        if let Some(place) = place {
            self.waiting.remove(&(place.since, id));
            place.since = self.tick();
            self.waiting.insert((place.since, id));
        }
    }

    /// Gives `id`, which is at `place`, the rank `to`. `None` means that it has nothing to send.
    pub(super) fn set_ready(&mut self, place: &mut Option<Place>, to: Option<Rank>, id: MessageId) {
        if place.map(|old| old.rank) == to {
            return;
        }
        match (place.take(), to) {
            // A message that stays ready has waited for as long as before.
            (Some(Place { rank: old, since }), Some(rank)) if old.probing == rank.probing => {
                if !rank.probing {
                    self.ready.remove(&(old, id));
                    self.ready.insert((rank, id));
                }
                *place = Some(Place { rank, since });
            }
            (old, to) => {
                self.remove(old, id);
                *place = to.map(|rank| self.insert(rank, id));
            }
        }
    }

    fn remove(&mut self, place: Option<Place>, id: MessageId) {
        match place {
            Some(Place { rank, since }) if rank.probing => drop(self.probing.remove(&(since, id))),
            Some(Place { rank, since }) => {
                self.ready.remove(&(rank, id));
                self.waiting.remove(&(since, id));
            }
            None => {}
        }
    }

    fn insert(&mut self, rank: Rank, id: MessageId) -> Place {
        let since = self.tick();
        if rank.probing {
            self.probing.insert((since, id));
        } else {
            self.ready.insert((rank, id));
            self.waiting.insert((since, id));
        }
        Place { rank, since }
    }

    /// The number of messages in the schedule.
    pub(super) fn len(&self) -> usize {
        debug_assert_eq!(self.ready.len(), self.waiting.len());
        self.ready.len() + self.probing.len()
    }

    /// Whether `id` is at `place`. True if there is no place.
    pub(super) fn has(&self, place: Option<Place>, id: MessageId) -> bool {
        place.is_none_or(|Place { rank, since }| {
            let in_turn = if rank.probing { &self.probing } else { &self.waiting };
            in_turn.contains(&(since, id)) && (rank.probing || self.ready.contains(&(rank, id)))
        })
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(priority: u8, remaining: usize) -> Option<Rank> {
        Some(Rank { probing: false, priority: Reverse(priority), remaining })
    }

    /// The messages of the next `count` quanta, if each always has something to send.
    fn rounds(schedule: &mut Schedule, places: &mut [Option<Place>], count: usize) -> Vec<u64> {
        let mut next = || {
            let id = schedule.next_round().unwrap();
            schedule.passed(&mut places[id.0 as usize], id);
            id.0
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn priority_goes_before_length_and_length_before_age() {
        let mut schedule = Schedule::default();
        let mut places = [None; 4];
        for (id, rank) in [rank(4, 1), rank(5, 90), rank(5, 3), rank(5, 3)].into_iter().enumerate()
        {
            schedule.set_ready(&mut places[id], rank, MessageId(id as u64));
        }
        for expected in [2, 3, 1, 0] {
            let id = schedule.next_round().unwrap();
            assert_eq!(id, MessageId(expected));
            schedule.set_ready(&mut places[expected as usize], None, id);
        }
        assert!(schedule.is_empty() && schedule.next_round().is_none());
        assert!(schedule.waiting.is_empty());
    }

    #[test]
    fn probes_have_no_rounds_and_go_in_turn() {
        let mut schedule = Schedule::default();
        let mut places = [None; 3];
        let probe = |remaining| Rank { probing: true, priority: Reverse(7), remaining };
        schedule.set_ready(&mut places[0], Some(probe(9)), MessageId(0));
        schedule.set_ready(&mut places[1], rank(0, 500), MessageId(1));
        schedule.set_ready(&mut places[2], Some(probe(1)), MessageId(2));
        assert_eq!(rounds(&mut schedule, &mut places, 16), [1; 16]);
        assert_eq!(schedule.next_probe(), Some(MessageId(0)));
        schedule.set_ready(&mut places[0], Some(probe(8)), MessageId(0));
        assert_eq!(schedule.next_probe(), Some(MessageId(0)), "it has not had its turn");
        schedule.set_ready(&mut places[0], rank(4, 8), MessageId(0));
        assert_eq!(schedule.next_probe(), Some(MessageId(2)));
        assert_eq!(rounds(&mut schedule, &mut places, 1), [0]);
        places.iter_mut().zip(0..).for_each(|(at, id)| schedule.set_ready(at, None, MessageId(id)));
        assert_eq!((schedule.len(), schedule.next_probe()), (0, None));
    }

    #[test]
    fn every_eighth_round_is_for_those_that_wait_in_turn() {
        let mut schedule = Schedule::default();
        let mut places = [None; 3];
        for (id, rank) in [rank(7, 1), rank(0, 500), rank(4, 90)].into_iter().enumerate() {
            schedule.set_ready(&mut places[id], rank, MessageId(id as u64));
        }
        let came = rounds(&mut schedule, &mut places, 24);
        let others: Vec<(usize, u64)> =
            came.into_iter().enumerate().filter(|(_, id)| *id != 0).collect();
        assert_eq!(others, [(7, 1), (15, 2), (23, 1)]);
    }

    #[test]
    fn a_message_that_shrinks_has_waited_for_as_long_as_before() {
        let mut schedule = Schedule::default();
        let mut places = [None; 3];
        for (id, place) in places.iter_mut().enumerate() {
            schedule.set_ready(place, rank(4, 10 * (id + 1)), MessageId(id as u64));
        }
        for left in (1..10).rev() {
            schedule.set_ready(&mut places[2], rank(4, 20 + left), MessageId(2));
        }
        assert_eq!(rounds(&mut schedule, &mut places, 16)[15], 2);
    }
}
