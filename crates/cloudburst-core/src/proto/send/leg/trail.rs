//! The packets of one message by path, until its receiver's counts account for them.

use crate::id::PathId;
use crate::proto::limits::MAX_TURNS;
use crate::wire::Arrivals;
use arrayvec::ArrayVec;
use std::collections::VecDeque;

/// The transmit opportunities of one message that are not accounted for, oldest first.
///
/// Counts of arrivals say how many packets arrived on a path, not which. But if `a` arrived on one
/// path, then its `a`-th packet, or a later one, did; and so did the packet that the answer
/// acknowledges. Every packet sent earlier, on any path, was sent before one that arrived, and is
/// accounted for: it has arrived, or it is missing. Packets sent later are left for later, however
/// many round trips or answers that takes.
#[derive(Debug, Default)]
pub(super) struct Trail {
    turns: VecDeque<Turn>,
    /// Ordered by path.
    tallies: Vec<(PathId, Tally)>,
}

/// Successive packets on one path, with consecutive numbers.
#[derive(Clone, Copy, Debug)]
struct Turn {
    path: PathId,
    packets: u32,
    /// The number after that of the last packet.
    end: u64,
}

/// What is known of one message's packets on one path.
#[derive(Debug, Default)]
struct Tally {
    /// Packets accounted for.
    due: u32,
    /// Of these, those that were missing at the last report.
    missing: u32,
    /// The value of `due` at the last report.
    seen: u32,
    /// Packets that were forgiven before they were accounted for.
    forgiven: u32,
}

/// What a report changed about one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) path: PathId,
    /// How many more packets are accounted for.
    pub(super) due: u32,
    /// How many more packets are missing; negative if some were only late.
    pub(super) missing: i64,
}

impl Trail {
    /// Clears the trail but keeps its memory.
    pub(super) fn clear(&mut self) {
        self.turns.clear();
        self.tallies.clear();
    }

    /// Frees memory that it does not use.
    pub(super) fn shrink(&mut self) {
        self.turns.shrink_to_fit();
        self.tallies.shrink_to_fit();
    }

    /// Whether packets are missing that may only be late.
    pub(super) fn is_missing_any(&self) -> bool {
        self.tallies.iter().any(|(_, tally)| tally.missing > 0)
    }

    /// Records that `packets` packets are sent on `path`, after all earlier ones. The packet after
    /// them has number `next`.
    pub(super) fn on_sent(&mut self, path: PathId, packets: usize, next: u64) {
        let packets = packets as u32;
        match self.turns.back_mut() {
            Some(last) if last.path == path && last.end + u64::from(packets) == next => {
                (last.packets, last.end) = (last.packets.saturating_add(packets), next);
            }
            _ => self.turns.push_back(Turn { path, packets, end: next }),
        }
        if self.turns.len() > MAX_TURNS {
            self.forgive(1);
        }
    }

    /// Keeps the packets sent so far from ever counting as missing.
    pub(super) fn forgive_all(&mut self) {
        self.forgive(self.turns.len());
    }

    /// Forgives the oldest `turns`, which are then never accounted for.
    fn forgive(&mut self, turns: usize) {
        for turn in self.turns.drain(..turns) {
            tally(&mut self.tallies, turn.path).forgiven += turn.packets;
        }
    }

    /// Returns what is new about each path, given the counts in `arrivals` of all arrivals, packet
    /// `acknowledged` among them.
    pub(super) fn account(
        &mut self,
        acknowledged: u64,
        arrivals: &[Arrivals],
    ) -> impl Iterator<Item = Account> {
        let arrived = |path: PathId| {
            arrivals.iter().find(|on| on.path == path).map_or(0, |on| u32::from(on.count))
        };
        if let Some((last, taken)) = self.horizon(arrived).max(self.place_of(acknowledged)) {
            for turn in self.turns.drain(..last) {
                tally(&mut self.tallies, turn.path).due += turn.packets;
            }
            if let Some(turn) = self.turns.front_mut() {
                tally(&mut self.tallies, turn.path).due += taken;
                turn.packets -= taken;
                if turn.packets == 0 {
                    self.turns.pop_front();
                }
            }
        }
        self.tallies.iter_mut().map(move |(path, tally)| {
            let path = *path;
            let missing = tally.due.saturating_sub(arrived(path));
            let change = i64::from(missing) - i64::from(tally.missing);
            let due = tally.due - tally.seen;
            (tally.missing, tally.seen) = (missing, tally.due);
            Account { path, due, missing: change }
        })
    }

    /// The turn of packet `number`, and the number of its packets up to and including that one.
    fn place_of(&self, number: u64) -> Option<(usize, u32)> {
        let at = self.turns.iter().position(|turn| number < turn.end)?;
        let Turn { packets, end, .. } = self.turns[at];
        // Numbers between those of two turns belong to other messages.
        let first = end.checked_sub(packets.into())?;
        number.checked_sub(first).map(|before| (at, before as u32 + 1))
    }

    /// The last turn of which a packet must have arrived, and the number of its packets up to and
    /// including that one.
    fn horizon(&self, arrived: impl Fn(PathId) -> u32) -> Option<(usize, u32)> {
        let mut paths = ArrayVec::<(PathId, u32), MAX_TURNS>::new();
        let mut horizon = None;
        for (at, &Turn { path, packets, .. }) in self.turns.iter().enumerate() {
            let known = paths.binary_search_by_key(&path, |&(path, _)| path);
            let (Ok(place) | Err(place)) = known;
            if known.is_err() {
                let tally = self.tallies.binary_search_by_key(&path, |&(path, _)| path);
                let due = tally.map_or(0, |at| {
                    let (_, tally) = &self.tallies[at];
                    tally.due + tally.forgiven
                });
                paths.insert(place, (path, arrived(path).saturating_sub(due)));
            }
            let (_, left) = &mut paths[place];
            let taken = packets.min(*left);
            *left -= taken;
            if taken > 0 {
                horizon = Some((at, taken));
            }
        }
        horizon
    }
}

/// What is known of `path`, which may be nothing yet.
fn tally(tallies: &mut Vec<(PathId, Tally)>, path: PathId) -> &mut Tally {
    let at = tallies.binary_search_by_key(&path, |&(path, _)| path).unwrap_or_else(|at| {
        tallies.insert(at, (path, Tally::default()));
        at
    });
    &mut tallies[at].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::answer::NONE_ACKNOWLEDGED;

    /// A sender's trail, and the number of its next packet.
    #[derive(Default)]
    struct Sent(Trail, u64);

    impl Sent {
        fn on_sent(&mut self, path: u16, packets: usize) {
            self.1 += packets as u64;
            self.0.on_sent(PathId(path), packets, self.1);
        }

        /// Path, packets due and packets missing of each account that is not zero.
        fn account(&mut self, counts: &[(u16, u16)]) -> Vec<(u16, u32, i64)> {
            self.answer(NONE_ACKNOWLEDGED, counts)
        }

        fn answer(&mut self, acknowledged: u64, counts: &[(u16, u16)]) -> Vec<(u16, u32, i64)> {
            let arrivals: Vec<Arrivals> = counts
                .iter()
                .map(|&(path, count)| Arrivals { path: PathId(path), count, marked: 0 })
                .collect();
            let accounts = self.0.account(acknowledged, &arrivals);
            let accounts = accounts.filter(|a| (a.due, a.missing) != (0, 0));
            accounts.map(|a| (a.path.0, a.due, a.missing)).collect()
        }
    }

    fn sent(turns: &[(u16, usize)]) -> Sent {
        let mut sent = Sent::default();
        turns.iter().for_each(|&(path, packets)| sent.on_sent(path, packets));
        sent
    }

    #[test]
    fn only_what_was_sent_before_an_arrival_is_missing() {
        let mut trail = sent(&[(0, 2), (1, 2), (2, 2), (0, 2), (1, 2), (2, 2)]);
        assert_eq!(trail.account(&[]), []);
        assert_eq!(trail.account(&[(1, 1)]), [(0, 2, 2), (1, 1, 0)]);
        // The third packet on path 1 is of its second turn.
        assert_eq!(trail.account(&[(1, 3)]), [(0, 2, 2), (1, 2, 0), (2, 2, 2)]);
        assert_eq!(trail.account(&[(1, 3)]), []);
        assert_eq!(trail.account(&[(1, 3), (0, 1)]), [(0, 0, -1)], "that was only late");
    }

    #[test]
    fn a_burst_that_goes_on_after_the_answer_is_not_held_against_its_paths() {
        let mut trail = sent(&[(0, 1), (1, 1), (2, 1), (3, 1), (0, 1), (1, 1)]);
        assert_eq!(trail.account(&[(0, 1)]), [(0, 1, 0)]);
    }

    #[test]
    fn impossible_counts_and_paths_are_borne() {
        let mut trail = sent(&[(0, 1), (1, 1)]);
        let all = trail.account(&[(0, u16::MAX), (1, u16::MAX), (9, u16::MAX)]);
        assert_eq!(all, [(0, 1, 0), (1, 1, 0)]);
        trail.on_sent(0, 1);
        assert_eq!(trail.account(&[(0, u16::MAX), (1, u16::MAX)]), [(0, 1, 0)]);
    }

    #[test]
    fn what_is_taken_down_is_bounded_and_what_gave_way_is_never_missed() {
        let turns: Vec<_> = (0..1_000_u16).map(|turn| (turn % 4, 1)).collect();
        let mut trail = sent(&turns);
        assert_eq!(trail.0.turns.len(), MAX_TURNS);
        assert_eq!(trail.account(&[(3, 200)]), [], "those may well be the oldest");
        let few = MAX_TURNS as u32 / 4;
        let missing = i64::from(few);
        let all = trail.account(&[(3, 250)]);
        assert_eq!(all, [(0, few, missing), (1, few, missing), (2, few, missing), (3, few, 0)]);
    }

    #[test]
    fn what_was_sent_before_the_acknowledged_packet_is_missing_on_the_only_path_too() {
        let mut trail = sent(&[(0, 40), (0, 26)]);
        assert_eq!(trail.answer(63, &[(0, 60)]), [(0, 64, 4)]);
        assert_eq!(trail.answer(65, &[(0, 61)]), [(0, 2, 1)]);
        assert_eq!(trail.answer(63, &[(0, 62)]), [(0, 0, -1)], "an old answer, and a late packet");
        // Other messages had numbers 66 to 99.
        trail.1 = 100;
        trail.on_sent(0, 4);
        assert_eq!(trail.answer(70, &[(0, 62)]), [], "that was none of this message's");
        assert_eq!(trail.answer(103, &[(0, 65)]), [(0, 4, 1)]);
    }

    #[test]
    fn what_a_receiver_had_no_room_for_is_not_missing() {
        let mut trail = sent(&[(0, 8), (1, 8)]);
        trail.0.forgive_all();
        trail.on_sent(0, 4);
        assert_eq!(trail.answer(19, &[(0, 3)]), [(0, 4, 1)]);
    }
}
