//! One receiver's reports on a message's packets on each path, compared with the packets sent
//! there.

use super::trail::Trail;
use crate::id::PathId;
use crate::path::PathSet;
use crate::proto::limits::MAX_COUNTED_PATHS;
use crate::time::Instant;
use crate::wire::Arrivals;
use crate::wire::answer::MARK_MEMORY;

#[derive(Debug, Default)]
pub(in crate::proto::send) struct ArrivalLog {
    counts: Vec<Arrivals>,
    trail: Trail,
}

impl ArrivalLog {
    /// Symbols that arrived on each path, as far as the receiver has reported.
    pub(super) fn counts(&self) -> &[Arrivals] {
        &self.counts
    }

    /// Clears the log but keeps its memory.
    pub(super) fn clear(&mut self) {
        self.counts.clear();
        self.trail.clear();
    }

    /// Frees memory that it does not use.
    pub(in crate::proto::send) fn shrink(&mut self) {
        self.counts.shrink_to_fit();
        self.trail.shrink();
    }

    /// Whether packets are missing that may only be late.
    pub(super) fn is_missing_any(&self) -> bool {
        self.trail.is_missing_any()
    }

    /// Records that `packets` packets are sent on `path`, after all earlier ones. The packet after
    /// them has number `next`.
    pub(super) fn on_sent(&mut self, path: PathId, packets: usize, next: u64) {
        self.trail.on_sent(path, packets, next);
    }

    /// Keeps the packets sent so far from ever counting as missing: the receiver may have had no
    /// room for them, or later packets may overtake them.
    pub(super) fn forgive(&mut self) {
        self.trail.forgive_all();
    }

    /// Records how many symbols have arrived on each path, according to an answer to packet
    /// `acknowledged` that has room for `room` paths, and tells `paths` what is new.
    pub(in crate::proto::send) fn on_report(
        &mut self,
        now: Instant,
        acknowledged: u64,
        room: usize,
        arrivals: impl ExactSizeIterator<Item = Arrivals>,
        paths: &mut PathSet,
    ) {
        let (mut news, listed) = (false, arrivals.len());
        for Arrivals { path, count, marked } in arrivals {
            // The sender's own number of paths bounds what a lying receiver can make it remember.
            if usize::from(path.0) >= paths.stats().len() {
                continue;
            }
            let known = self.count_on(path);
            let more = count.saturating_sub(known.count);
            (known.count, known.marked) = (known.count + more, marked);
            if more > 0 {
                news = true;
                paths.heard(now, path, more.into());
                paths.marked(path, marked_of(more, count, marked));
            }
        }
        // A path for which an answer had no room is not missing anything.
        let room = room.min(MAX_COUNTED_PATHS);
        if news && (listed >= paths.stats().len() || listed < room) {
            for account in self.trail.account(acknowledged, &self.counts) {
                paths.account(now, account.path, account.due, account.missing);
            }
        }
    }

    fn count_on(&mut self, path: PathId) -> &mut Arrivals {
        let at = self.counts.iter().position(|on| on.path == path).unwrap_or_else(|| {
            self.counts.push(Arrivals { path, count: 0, marked: 0 });
            self.counts.len() - 1
        });
        &mut self.counts[at]
    }
}

/// The approximate number of `more` new symbols that arrived with a CE mark, if `marked` of the
/// most recent reported ones did, of `count` in all. At least one if any did.
fn marked_of(more: u16, count: u16, marked: u8) -> u32 {
    let reported = u32::from(count.clamp(1, MARK_MEMORY));
    let marked = u32::from(marked).min(reported);
    (u32::from(more) * marked).div_ceil(reported)
}
