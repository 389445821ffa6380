//! What one receiver says of a message's packets on each path, beside what was sent there.

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
    /// Symbols that arrived on each path, as far as the receiver has said so.
    pub(super) fn counts(&self) -> &[Arrivals] {
        &self.counts
    }

    /// Forgets everything but the memory for it.
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

    /// `packets` go on `path`, after all that went before. The packet after them has number `next`.
    pub(super) fn on_sent(&mut self, path: PathId, packets: usize, next: u64) {
        self.trail.on_sent(path, packets, next);
    }

    /// Never counts as missing what was sent so far: the receiver may have had no room for it, or
    /// what is sent next may overtake it.
    pub(super) fn forgive(&mut self) {
        self.trail.forgive_all();
    }

    /// Takes in how many symbols the receiver has from each path, which it says in an answer to packet
    /// `acknowledged` with `room` for so many paths, and tells `paths` what is new.
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
        // A path that an answer had no room for has not missed anything.
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

/// About how many of `more` symbols came with a CE mark, where `marked` of the last that are reported did,
/// of `count` in all. At least one if any did.
fn marked_of(more: u16, count: u16, marked: u8) -> u32 {
    let reported = u32::from(count.clamp(1, MARK_MEMORY));
    let marked = u32::from(marked).min(reported);
    (u32::from(more) * marked).div_ceil(reported)
}
