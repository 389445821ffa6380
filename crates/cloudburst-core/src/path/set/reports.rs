//! A peer's reports on the paths to it: arrivals, losses and marks.

use super::{CLEAN_AFTER, PathReport, PathSet};
use crate::id::PathId;
use crate::time::Instant;
use core::time::Duration;

/// Packets in a row that must go missing on a path for it to be degraded. With one in five lost at
/// random, this many are lost in a row once in 400,000 times.
const DEGRADE_AFTER: u32 = 8;
/// Packets that the loss estimate covers, approximately: beyond this, older ones count half.
const LOSS_MEMORY: u32 = 128;
/// The round trip assumed for a path before one has been measured.
const UNKNOWN_ROUND_TRIP: Duration = Duration::from_millis(1);

/// Packets to a peer that must be accounted for before they are evidence: in all, and per path if
/// the peer has many. They span several messages, because a queue drops the end of each burst,
/// whatever its path.
const EVIDENCE_PACKETS: u32 = 128;
const EVIDENCE_PER_PATH: u32 = 8;

impl PathSet {
    /// Notes that the peer has `more` symbols from `path` than it reported before. Path numbers that
    /// are not in this set are ignored: they are the peer's mistake.
    pub fn heard(&mut self, now: Instant, path: PathId, more: u64) {
        let at = usize::from(path.0);
        let Some(path) = self.paths.get_mut(at) else { return };
        path.arrived = path.arrived.saturating_add(more);
        let evidence = &mut self.health[at].evidence;
        let more = more.min(u32::MAX.into()) as u32;
        evidence.arrived = evidence.arrived.saturating_add(more);
        self.report.arrived = self.report.arrived.saturating_add(more);
        path.last_heard = Some(now);
        self.health[at].missing = 0;
        if path.degraded && !path.removed {
            path.degraded = false;
            self.degraded -= 1;
        }
    }

    /// Notes that `more` of the symbols that the peer has from `path` arrived with a CE mark: switches on
    /// the path are congested.
    ///
    /// Call it before [`account`](Self::account) for the same report.
    pub fn marked(&mut self, path: PathId, more: u32) {
        let at = usize::from(path.0);
        let Some(path) = self.paths.get_mut(at) else { return };
        path.marked = path.marked.saturating_add(more.into());
        let health = &mut self.health[at];
        health.marked |= more > 0;
        health.evidence.marked = health.evidence.marked.saturating_add(more);
        self.report.marked = self.report.marked.saturating_add(more);
    }

    /// Notes that a packet sent on `path` was answered after `round_trip`.
    pub fn answered(&mut self, now: Instant, path: PathId, round_trip: Duration) {
        self.heard(now, path, 0);
        if let Some(path) = self.paths.get_mut(usize::from(path.0)) {
            let smoothed = path.round_trip.map_or(round_trip, |old| (old * 7 + round_trip) / 8);
            path.round_trip = Some(smoothed);
        }
    }

    /// Notes that the fate of `due` more packets on `path` is known, and that `missing` more did not
    /// arrive; `missing` is negative if packets prove to have been only late.
    ///
    /// Call it after [`heard`](Self::heard): a path with an arrival at the same moment is not blamed.
    pub fn account(&mut self, now: Instant, path: PathId, due: u32, missing: i64) {
        let at = usize::from(path.0);
        let Some(path) = self.paths.get_mut(at) else { return };
        let health = &mut self.health[at];
        path.lost = path.lost.saturating_add_signed(missing);
        let lost = (i64::from(health.lost) + missing).max(0);
        health.due = health.due.saturating_add(due);
        health.evidence.due = health.evidence.due.saturating_add(due);
        health.evidence.missing += missing;
        self.evident = self.evident.saturating_add(due);
        if !path.degraded {
            self.report.due = self.report.due.saturating_add(due);
            self.report.missing += missing;
        }
        health.lost = u32::try_from(lost).map_or(health.due, |lost| lost.min(health.due));
        while health.due > LOSS_MEMORY {
            health.due /= 2;
            health.lost /= 2;
        }
        // A path is not reused while packets on it are marked (REPS).
        let marked = due > 0 && core::mem::take(&mut health.marked);
        path.loss_permille = (health.lost * 1000 / health.due.max(1)) as u16;
        match missing {
            1.. => {
                if self.missing == 0 {
                    self.clean_before = self.clean;
                }
                self.missing += missing;
                self.clean = 0;
                // A queue that is too short drops the end of a train. If the whole train is
                // missing, others have overtaken it, or the path is dead.
                if missing < i64::from(due) {
                    let round_trip = path.round_trip.unwrap_or(UNKNOWN_ROUND_TRIP);
                    health.train.on_missing(now, missing, round_trip);
                }
            }
            ..0 => {
                let was_missing = self.missing > 0;
                self.missing = (self.missing + missing).max(0);
                if was_missing && self.missing == 0 {
                    self.clean = self.clean.max(self.clean_before);
                }
                health.train.on_late(-missing);
            }
            0 => {
                if due > 0
                    && !marked
                    && let Some(recycled) = &mut self.recycled
                {
                    recycled.add(now, at, due / health.train.now() as u32);
                }
                self.clean = self.clean.saturating_add(due);
                if self.clean >= CLEAN_AFTER {
                    self.missing = 0;
                }
                if health.train.on_arrived(due) {
                    // A longer train may overflow a queue: bursts carry repair symbols until the paths
                    // are clean again.
                    self.clean = 0;
                    self.clean_before = 0;
                    self.missing = 0;
                }
            }
        }
        path.train = health.train.now();
        if path.last_heard == Some(now) || path.removed {
            return;
        }
        health.missing = health.missing.saturating_add(u32::try_from(missing).unwrap_or(0));
        if health.missing >= DEGRADE_AFTER && !path.degraded {
            path.degraded = true;
            health.passed = 0;
            self.degraded += 1;
        }
    }

    /// Returns whether enough packets are accounted for to be evidence of the rate.
    pub(crate) fn has_evidence(&self) -> bool {
        self.evident >= EVIDENCE_PACKETS.max(EVIDENCE_PER_PATH * self.used as u32)
    }

    /// Returns what the peer reported of each path since the evidence was last cleared.
    pub(crate) fn evidence(&self) -> impl Iterator<Item = PathReport> {
        self.health.iter().map(|health| health.evidence)
    }

    /// Takes what the peer reported of all paths since the last call.
    pub(crate) fn take_report(&mut self) -> PathReport {
        core::mem::take(&mut self.report)
    }

    /// Discards the evidence so far: it has been used, or its packets were sent at another rate.
    pub(crate) fn clear_evidence(&mut self) {
        self.evident = 0;
        self.health.iter_mut().for_each(|health| health.evidence = PathReport::default());
    }
}
