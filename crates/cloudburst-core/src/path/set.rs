//! The paths to one peer: their order and their counts.

use super::{Order, OrderError, Sequence, Via};
use crate::id::PathId;
use crate::time::Instant;
use core::time::Duration;

/// Packets in a row that went missing on a path, for it to be thinned. With one in five lost at
/// random, so many are lost in a row once in 400,000 times.
const THIN_AFTER: u32 = 8;
/// Of so many turns of a thinned path one is taken, for a probe.
const PROBE_EVERY: u32 = 16;
/// Paths that are remembered, those that were removed among them; a map has fewer by far.
const MAX_REMEMBERED: usize = 256;
/// How long a path that was heard of counts as alive.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Packets that the estimate of loss looks back on, about: beyond this, older ones count half.
const LOSS_MEMORY: u32 = 128;

/// Live counts of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStats {
    /// How packets get onto the path.
    pub via: Via,
    /// Whether the path map has it no longer: no packet is sent on it. Its counts may grow all the
    /// same, as peers account for what was sent.
    pub removed: bool,
    /// Packets sent on it.
    pub sent: u64,
    /// Symbols that the peer said had arrived on it.
    pub arrived: u64,
    /// When the peer last let know that anything arrived on it.
    pub last_heard: Option<Instant>,
    /// Whether it is thinned to a trickle: its packets went missing, and those sent later on other
    /// paths did not.
    pub thinned: bool,
    /// Of 1,000 packets, how many are lost, or come when their message is whole without them: an
    /// estimate from the last 64 to 128 that are accounted for. What all paths lose alike may count
    /// as still on its way, for a packet is missed only when one sent later arrived.
    pub loss_permille: u16,
    /// Smoothed time from sending a packet on it to the answer, whichever way that came back; of
    /// packets that an answer named. `None` before the first.
    pub round_trip: Option<Duration>,
}

/// One turn: so many packets on this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The path.
    pub path: PathId,
    /// How packets get onto it.
    pub via: Via,
    /// Packets that it is charged with.
    pub packets: usize,
    /// The path is thinned: what goes on it will hardly arrive.
    pub probe: bool,
}

/// The paths to one peer, visited in an order from a random start.
///
/// A path is thinned when [`account`](Self::account) has seen eight packets missing on it since it
/// was last [`heard`](Self::heard) of; every sixteenth of its turns is then one packet, and the
/// others pass to the next path. When it is heard of, it has all its turns again.
///
/// Paths may come and go ([`replace`](Self::replace)). A path keeps its number, so that reports
/// on the way are not taken for those of another.
#[derive(Clone, Debug)]
pub struct PathSet {
    /// By number; removed ones among them.
    paths: Vec<PathStats>,
    health: Vec<Health>,
    /// Which path the order means by each of its numbers.
    places: Vec<usize>,
    /// Paths in use, and how many of them are thinned.
    used: usize,
    thinned: usize,
    sequence: Sequence,
    hopeful: bool,
}

/// What the judgement of one path rests on.
#[derive(Clone, Debug, Default)]
struct Health {
    /// Packets missing since the path was last heard of.
    missing: u32,
    /// Turns that it did not get since it was thinned, or probed.
    passed: u32,
    /// Packets accounted for lately, and how many of them were lost.
    due: u32,
    lost: u32,
}

impl PathSet {
    /// Paths numbered as in `places`, visited in `order` from where `start` stands for: from path
    /// `start % places` on, if the order is round robin. All that are not among `vias` are gaps.
    ///
    /// Peers and senders must differ in `start`; see [`Sequence::new`].
    ///
    /// # Errors
    ///
    /// [`OrderError`] if the order is for another number of places, or if there is no path.
    pub fn new(places: &[Via], vias: &[Via], order: Order, start: u64) -> Result<Self, OrderError> {
        let mut set = Self {
            sequence: Sequence::new(order, places.len(), start)?,
            paths: Vec::new(),
            health: Vec::new(),
            places: Vec::new(),
            used: 0,
            thinned: 0,
            hopeful: false,
        };
        check_any(places, vias)?;
        set.place(places);
        set.use_only(vias);
        Ok(set)
    }

    /// Uses `vias` from now on, and no other paths. Where `places` are what they were, the order
    /// goes on as it is, with gaps for what is gone, as after a failure (topology update, section
    /// 4.3 of the DRB paper); else it begins anew, from where `start` stands for.
    ///
    /// # Errors
    ///
    /// [`OrderError`] if there are other places and the order is not for their number, or if there
    /// is no path; nothing has changed then.
    pub fn replace(
        &mut self,
        places: &[Via],
        vias: &[Via],
        order: Order,
        start: u64,
    ) -> Result<(), OrderError> {
        check_any(places, vias)?;
        let same = places.iter().eq(self.places.iter().map(|&at| &self.paths[at].via));
        if !same {
            self.sequence = Sequence::new(order, places.len(), start)?;
            self.place(places);
        }
        self.use_only(vias);
        Ok(())
    }

    /// Gives each of `vias` the number that it had, or a new one.
    fn place(&mut self, vias: &[Via]) {
        self.places.clear();
        for &via in vias {
            let known = self.paths.iter().position(|path| path.via == via);
            let at = known.unwrap_or_else(|| self.enter(via, vias));
            self.places.push(at);
        }
    }

    /// A number for a path that has none: a new one, or, after very many, that of a path which is
    /// not wanted any more.
    fn enter(&mut self, via: Via, wanted: &[Via]) -> usize {
        let fresh = PathStats {
            via,
            removed: true,
            sent: 0,
            arrived: 0,
            last_heard: None,
            thinned: false,
            loss_permille: 0,
            round_trip: None,
        };
        let spare = match self.paths.len() {
            MAX_REMEMBERED.. => self.paths.iter().position(|path| !wanted.contains(&path.via)),
            _ => None,
        };
        if let Some(at) = spare {
            (self.paths[at], self.health[at]) = (fresh, Health::default());
            return at;
        }
        self.paths.push(fresh);
        self.health.push(Health::default());
        self.paths.len() - 1
    }

    /// Removes all but `vias`, and judges those that come back anew.
    fn use_only(&mut self, vias: &[Via]) {
        for (path, health) in self.paths.iter_mut().zip(&mut self.health) {
            let removed = !vias.contains(&path.via);
            if path.removed && !removed {
                path.thinned = false;
                *health = Health::default();
            }
            path.removed = removed;
        }
        let in_use = || self.paths.iter().filter(|path| !path.removed);
        (self.used, self.thinned) =
            (in_use().count(), in_use().filter(|path| path.thinned).count());
    }

    /// How many paths are in use, at least one: packets in a round.
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether every path in use has been heard of, and none is thinned.
    pub fn all_well(&self) -> bool {
        let mut in_use = self.paths.iter().filter(|path| !path.removed);
        self.thinned == 0 && in_use.all(|path| path.last_heard.is_some())
    }

    /// The next path in the order, charged with `packets`, or with one if it is a probe. If it has
    /// not been heard of lately, which it may be dead for, no more than `few` are risked.
    pub fn take_turn(&mut self, now: Instant, few: usize, packets: usize) -> Turn {
        loop {
            // This ends: a path that is passed over so often is probed.
            let at = self.next_path();
            let path = &self.paths[at];
            if !path.thinned || self.thinned == self.used {
                let fresh = |at| now.saturating_since(at) < FRESH_FOR;
                let known = path.last_heard.is_some_and(fresh);
                return self.charge(at, if known { packets } else { few.min(packets) }, false);
            }
            let health = &mut self.health[at];
            health.passed += 1;
            if health.passed >= PROBE_EVERY {
                health.passed = 0;
                return self.charge(at, 1, true);
            }
        }
    }

    /// The next path in the order, thinned or not, charged with `packets`: for when nothing is
    /// heard on any.
    pub fn take_any_turn(&mut self, packets: usize) -> Turn {
        let at = self.next_path();
        self.charge(at, packets, false)
    }

    /// The same, but every other turn is of the path that was heard of last: of many paths few may
    /// be alive.
    pub fn take_hopeful_turn(&mut self, packets: usize) -> Turn {
        self.hopeful = !self.hopeful;
        let known = self.paths.iter().enumerate().filter(|(_, path)| !path.removed);
        let last = known.filter(|(_, path)| path.last_heard.is_some());
        match last.max_by_key(|(_, path)| path.last_heard) {
            Some((at, _)) if self.hopeful => self.charge(at, packets, false),
            _ => self.take_any_turn(packets),
        }
    }

    /// The same, of the paths that are `wanted`; of any, if none is.
    pub fn take_any_turn_of(&mut self, wanted: impl Fn(&Via) -> bool) -> Turn {
        for _ in 0..self.places.len() {
            let at = self.next_path();
            if wanted(&self.paths[at].via) {
                return self.charge(at, 1, false);
            }
        }
        let in_use = |path: &PathStats| !path.removed && wanted(&path.via);
        match self.paths.iter().position(in_use) {
            Some(at) => self.charge(at, 1, false),
            None => self.take_any_turn(1),
        }
    }

    /// The next path in the order that is in use.
    fn next_path(&mut self) -> usize {
        loop {
            let at = self.places[self.sequence.next_path()];
            if !self.paths[at].removed {
                return at;
            }
        }
    }

    fn charge(&mut self, at: usize, packets: usize, probe: bool) -> Turn {
        let path = &mut self.paths[at];
        path.sent += packets as u64;
        Turn { path: PathId(at as u16), via: path.via, packets, probe }
    }

    /// Notes that the peer has `more` symbols from `path` than it said before. Other numbers
    /// than this set's are ignored: they are the peer's mistake.
    pub fn heard(&mut self, now: Instant, path: PathId, more: u64) {
        let at = usize::from(path.0);
        let Some(path) = self.paths.get_mut(at) else { return };
        path.arrived = path.arrived.saturating_add(more);
        path.last_heard = Some(now);
        self.health[at].missing = 0;
        if path.thinned && !path.removed {
            path.thinned = false;
            self.thinned -= 1;
        }
    }

    /// Notes that a packet sent on `path` was answered after `round_trip`.
    pub fn answered(&mut self, now: Instant, path: PathId, round_trip: Duration) {
        self.heard(now, path, 0);
        if let Some(path) = self.paths.get_mut(usize::from(path.0)) {
            let smoothed = path.round_trip.map_or(round_trip, |old| (old * 7 + round_trip) / 8);
            path.round_trip = Some(smoothed);
        }
    }

    /// Notes that of `due` packets more on `path` it is known whether they arrived, and that
    /// `missing` packets more did not, or fewer, if some were only late.
    ///
    /// To be called after [`heard`](Self::heard): a path that is heard of at this moment is not
    /// blamed.
    pub fn account(&mut self, now: Instant, path: PathId, due: u32, missing: i64) {
        let at = usize::from(path.0);
        let Some(path) = self.paths.get_mut(at) else { return };
        let health = &mut self.health[at];
        let lost = (i64::from(health.lost) + missing).max(0);
        health.due = health.due.saturating_add(due);
        health.lost = u32::try_from(lost).map_or(health.due, |lost| lost.min(health.due));
        while health.due > LOSS_MEMORY {
            (health.due, health.lost) = (health.due / 2, health.lost / 2);
        }
        path.loss_permille = (health.lost * 1000 / health.due.max(1)) as u16;
        if path.last_heard == Some(now) || path.removed {
            return;
        }
        health.missing = health.missing.saturating_add(u32::try_from(missing).unwrap_or(0));
        if health.missing >= THIN_AFTER && !path.thinned {
            path.thinned = true;
            health.passed = 0;
            self.thinned += 1;
        }
    }

    /// The counts, by path number, of removed paths too.
    pub fn stats(&self) -> &[PathStats] {
        &self.paths
    }
}

/// Whether a turn will ever be taken.
fn check_any(places: &[Via], vias: &[Via]) -> Result<(), OrderError> {
    if vias.iter().any(|via| places.contains(via)) { Ok(()) } else { Err(OrderError::NoPaths) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: u16, order: &str, start: u64) -> Result<PathSet, OrderError> {
        let remote = "10.0.0.1:1".parse().unwrap();
        let vias: Vec<Via> = (0..paths).map(|lane| Via { lane, remote }).collect();
        PathSet::new(&vias, &vias, order.parse().unwrap(), start)
    }

    #[test]
    fn visits_every_path_once_a_round_from_its_start() {
        for (paths, order, expected) in
            [(3, "rrb", [2, 0, 1, 2, 0, 1]), (6, "drb:2x3", [5, 0, 3, 1, 4, 2])]
        {
            let mut set = set(paths, order, 5).unwrap();
            let visited: Vec<u16> = (0..6).map(|_| set.take_turn(at(0), 1, 1).path.0).collect();
            assert_eq!(visited, expected);
            assert!(set.stats().iter().all(|path| path.sent == 6 / u64::from(paths)));
        }
    }

    #[test]
    fn paths_that_do_not_fit_the_order_are_refused() {
        assert!(matches!(set(3, "drb:2x2", 0), Err(OrderError::Paths { paths: 3, .. })));
        assert!(matches!(set(0, "rrb", 0), Err(OrderError::NoPaths)));
    }

    fn vias(lanes: impl IntoIterator<Item = u16>) -> Vec<Via> {
        let remote = "10.0.0.1:1".parse().unwrap();
        lanes.into_iter().map(|lane| Via { lane, remote }).collect()
    }

    fn lanes_of(set: &mut PathSet, turns: usize) -> Vec<u16> {
        (0..turns).map(|_| set.take_turn(at(0), 1, 1).via.lane).collect()
    }

    #[test]
    fn a_path_that_is_removed_is_passed_over_and_comes_back_at_its_place() {
        let order: Order = "drb:2x2".parse().unwrap();
        let mut set = set(4, "drb:2x2", 0).unwrap();
        assert_eq!(lanes_of(&mut set, 4), [0, 2, 1, 3]);
        set.replace(&vias(0..4), &vias([0, 1, 3]), order, 0).unwrap();
        assert_eq!((lanes_of(&mut set, 6), set.len()), (vec![0, 1, 3, 0, 1, 3], 3));
        assert!(set.stats()[2].removed);
        set.replace(&vias(0..4), &vias(0..4), order, 0).unwrap();
        assert_eq!(lanes_of(&mut set, 4), [0, 2, 1, 3]);
        assert_eq!(set.stats()[2].sent, 2);
        let mut other = PathSet::new(&vias(0..4), &vias([0, 3]), order, 0).unwrap();
        assert_eq!(lanes_of(&mut other, 4), [0, 3, 0, 3]);
        assert!(PathSet::new(&vias(0..4), &vias([9]), order, 0).is_err());
    }

    #[test]
    fn new_paths_get_new_numbers_and_old_ones_keep_theirs() {
        let mut set = set(2, "rrb", 0).unwrap();
        let rrb = Order::RoundRobin;
        set.replace(&vias([1, 7]), &vias([1, 7]), rrb, 0).unwrap();
        let turns: Vec<(u16, u16)> = (0..3)
            .map(|_| set.take_turn(at(0), 1, 1))
            .map(|turn| (turn.path.0, turn.via.lane))
            .collect();
        assert_eq!(turns, [(1, 1), (2, 7), (1, 1)]);
        let fat: Order = "drb:2x2".parse().unwrap();
        assert!(set.replace(&vias(0..3), &vias(0..3), fat, 0).is_err());
        assert!(set.replace(&[], &[], fat, 0).is_err());
        assert_eq!(lanes_of(&mut set, 2), [7, 1], "nothing has changed");
    }

    #[test]
    fn a_thinned_path_that_is_removed_counts_no_more_and_is_judged_anew() {
        let mut set = set(2, "rrb", 0).unwrap();
        set.account(at(1), PathId(0), 8, 8);
        set.replace(&vias([1]), &vias([1]), Order::RoundRobin, 0).unwrap();
        set.heard(at(2), PathId(0), 1);
        assert_eq!(lanes_of(&mut set, 3), [1, 1, 1]);
        set.replace(&vias([0, 1]), &vias([0, 1]), Order::RoundRobin, 0).unwrap();
        assert!(!set.stats()[0].thinned);
        assert_eq!(lanes_of(&mut set, 4).iter().filter(|&&lane| lane == 0).count(), 2);
    }

    #[test]
    fn however_many_paths_come_and_go_few_are_remembered() {
        let mut set = set(4, "rrb", 0).unwrap();
        for round in 1..500_u16 {
            let new = vias(round * 4..round * 4 + 4);
            set.replace(&new, &new, Order::RoundRobin, 0).unwrap();
            let mut lanes = lanes_of(&mut set, 4);
            lanes.sort_unstable();
            assert!(lanes.into_iter().eq(round * 4..round * 4 + 4));
        }
        assert_eq!(set.stats().len(), MAX_REMEMBERED);
    }

    #[test]
    fn a_path_number_of_the_peers_own_making_is_ignored() {
        let mut set = set(1, "rrb", 0).unwrap();
        set.heard(Instant::ZERO, PathId(9), 4);
        set.heard(Instant::ZERO, PathId(0), 4);
        assert_eq!(set.stats()[0].arrived, 4);
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_path_that_misses_eight_in_a_row_is_thinned_until_it_is_heard_of() {
        for order in ["rrb", "drb:4", "rb"] {
            let mut set = set(4, order, 1).unwrap();
            set.account(at(1), PathId(2), 7, 7);
            assert!(!set.stats()[2].thinned);
            set.heard(at(2), PathId(2), 1);
            set.account(at(3), PathId(2), 7, 7);
            assert!(!set.stats()[2].thinned, "not in a row");
            set.account(at(4), PathId(2), 1, 1);
            assert!(set.stats()[2].thinned);
            let before = set.stats()[2].sent;
            let turns: Vec<Turn> = (0..480).map(|_| set.take_turn(at(0), 4, 4)).collect();
            let probes: Vec<&Turn> = turns.iter().filter(|turn| turn.probe).collect();
            assert!((7..=13).contains(&probes.len()), "{}", probes.len());
            assert!(probes.iter().all(|turn| (turn.path.0, turn.packets) == (2, 1)));
            assert_eq!(set.stats()[2].sent - before, probes.len() as u64);
            set.heard(at(5), PathId(2), 1);
            let turns = (0..400).filter(|_| set.take_turn(at(0), 1, 1).path.0 == 2).count();
            assert!((70..130).contains(&turns), "{turns}");
        }
    }

    #[test]
    fn a_path_that_is_heard_of_is_not_blamed_by_the_same_report() {
        let mut set = set(2, "rrb", 0).unwrap();
        set.heard(at(1), PathId(0), 1);
        set.account(at(1), PathId(0), 60, 59);
        assert!(!set.stats()[0].thinned);
        assert_eq!(set.stats()[0].loss_permille, 983);
    }

    #[test]
    fn in_the_dark_every_other_turn_is_of_the_path_that_was_heard_of_last() {
        let mut set = set(4, "rrb", 0).unwrap();
        let mut paths = || (0..6).map(|_| set.take_hopeful_turn(1).path.0).collect::<Vec<_>>();
        assert_eq!(paths(), [0, 1, 2, 3, 0, 1]);
        set.heard(at(1), PathId(3), 0);
        set.heard(at(2), PathId(1), 0);
        let mut paths = || (0..6).map(|_| set.take_hopeful_turn(1).path.0).collect::<Vec<_>>();
        assert_eq!(paths(), [1, 2, 1, 3, 1, 0]);
    }

    #[test]
    fn if_all_paths_are_thinned_none_is() {
        let mut set = set(2, "rrb", 0).unwrap();
        set.account(at(1), PathId(0), 8, 8);
        set.account(at(1), PathId(1), 8, 8);
        let visited: Vec<u16> = (0..4).map(|_| set.take_turn(at(0), 1, 1).path.0).collect();
        assert_eq!(visited, [0, 1, 0, 1]);
        set.heard(at(2), PathId(1), 1);
        assert!((0..10).all(|_| set.take_turn(at(0), 1, 1).path.0 == 1));
        assert!((0..2).any(|_| set.take_any_turn(1).path.0 == 0));
    }

    #[test]
    fn loss_follows_what_was_lost_lately_and_forgives_what_was_late() {
        let mut set = set(2, "rrb", 0).unwrap();
        set.account(at(1), PathId(0), 100, 50);
        assert_eq!(set.stats()[0].loss_permille, 500);
        set.account(at(2), PathId(0), 0, -50);
        assert_eq!(set.stats()[0].loss_permille, 0);
        for _ in 0..100 {
            set.account(at(3), PathId(1), 10, 2);
        }
        assert!((190..=210).contains(&set.stats()[1].loss_permille));
    }

    #[test]
    fn wild_numbers_are_borne() {
        let mut set = set(2, "rrb", 0).unwrap();
        for missing in [i64::MAX / 2, i64::MIN / 2, 0, u32::MAX.into()] {
            set.heard(at(1), PathId(7), u64::MAX);
            set.heard(at(1), PathId(0), u64::MAX);
            set.account(at(2), PathId(0), u32::MAX, missing);
            set.account(at(2), PathId(9), 1, missing);
            assert!(set.stats()[0].loss_permille <= 1000);
        }
    }

    #[test]
    fn round_trips_are_smoothed() {
        let mut set = set(1, "rrb", 0).unwrap();
        set.answered(at(1), PathId(0), Duration::from_micros(80));
        set.answered(at(2), PathId(0), Duration::from_micros(160));
        assert_eq!(set.stats()[0].round_trip, Some(Duration::from_micros(90)));
    }
}
