//! One receiver's reports on a message's packets on each path, compared with the packets sent
//! there.

use super::sent_log::SentLog;
use crate::id::PathId;
use crate::path::PathSet;
use crate::proto::limits::MAX_COUNTED_PATHS;
use crate::time::Instant;
use crate::wire::Arrivals;
use crate::wire::answer::MARK_MEMORY;

#[derive(Debug, Default)]
pub(in crate::proto::send) struct ArrivalLog {
    counts: Vec<Arrivals>,
    sent: SentLog,
}

impl ArrivalLog {
    /// Symbols that arrived on each path, as far as the receiver has reported.
    pub(super) fn counts(&self) -> &[Arrivals] {
        &self.counts
    }

    /// Clears the log but keeps its memory.
    pub(super) fn clear(&mut self) {
        self.counts.clear();
        self.sent.clear();
    }

    /// Frees memory that it does not use.
    pub(in crate::proto::send) fn shrink(&mut self) {
        self.counts.shrink_to_fit();
        self.sent.shrink();
    }

    /// Whether packets are missing that may only be late.
    pub(super) fn is_missing_any(&self) -> bool {
        self.sent.is_missing_any()
    }

    /// Records that `packets` packets are sent on `path`, after all earlier ones. The packet after
    /// them has number `next`.
    pub(super) fn on_sent(&mut self, path: PathId, packets: usize, next: u64) {
        self.sent.on_sent(path, packets, next);
    }

    /// Keeps the packets sent so far from ever counting as missing: the receiver may have had no
    /// capacity for them, or later packets may overtake them.
    pub(super) fn exempt(&mut self) {
        self.sent.exempt_all();
    }

    /// Records how many symbols have arrived on each path, according to an answer to packet
    /// `acknowledged` that has capacity for `capacity` paths, and tells `paths` what is new.
    pub(in crate::proto::send) fn on_report(
        &mut self,
        now: Instant,
        acknowledged: u64,
        capacity: usize,
        arrivals: impl ExactSizeIterator<Item = Arrivals>,
        paths: &mut PathSet,
    ) {
        let mut is_new = false;
        let listed = arrivals.len();
        for Arrivals { path, count, marked } in arrivals {
            // The sender's own number of paths bounds what a lying receiver can make it remember.
            if usize::from(path.0) >= paths.stats().len() {
                continue;
            }
            let known = self.count_on(path);
            let more = count.saturating_sub(known.count);
            known.count += more;
            known.marked = marked;
            if more > 0 {
                is_new = true;
                paths.heard(now, path, more.into());
                paths.marked(path, marked_of(more, count, marked));
            }
        }
        // A path for which an answer had no capacity is not missing anything.
        let capacity = capacity.min(MAX_COUNTED_PATHS);
        if is_new && (listed >= paths.stats().len() || listed < capacity) {
            for change in self.sent.account(acknowledged, &self.counts) {
                paths.account(now, change.path, change.due, change.missing);
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
