//! What of one message went on which path, until its receiver's counts account for it.

use crate::id::PathId;
use crate::proto::limits::MAX_TURNS;
use crate::wire::Arrivals;
use std::collections::{BTreeMap, VecDeque};

/// The turns of one message, oldest first, as far as nobody has accounted for them.
///
/// Counts of arrivals say how many packets came on a path, not which. But if `a` came on one path,
/// then its `a`-th packet, or a later one, did. Whatever was sent before that packet on any path
/// was sent before one that arrived, and is accounted for: it has arrived, or it is missing.
/// What was sent after it is left for later, however many round trips or answers that takes.
#[derive(Debug, Default)]
pub(super) struct Trail {
    turns: VecDeque<(PathId, u32)>,
    tallies: BTreeMap<PathId, Tally>,
}

/// What is known of one message's packets on one path.
#[derive(Debug, Default)]
struct Tally {
    /// Packets accounted for.
    due: u32,
    /// Of these, those that were missing when somebody looked last.
    missing: u32,
    /// `due` at that time.
    seen: u32,
    /// Packets that gave way before anybody accounted for them.
    forgiven: u32,
}

/// What a report changed about one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) path: PathId,
    /// Packets more that are accounted for.
    pub(super) due: u32,
    /// Packets more that are missing; fewer if some were only late.
    pub(super) missing: i64,
}

impl Trail {
    /// `packets` go on `path`, after all that went before.
    pub(super) fn on_sent(&mut self, path: PathId, packets: usize) {
        let packets = packets as u32;
        match self.turns.back_mut() {
            Some((last, sum)) if *last == path => *sum = sum.saturating_add(packets),
            _ => self.turns.push_back((path, packets)),
        }
        if self.turns.len() > MAX_TURNS
            && let Some((path, packets)) = self.turns.pop_front()
        {
            self.tallies.entry(path).or_default().forgiven += packets;
        }
    }

    /// Says of each path what is new about it, now that `arrivals` are all that came on each.
    pub(super) fn account(&mut self, arrivals: &[Arrivals]) -> impl Iterator<Item = Account> {
        let arrived = |path: PathId| {
            arrivals.iter().find(|on| on.path == path).map_or(0, |on| u32::from(on.count))
        };
        if let Some((last, taken)) = self.horizon(arrived) {
            for (path, packets) in self.turns.drain(..last) {
                self.tallies.entry(path).or_default().due += packets;
            }
            if let Some((path, packets)) = self.turns.front_mut() {
                self.tallies.entry(*path).or_default().due += taken;
                *packets -= taken;
                if *packets == 0 {
                    self.turns.pop_front();
                }
            }
        }
        self.tallies.iter_mut().map(move |(&path, tally)| {
            let missing = tally.due.saturating_sub(arrived(path));
            let change = i64::from(missing) - i64::from(tally.missing);
            let due = tally.due - tally.seen;
            (tally.missing, tally.seen) = (missing, tally.due);
            Account { path, due, missing: change }
        })
    }

    /// The last turn of which a packet must have arrived, and how many packets up to that one.
    fn horizon(&self, arrived: impl Fn(PathId) -> u32) -> Option<(usize, u32)> {
        let mut left: BTreeMap<PathId, u32> = BTreeMap::new();
        let mut horizon = None;
        for (at, &(path, packets)) in self.turns.iter().enumerate() {
            let left = left.entry(path).or_insert_with(|| {
                let due = self.tallies.get(&path).map_or(0, |tally| tally.due + tally.forgiven);
                arrived(path).saturating_sub(due)
            });
            let taken = packets.min(*left);
            *left -= taken;
            if taken > 0 {
                horizon = Some((at, taken));
            }
        }
        horizon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(turns: &[(u16, usize)]) -> Trail {
        let mut trail = Trail::default();
        turns.iter().for_each(|&(path, packets)| trail.on_sent(PathId(path), packets));
        trail
    }

    /// Path, packets due, packets missing: what is not zero of each account.
    fn account(trail: &mut Trail, counts: &[(u16, u16)]) -> Vec<(u16, u32, i64)> {
        let arrivals: Vec<Arrivals> =
            counts.iter().map(|&(path, count)| Arrivals { path: PathId(path), count }).collect();
        let accounts = trail.account(&arrivals).filter(|a| (a.due, a.missing) != (0, 0));
        accounts.map(|a| (a.path.0, a.due, a.missing)).collect()
    }

    #[test]
    fn only_what_was_sent_before_an_arrival_is_missing() {
        let mut trail = trail(&[(0, 2), (1, 2), (2, 2), (0, 2), (1, 2), (2, 2)]);
        assert_eq!(account(&mut trail, &[]), []);
        assert_eq!(account(&mut trail, &[(1, 1)]), [(0, 2, 2), (1, 1, 0)]);
        // The third on path 1 is of its second turn.
        assert_eq!(account(&mut trail, &[(1, 3)]), [(0, 2, 2), (1, 2, 0), (2, 2, 2)]);
        assert_eq!(account(&mut trail, &[(1, 3)]), []);
        assert_eq!(account(&mut trail, &[(1, 3), (0, 1)]), [(0, 0, -1)], "that was only late");
    }

    #[test]
    fn a_burst_that_goes_on_after_the_answer_is_not_held_against_its_paths() {
        let mut trail = trail(&[(0, 1), (1, 1), (2, 1), (3, 1), (0, 1), (1, 1)]);
        assert_eq!(account(&mut trail, &[(0, 1)]), [(0, 1, 0)]);
    }

    #[test]
    fn impossible_counts_and_paths_are_borne() {
        let mut trail = trail(&[(0, 1), (1, 1)]);
        let all = account(&mut trail, &[(0, u16::MAX), (1, u16::MAX), (9, u16::MAX)]);
        assert_eq!(all, [(0, 1, 0), (1, 1, 0)]);
        trail.on_sent(PathId(0), 1);
        assert_eq!(account(&mut trail, &[(0, u16::MAX), (1, u16::MAX)]), [(0, 1, 0)]);
    }

    #[test]
    fn what_is_taken_down_is_bounded_and_what_gave_way_is_never_missed() {
        let turns: Vec<_> = (0..1_000_u16).map(|turn| (turn % 4, 1)).collect();
        let mut trail = trail(&turns);
        assert_eq!(trail.turns.len(), MAX_TURNS);
        assert_eq!(account(&mut trail, &[(3, 200)]), [], "those may well be the oldest");
        let few = MAX_TURNS as u32 / 4;
        let missing = i64::from(few);
        let all = account(&mut trail, &[(3, 250)]);
        assert_eq!(all, [(0, few, missing), (1, few, missing), (2, few, missing), (3, few, 0)]);
    }
}
