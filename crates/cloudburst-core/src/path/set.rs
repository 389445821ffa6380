//! The paths to one peer: their order and their counters.

mod reports;

use super::map::Via;
use super::order::{Order, OrderError};
use super::recycled::Recycled;
use super::sequence::Sequence;
use super::train::{SHORTEST_TRAIN, TrainLength};
use crate::id::PathId;
use crate::time::Instant;
use core::time::Duration;

/// The maximum number of classes of symbols.
pub(crate) const MAX_LEVELS: usize = 4;
/// One in this many transmit opportunities of a degraded path is used, for a probe.
const PROBE_EVERY: u32 = 16;
/// The maximum number of paths remembered, including removed ones; a map has far fewer.
const MAX_REMEMBERED: usize = 256;
/// How long a path counts as alive after an arrival on it was reported.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Packets to a peer in a row, on any paths, that must have arrived for its paths to count as free of
/// loss. With 1 in 1,000 lost at random, two such sequences in three contain a loss.
const CLEAN_AFTER: u32 = 1024;

/// The counters and state of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStats {
    /// How packets reach the path.
    pub via: Via,
    /// Whether the path map no longer contains it. No packet is sent on it, but its counters may
    /// still grow when the peer reports earlier packets.
    pub removed: bool,
    /// Packets sent on it.
    pub sent: u64,
    /// Symbols that the peer has reported as arrived on it.
    pub arrived: u64,
    /// Symbols that arrived with a CE mark, according to the peer: an estimate if more than 15
    /// arrived between two reports.
    pub marked: u64,
    /// When the peer last reported an arrival on it.
    pub last_heard: Option<Instant>,
    /// Whether it is degraded to a trickle of probes: its packets went missing, and later ones on
    /// other paths did not.
    pub degraded: bool,
    /// Packets lost per 1,000: an estimate from the last 64 to 128 packets accounted for. Packets
    /// that arrive after their message is complete count as lost. Loss on all paths at once may go
    /// unnoticed for a while, because a packet counts as missing only when a later one has arrived.
    pub loss_permille: u16,
    /// Packets found lost, on the same evidence. Packets that were only late are subtracted again.
    pub lost: u64,
    /// The length of its packet trains, as learned so far. `Tuning::train` may allow less.
    pub train: usize,
    /// The smoothed round-trip time of packets on it, whichever path their answers took. `None` before
    /// the first measurement.
    pub round_trip: Option<Duration>,
}

/// A transmit opportunity: a number of packets on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opportunity {
    /// The path.
    pub path: PathId,
    /// How packets reach it.
    pub via: Via,
    /// The number of packets charged to it.
    pub packets: usize,
    /// How many packets of other messages may join the train.
    pub capacity: usize,
    /// Whether the path is degraded: packets on it will hardly arrive.
    pub probe: bool,
}

/// The paths to one peer, visited in an order from a random start.
///
/// A path is degraded when [`account`](Self::account) has seen eight packets missing on it since the
/// last arrival ([`heard`](Self::heard)). It then gets one packet at every sixteenth of its transmit
/// opportunities; the others go to the next path. The next arrival restores it.
///
/// Paths may come and go ([`replace`](Self::replace)). A path keeps its number, so that reports in
/// flight are not attributed to another path.
#[derive(Clone, Debug)]
pub struct PathSet {
    /// By number, including removed ones.
    paths: Vec<PathStats>,
    health: Vec<Health>,
    /// The path for each number of the order.
    slots: Vec<usize>,
    /// The number of paths in use, and of those that are degraded.
    used: usize,
    degraded: usize,
    sequence: Sequence,
    /// The paths to reuse, if the order is recycled.
    recycled: Option<Recycled>,
    recent_is_next: bool,
    /// Packets that arrived since one was missing, on any path.
    clean: u32,
    /// Packets missing since then. If all of them prove to be late, `clean` returns to `clean_before`.
    missing: i64,
    clean_before: u32,
    /// Packets accounted for since the evidence was last cleared.
    evident: u32,
    /// What the peer reported of all paths since this was last taken.
    report: PathReport,
}

/// The health of one path, and the number of its next packet.
#[derive(Clone, Debug, Default)]
struct Health {
    /// Packets numbered in each class, modulo 2^16.
    // A switch may serve classes in any order, and keeps the order within one.
    numbered: [u16; MAX_LEVELS],
    /// Packets missing since the last arrival on the path.
    missing: u32,
    /// Transmit opportunities passed over since it was degraded, or probed.
    passed: u32,
    /// Packets accounted for lately, and how many of them were lost.
    due: u32,
    lost: u32,
    /// Whether a packet arrived with a CE mark since packets were last accounted for.
    marked: bool,
    evidence: PathReport,
    train: TrainLength,
}

/// What the peer reported of one path since its evidence was last cleared, or of all paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathReport {
    /// Packets accounted for.
    pub(crate) due: u32,
    /// Those of them that are missing. Negative if packets that were missing before have arrived since.
    pub(crate) missing: i64,
    /// Symbols that arrived, and those of them that came with a CE mark.
    pub(crate) arrived: u32,
    pub(crate) marked: u32,
}

impl PathSet {
    /// Creates a set of paths numbered as in `slots`, visited in `order` from the position given by
    /// `start`: from path `start % slots`, if the order is round robin. All that are not among `vias`
    /// are gaps.
    ///
    /// Peers and senders must differ in `start`; see [`Sequence::new`].
    ///
    /// # Errors
    ///
    /// [`OrderError`] if the order needs another number of slots, or if there is no path.
    pub fn new(slots: &[Via], vias: &[Via], order: Order, start: u64) -> Result<Self, OrderError> {
        let mut set = Self {
            sequence: Sequence::new(order, slots.len(), start)?,
            paths: Vec::new(),
            health: Vec::new(),
            slots: Vec::new(),
            used: 0,
            degraded: 0,
            recycled: (order == Order::Recycled).then(Recycled::default),
            recent_is_next: false,
            clean: 0,
            missing: 0,
            clean_before: 0,
            evident: 0,
            report: PathReport::default(),
        };
        check_any(slots, vias)?;
        set.assign_slots(slots);
        set.use_only(vias);
        Ok(set)
    }

    /// Uses `vias` from now on, and no other paths. If `slots` is unchanged, the order continues, with
    /// gaps for paths that are gone, as after a failure (topology update, section 4.3 of the DRB
    /// paper); otherwise it restarts from the position given by `start`.
    ///
    /// # Errors
    ///
    /// [`OrderError`] if `slots` has changed and the order needs another number of them, or if there
    /// is no path; the set is then unchanged.
    pub fn replace(
        &mut self,
        slots: &[Via],
        vias: &[Via],
        order: Order,
        start: u64,
    ) -> Result<(), OrderError> {
        check_any(slots, vias)?;
        let same = slots.iter().eq(self.slots.iter().map(|&at| &self.paths[at].via));
        if !same {
            self.sequence = Sequence::new(order, slots.len(), start)?;
            self.recycled = (order == Order::Recycled).then(Recycled::default);
            self.assign_slots(slots);
        }
        self.use_only(vias);
        Ok(())
    }

    /// Gives each of `vias` its previous number, or a new one.
    fn assign_slots(&mut self, vias: &[Via]) {
        self.slots.clear();
        for &via in vias {
            // Reports in flight name paths by number: if these were given out anew, a dead path
            // would be credited with the arrivals on a live one.
            let known = self.paths.iter().position(|path| path.via == via);
            let at = known.unwrap_or_else(|| self.enter(via, vias));
            self.slots.push(at);
        }
    }

    /// Returns a number for a path that has none: a new one, or, once all are used up, that of a path
    /// not in `wanted`.
    fn enter(&mut self, via: Via, wanted: &[Via]) -> usize {
        let fresh = PathStats {
            via,
            removed: true,
            sent: 0,
            arrived: 0,
            marked: 0,
            last_heard: None,
            degraded: false,
            loss_permille: 0,
            lost: 0,
            train: SHORTEST_TRAIN,
            round_trip: None,
        };
        let reused = match self.paths.len() {
            MAX_REMEMBERED.. => self.paths.iter().position(|path| !wanted.contains(&path.via)),
            _ => None,
        };
        if let Some(at) = reused {
            // The peer keeps counting packets under this number.
            let numbered = self.health[at].numbered;
            self.paths[at] = fresh;
            self.health[at] = Health { numbered, ..Health::default() };
            if let Some(recycled) = &mut self.recycled {
                recycled.forget(at);
            }
            return at;
        }
        self.paths.push(fresh);
        self.health.push(Health::default());
        self.paths.len() - 1
    }

    /// Removes all but `vias`, and resets the health of those that come back.
    fn use_only(&mut self, vias: &[Via]) {
        for (path, health) in self.paths.iter_mut().zip(&mut self.health) {
            let removed = !vias.contains(&path.via);
            if path.removed && !removed {
                path.degraded = false;
                *health = Health { numbered: health.numbered, ..Health::default() };
            }
            path.removed = removed;
        }
        let in_use = || self.paths.iter().filter(|path| !path.removed);
        self.used = in_use().count();
        self.degraded = in_use().filter(|path| path.degraded).count();
    }

    /// Returns the number of paths in use, at least one: the trains in a scheduling quantum.
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Returns the numbers of the paths in use.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = PathId> {
        let numbered = self.paths.iter().zip(0..);
        numbered.filter(|(path, _)| !path.removed).map(|(_, number)| PathId(number))
    }

    /// Returns whether every path in use has had an arrival, and none is degraded. In the recycled
    /// order, paths that were never drawn do not count.
    pub fn all_healthy(&self) -> bool {
        let untried = |path: &PathStats| self.recycled.is_some() && path.sent == 0;
        let mut in_use = self.paths.iter().filter(|path| !path.removed && !untried(path));
        self.degraded == 0 && in_use.all(|path| path.last_heard.is_some())
    }

    /// Returns whether the paths to the peer are free of loss, as far as is known: the last 1,024
    /// packets all arrived.
    pub const fn is_clean(&self) -> bool {
        self.clean >= CLEAN_AFTER
    }

    /// Takes the next path in the order, charged with as many of `packets` as fit one train of at most
    /// `longest`, or with one if it is a probe. If the path may be dead, because no arrival on it was
    /// reported lately, at most `few` are risked.
    pub fn take_opportunity(
        &mut self,
        now: Instant,
        few: usize,
        packets: usize,
        longest: usize,
    ) -> Opportunity {
        loop {
            // This ends: a path that is passed over often enough is probed.
            let at = self.next_at(now);
            let path = &self.paths[at];
            if !path.degraded || self.degraded == self.used {
                let fresh = |at| now.saturating_since(at) < FRESH_FOR;
                // With whole trains, all of a 5 KB message could go to one dead path, and took 12
                // ms instead of 1. On paths known to be alive, single packets would only cost
                // system calls: 33 to 72 us of a round trip over eight sockets.
                if !path.last_heard.is_some_and(fresh) {
                    self.health[at].train = TrainLength::default();
                    self.paths[at].train = SHORTEST_TRAIN;
                    return self.charge(at, few.min(packets).min(longest), false);
                }
                let train = self.health[at].train.now().min(longest);
                let packets = packets.min(train);
                return Opportunity {
                    capacity: train - packets,
                    ..self.charge(at, packets, false)
                };
            }
            let health = &mut self.health[at];
            health.passed += 1;
            if health.passed >= PROBE_EVERY {
                health.passed = 0;
                return self.charge(at, 1, true);
            }
        }
    }

    /// Takes the next path in the order, degraded or not, charged with `packets`: for use while no
    /// arrivals are reported. In the recycled order, the paths that worked last are repeated.
    pub fn take_any_opportunity(&mut self, packets: usize) -> Opportunity {
        let in_use = |at: usize| !self.paths[at].removed;
        let repeated = self.recycled.as_mut().and_then(|recycled| recycled.repeat(in_use));
        let at = repeated.unwrap_or_else(|| self.next_path());
        self.charge(at, packets, false)
    }

    /// As [`take_any_opportunity`](Self::take_any_opportunity), but every other opportunity is on the
    /// path with the latest arrival: few of many paths may be alive.
    pub fn take_recent_opportunity(&mut self, packets: usize) -> Opportunity {
        self.recent_is_next = !self.recent_is_next;
        let known = self.paths.iter().enumerate().filter(|(_, path)| !path.removed);
        let last = known.filter(|(_, path)| path.last_heard.is_some());
        match last.max_by_key(|(_, path)| path.last_heard) {
            Some((at, _)) if self.recent_is_next => self.charge(at, packets, false),
            _ => {
                let at = self.next_path();
                self.charge(at, packets, false)
            }
        }
    }

    /// Takes the next path that is `wanted`, degraded or not, charged with one packet; any path if none
    /// is wanted.
    pub fn take_any_opportunity_of(&mut self, wanted: impl Fn(&Via) -> bool) -> Opportunity {
        for _ in 0..self.slots.len() {
            let at = self.next_path();
            if wanted(&self.paths[at].via) {
                return self.charge(at, 1, false);
            }
        }
        let in_use = |path: &PathStats| !path.removed && wanted(&path.via);
        match self.paths.iter().position(in_use) {
            Some(at) => self.charge(at, 1, false),
            None => self.take_any_opportunity(1),
        }
    }

    /// Takes this path out of order, charged with one packet, if it is in use.
    pub fn take_path(&mut self, path: PathId) -> Option<Opportunity> {
        let at = usize::from(path.0);
        self.paths.get(at).is_some_and(|path| !path.removed).then(|| self.charge(at, 1, false))
    }

    /// Returns the next path in the order that is in use.
    fn next_path(&mut self) -> usize {
        next_of(&mut self.sequence, &self.slots, &self.paths)
    }

    /// Returns the path of the next train: one that delivered, if the order is recycled, or else the
    /// next in the order.
    fn next_at(&mut self, now: Instant) -> usize {
        let Some(recycled) = &mut self.recycled else { return self.next_path() };
        let paths = &self.paths;
        let living = self.used - self.degraded;
        let alive = if living == 0 { self.used } else { living };
        let usable = |at: usize| !paths[at].removed && !paths[at].degraded;
        let explores = recycled.explores();
        if !explores && let Some(at) = recycled.take(now, alive, usable) {
            return at;
        }
        loop {
            let at = next_of(&mut self.sequence, &self.slots, paths);
            if explores && paths[at].degraded {
                // A degraded path is thus probed as often as in other orders.
                self.health[at].passed = PROBE_EVERY;
            }
            if recycled.may_follow(at, alive) {
                return at;
            }
        }
    }

    fn charge(&mut self, at: usize, packets: usize, probe: bool) -> Opportunity {
        if let Some(recycled) = &mut self.recycled {
            recycled.on_train(at);
        }
        let path = &mut self.paths[at];
        path.sent += packets as u64;
        self.health[at].train.on_sent(packets);
        Opportunity { path: PathId(at as u16), via: path.via, packets, capacity: 0, probe }
    }

    /// Charges the path with `packets` more in its current train.
    pub fn charge_more(&mut self, path: PathId, packets: usize) {
        let at = usize::from(path.0);
        if let (Some(path), Some(health)) = (self.paths.get_mut(at), self.health.get_mut(at)) {
            path.sent += packets as u64;
            health.train.on_more_sent(packets);
        }
    }

    /// Returns the number of the next packet on `path` in the class `level`, counted from 0, the most
    /// urgent. The receiver detects losses by gaps in these numbers.
    pub fn next_number(&mut self, path: PathId, level: u8) -> u16 {
        let health = self.health.get_mut(usize::from(path.0));
        let Some(next) = health.and_then(|health| health.numbered.get_mut(usize::from(level)))
        else {
            return 0;
        };
        let number = *next;
        *next = number.wrapping_add(1);
        number
    }

    /// Returns the counters by path number, including removed paths.
    pub fn stats(&self) -> &[PathStats] {
        &self.paths
    }
}

/// Returns the next path in the order that is in use.
fn next_of(sequence: &mut Sequence, slots: &[usize], paths: &[PathStats]) -> usize {
    loop {
        let at = slots[sequence.next_path()];
        if !paths[at].removed {
            return at;
        }
    }
}

/// Checks that at least one path can be taken.
fn check_any(slots: &[Via], vias: &[Via]) -> Result<(), OrderError> {
    if vias.iter().any(|via| slots.contains(via)) { Ok(()) } else { Err(OrderError::NoPaths) }
}
