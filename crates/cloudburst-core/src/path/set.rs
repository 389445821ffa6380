//! The paths to one peer: their order and their counts.

mod reports;

pub(crate) use reports::Evidence;

use super::map::Via;
use super::order::{Order, OrderError};
use super::recycled::Recycled;
use super::sequence::Sequence;
use super::train::{SHORTEST_TRAIN, TrainLength};
use crate::config::MAX_LEVELS;
use crate::id::PathId;
use crate::time::Instant;
use core::time::Duration;

/// Of so many opportunities of a degraded path one is used, for a probe.
const PROBE_EVERY: u32 = 16;
/// Paths that are remembered, those that were removed among them; a map has fewer by far.
const MAX_REMEMBERED: usize = 256;
/// How long a path that was heard of counts as alive.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Packets to a peer in a row, whatever their paths, that must have arrived for it to count as one to
/// which nothing is lost. Of 1 in 1,000 lost at random, one is among them two times in three.
const CLEAN_AFTER: u32 = 1024;
/// Live counts of one path.
///
/// # Example
///
/// ```
/// # use cloudburst_core::path::PathStats;
/// fn log(paths: &[PathStats]) {
///     for (number, path) in paths.iter().enumerate().filter(|(_, path)| !path.removed) {
///         let PathStats { sent, arrived, loss_permille, round_trip, .. } = path;
///         let state = if path.degraded { ", degraded" } else { "" };
///         println!("{number}: {arrived} of {sent} arrived, {round_trip:?}{state}");
///         println!("   {loss_permille} of 1,000 lost lately");
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStats {
    /// How packets get onto the path.
    pub via: Via,
    /// Whether the path map no longer contains it. No packet is sent on it, but its counts may
    /// still grow when the peer reports earlier packets.
    pub removed: bool,
    /// Packets sent on it.
    pub sent: u64,
    /// Symbols that the peer has reported as arrived on it.
    pub arrived: u64,
    /// Those that arrived with a CE mark, according to the peer: an estimate if more than 15
    /// arrived between two reports.
    pub marked: u64,
    /// When the peer last reported an arrival on it.
    pub last_heard: Option<Instant>,
    /// Whether it is degraded to a trickle of probes: its packets went missing, and later ones on
    /// other paths did not.
    pub degraded: bool,
    /// Packets lost of 1,000: an estimate from the last 64 to 128 that are accounted for. Packets
    /// that arrive after their message is complete count as lost. Loss on all paths at once may go
    /// unnoticed for a while, because a packet counts as missing only when a later one has arrived.
    pub loss_permille: u16,
    /// Packets that were found lost, on the same evidence. Those that were only late are taken back.
    pub lost: u64,
    /// The length of its packet trains, as learned so far. `Config::train` may allow less.
    pub train: usize,
    /// Smoothed round-trip time of packets on it, whichever path their answers took. `None` before
    /// the first measurement.
    pub round_trip: Option<Duration>,
}

/// A transmit opportunity: so many packets on this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opportunity {
    /// The path.
    pub path: PathId,
    /// How packets get onto it.
    pub via: Via,
    /// Packets that it is charged with.
    pub packets: usize,
    /// How many packets of other messages may join the train.
    pub room: usize,
    /// The path is degraded: packets on it will hardly arrive.
    pub probe: bool,
}

/// The paths to one peer, visited in an order from a random start.
///
/// A path is degraded when [`account`](Self::account) has seen eight packets missing on it since it
/// was last [`heard`](Self::heard) of. It then gets one packet at every sixteenth of its transmit
/// opportunities; the others go to the next path. When it is heard of again, it is restored.
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
    /// Paths in use, and how many of them are degraded.
    used: usize,
    degraded: usize,
    sequence: Sequence,
    /// The paths to reuse, if the order is recycled.
    recycled: Option<Recycled>,
    hopeful: bool,
    /// Packets that arrived since one was missing, whatever their paths.
    clean: u32,
    /// Packets missing since then. If all of them turn out to be late, `clean` returns to `clean_before`.
    missing: i64,
    clean_before: u32,
    /// Packets accounted for since evidence was last taken.
    evident: u32,
}

/// What the judgement of one path rests on, and the number of its next packet.
#[derive(Clone, Debug, Default)]
struct Health {
    /// Packets that were numbered in each class, modulo 2^16.
    numbered: [u16; MAX_LEVELS],
    /// Packets missing since the path was last heard of.
    missing: u32,
    /// Opportunities that it did not get since it was degraded, or probed.
    passed: u32,
    /// Packets accounted for lately, and how many of them were lost.
    due: u32,
    lost: u32,
    /// A packet came with a CE mark since packets were last accounted for.
    marked: bool,
    evidence: PathEvidence,
    train: TrainLength,
}

/// The same of one path, since evidence was last taken.
#[derive(Clone, Copy, Debug, Default)]
struct PathEvidence {
    due: u32,
    missing: i64,
    arrived: u32,
    marked: u32,
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
            degraded: 0,
            recycled: (order == Order::Recycled).then(Recycled::default),
            hopeful: false,
            clean: 0,
            missing: 0,
            clean_before: 0,
            evident: 0,
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
            self.recycled = (order == Order::Recycled).then(Recycled::default);
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
            marked: 0,
            last_heard: None,
            degraded: false,
            loss_permille: 0,
            lost: 0,
            train: SHORTEST_TRAIN,
            round_trip: None,
        };
        let spare = match self.paths.len() {
            MAX_REMEMBERED.. => self.paths.iter().position(|path| !wanted.contains(&path.via)),
            _ => None,
        };
        if let Some(at) = spare {
            // The peer goes on counting under this number.
            let numbered = self.health[at].numbered;
            (self.paths[at], self.health[at]) = (fresh, Health { numbered, ..Health::default() });
            if let Some(recycled) = &mut self.recycled {
                recycled.forget(at);
            }
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
                path.degraded = false;
                *health = Health { numbered: health.numbered, ..Health::default() };
            }
            path.removed = removed;
        }
        let in_use = || self.paths.iter().filter(|path| !path.removed);
        (self.used, self.degraded) =
            (in_use().count(), in_use().filter(|path| path.degraded).count());
    }

    /// How many paths are in use, at least one: trains in a scheduling quantum.
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether every path in use has been heard of, and none is degraded. In the recycled order,
    /// paths that were never drawn do not count.
    pub fn all_well(&self) -> bool {
        let untried = |path: &PathStats| self.recycled.is_some() && path.sent == 0;
        let mut in_use = self.paths.iter().filter(|path| !path.removed && !untried(path));
        self.degraded == 0 && in_use.all(|path| path.last_heard.is_some())
    }

    /// Whether nothing is lost on the way to the peer, as far as is known: all of the last thousand
    /// packets arrived.
    pub const fn is_clean(&self) -> bool {
        self.clean >= CLEAN_AFTER
    }

    /// The next path in the order, charged with those of `packets` that it takes in one train of at
    /// most `longest`, or with one if it is a probe. If it has not been heard of lately, which it may be
    /// dead for, no more than `few` are risked.
    pub fn take_opportunity(
        &mut self,
        now: Instant,
        few: usize,
        packets: usize,
        longest: usize,
    ) -> Opportunity {
        loop {
            // This ends: a path that is passed over so often is probed.
            let at = self.next_turn(now);
            let path = &self.paths[at];
            if !path.degraded || self.degraded == self.used {
                let fresh = |at| now.saturating_since(at) < FRESH_FOR;
                if !path.last_heard.is_some_and(fresh) {
                    self.health[at].train = TrainLength::default();
                    self.paths[at].train = SHORTEST_TRAIN;
                    return self.charge(at, few.min(packets).min(longest), false);
                }
                let train = self.health[at].train.now().min(longest);
                let packets = packets.min(train);
                return Opportunity { room: train - packets, ..self.charge(at, packets, false) };
            }
            let health = &mut self.health[at];
            health.passed += 1;
            if health.passed >= PROBE_EVERY {
                health.passed = 0;
                return self.charge(at, 1, true);
            }
        }
    }

    /// The next path in the order, degraded or not, charged with `packets`: for when nothing is
    /// heard on any. Where paths are recycled, those that worked last are repeated.
    pub fn take_any_opportunity(&mut self, packets: usize) -> Opportunity {
        let in_use = |at: usize| !self.paths[at].removed;
        let repeated = self.recycled.as_mut().and_then(|recycled| recycled.repeat(in_use));
        let at = repeated.unwrap_or_else(|| self.next_path());
        self.charge(at, packets, false)
    }

    /// The same, but every other turn is of the path that was heard of last: of many paths few may
    /// be alive.
    pub fn take_hopeful_opportunity(&mut self, packets: usize) -> Opportunity {
        self.hopeful = !self.hopeful;
        let known = self.paths.iter().enumerate().filter(|(_, path)| !path.removed);
        let last = known.filter(|(_, path)| path.last_heard.is_some());
        match last.max_by_key(|(_, path)| path.last_heard) {
            Some((at, _)) if self.hopeful => self.charge(at, packets, false),
            _ => {
                let at = self.next_path();
                self.charge(at, packets, false)
            }
        }
    }

    /// The same, of the paths that are `wanted`; of any, if none is.
    pub fn take_any_opportunity_of(&mut self, wanted: impl Fn(&Via) -> bool) -> Opportunity {
        for _ in 0..self.places.len() {
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

    /// This path out of order, if it is in use.
    pub fn take_path(&mut self, path: PathId) -> Option<Opportunity> {
        let at = usize::from(path.0);
        self.paths.get(at).is_some_and(|path| !path.removed).then(|| self.charge(at, 1, false))
    }

    /// The next path in the order that is in use.
    fn next_path(&mut self) -> usize {
        next_of(&mut self.sequence, &self.places, &self.paths)
    }

    /// The path of the next train: one that delivered, if the order is recycled, or else the next
    /// in the order.
    fn next_turn(&mut self, now: Instant) -> usize {
        let Some(recycled) = &mut self.recycled else { return self.next_path() };
        let (paths, living) = (&self.paths, self.used - self.degraded);
        let alive = if living == 0 { self.used } else { living };
        let usable = |at: usize| !paths[at].removed && !paths[at].degraded;
        let explores = recycled.explores();
        if !explores && let Some(at) = recycled.take(now, alive, usable) {
            return at;
        }
        loop {
            let at = next_of(&mut self.sequence, &self.places, paths);
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
        Opportunity { path: PathId(at as u16), via: path.via, packets, room: 0, probe }
    }

    /// Charges the path with `packets` more in the train that it takes already.
    pub fn charge_more(&mut self, path: PathId, packets: usize) {
        let at = usize::from(path.0);
        if let (Some(path), Some(health)) = (self.paths.get_mut(at), self.health.get_mut(at)) {
            path.sent += packets as u64;
            health.train.on_more_sent(packets);
        }
    }

    /// The number of the next packet on `path` in the class `level`, counted from 0, the most
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

    /// The counts, by path number, of removed paths too.
    pub fn stats(&self) -> &[PathStats] {
        &self.paths
    }
}

/// The next path in the order that is in use.
fn next_of(sequence: &mut Sequence, places: &[usize], paths: &[PathStats]) -> usize {
    loop {
        let at = places[sequence.next_path()];
        if !paths[at].removed {
            return at;
        }
    }
}

/// Whether a turn will ever be taken.
fn check_any(places: &[Via], vias: &[Via]) -> Result<(), OrderError> {
    if vias.iter().any(|via| places.contains(via)) { Ok(()) } else { Err(OrderError::NoPaths) }
}

#[cfg(test)]
mod tests;
