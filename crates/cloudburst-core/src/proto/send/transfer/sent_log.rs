//! The packets of one message by path, until its receiver's counts account for them.

use crate::id::PathId;
use crate::path::PathSet;
use crate::proto::limits::{MAX_COUNTED_PATHS, MAX_SENT_TRAINS};
use crate::time::Instant;
use crate::wire::Arrivals;
use crate::wire::answer::MARK_MEMORY;
use arrayvec::ArrayVec;
use std::collections::VecDeque;

/// The packet trains of one message that are not accounted for, oldest first, and the arrivals that
/// its receiver has reported.
///
/// Counts of arrivals say how many packets arrived on a path, not which. But if `a` arrived on one
/// path, then its `a`-th packet, or a later one, did; and so did the packet that the answer
/// acknowledges. Every packet sent earlier, on any path, was sent before one that arrived, and is
/// accounted for: it has arrived, or it is missing. Packets sent later are left for later, however
/// many round trips or answers that takes.
#[derive(Debug, Default)]
pub(in crate::proto::send) struct SentLog {
    /// Symbols that arrived on each path, as far as the receiver has reported.
    pub(super) arrivals: Vec<Arrivals>,
    trains: VecDeque<SentTrain>,
    /// Ordered by path.
    counts: Vec<(PathId, PathCounts)>,
}

/// Successive packets on one path, with consecutive numbers.
#[derive(Clone, Copy, Debug)]
struct SentTrain {
    path: PathId,
    packets: u32,
    /// The number after that of the last packet.
    end: u64,
}

/// What is known of one message's packets on one path.
#[derive(Debug, Default)]
struct PathCounts {
    /// Packets accounted for.
    due: u32,
    /// Of these, those that were missing at the last report.
    missing: u32,
    /// The value of `due` at the last report.
    seen: u32,
    /// Packets that were exempted before they were accounted for.
    exempt: u32,
}

/// What a report changed about one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PathChange {
    path: PathId,
    /// How many more packets are accounted for.
    due: u32,
    /// How many more packets are missing; negative if some were only late.
    missing: i64,
}

impl SentLog {
    /// Clears the log but keeps its memory.
    pub(super) fn clear(&mut self) {
        self.arrivals.clear();
        self.trains.clear();
        self.counts.clear();
    }

    /// Frees memory that it does not use.
    pub(in crate::proto::send) fn shrink(&mut self) {
        self.arrivals.shrink_to_fit();
        self.trains.shrink_to_fit();
        self.counts.shrink_to_fit();
    }

    /// Whether packets are missing that may only be late.
    pub(super) fn is_missing_any(&self) -> bool {
        self.counts.iter().any(|(_, counts)| counts.missing > 0)
    }

    /// Records that `packets` packets are sent on `path`, after all earlier ones. The packet after
    /// them has number `next`.
    pub(super) fn on_sent(&mut self, path: PathId, packets: usize, next: u64) {
        let packets = packets as u32;
        match self.trains.back_mut() {
            Some(last) if last.path == path && last.end + u64::from(packets) == next => {
                last.packets = last.packets.saturating_add(packets);
                last.end = next;
            }
            _ => self.trains.push_back(SentTrain { path, packets, end: next }),
        }
        if self.trains.len() > MAX_SENT_TRAINS
            && let Some(train) = self.trains.pop_front()
        {
            counts_of(&mut self.counts, train.path).exempt += train.packets;
        }
    }

    /// Keeps the packets sent so far from ever counting as missing: the receiver may have had no
    /// capacity for them, or later packets may overtake them.
    pub(super) fn exempt(&mut self) {
        for train in self.trains.drain(..) {
            counts_of(&mut self.counts, train.path).exempt += train.packets;
        }
    }

    /// Records how many symbols have arrived on each path, according to an answer to packet
    /// `acknowledged` that has capacity for `capacity` paths, and tells `paths` what is new. Returns
    /// whether any are new.
    pub(in crate::proto::send) fn on_report(
        &mut self,
        now: Instant,
        acknowledged: u64,
        capacity: usize,
        arrivals: impl ExactSizeIterator<Item = Arrivals>,
        paths: &mut PathSet,
    ) -> bool {
        let mut is_new = false;
        let listed = arrivals.len();
        for Arrivals { path, count, marked } in arrivals {
            // The sender's own number of paths bounds what a lying receiver can make it remember.
            if usize::from(path.0) >= paths.stats().len() {
                continue;
            }
            let at = self.arrivals.iter().position(|on| on.path == path).unwrap_or_else(|| {
                self.arrivals.push(Arrivals { path, count: 0, marked: 0 });
                self.arrivals.len() - 1
            });
            let known = &mut self.arrivals[at];
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
            for change in self.account(acknowledged) {
                paths.account(now, change.path, change.due, change.missing);
            }
        }
        is_new
    }

    /// Returns what is new about each path, now that all arrivals are known, packet `acknowledged`
    /// among them.
    fn account(&mut self, acknowledged: u64) -> impl Iterator<Item = PathChange> {
        let arrivals = &self.arrivals;
        let arrived = |path: PathId| {
            arrivals.iter().find(|on| on.path == path).map_or(0, |on| u32::from(on.count))
        };
        // No clock is involved, and nothing counts while nothing arrives, as at the superfluous end
        // of a burst.
        if let Some((last, taken)) = self.horizon(arrived).max(self.position_of(acknowledged)) {
            for train in self.trains.drain(..last) {
                counts_of(&mut self.counts, train.path).due += train.packets;
            }
            if let Some(train) = self.trains.front_mut() {
                counts_of(&mut self.counts, train.path).due += taken;
                train.packets -= taken;
                if train.packets == 0 {
                    self.trains.pop_front();
                }
            }
        }
        self.counts.iter_mut().map(move |(path, counts)| {
            let path = *path;
            let missing = counts.due.saturating_sub(arrived(path));
            let change = i64::from(missing) - i64::from(counts.missing);
            let due = counts.due - counts.seen;
            counts.missing = missing;
            counts.seen = counts.due;
            PathChange { path, due, missing: change }
        })
    }

    /// The train of packet `number`, and the number of its packets up to and including that one.
    fn position_of(&self, number: u64) -> Option<(usize, u32)> {
        let at = self.trains.iter().position(|train| number < train.end)?;
        let SentTrain { packets, end, .. } = self.trains[at];
        // Numbers between those of two trains belong to other messages.
        let first = end.checked_sub(packets.into())?;
        number.checked_sub(first).map(|before| (at, before as u32 + 1))
    }

    /// The last train of which a packet must have arrived, and the number of its packets up to and
    /// including that one.
    fn horizon(&self, arrived: impl Fn(PathId) -> u32) -> Option<(usize, u32)> {
        let mut paths = ArrayVec::<(PathId, u32), MAX_SENT_TRAINS>::new();
        let mut horizon = None;
        for (at, &SentTrain { path, packets, .. }) in self.trains.iter().enumerate() {
            let known = paths.binary_search_by_key(&path, |&(path, _)| path);
            let (Ok(index) | Err(index)) = known;
            if known.is_err() {
                let counts = self.counts.binary_search_by_key(&path, |&(path, _)| path);
                let due = counts.map_or(0, |at| {
                    let (_, counts) = &self.counts[at];
                    counts.due + counts.exempt
                });
                paths.insert(index, (path, arrived(path).saturating_sub(due)));
            }
            let (_, left) = &mut paths[index];
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
fn counts_of(counts: &mut Vec<(PathId, PathCounts)>, path: PathId) -> &mut PathCounts {
    let at = counts.binary_search_by_key(&path, |&(path, _)| path).unwrap_or_else(|at| {
        counts.insert(at, (path, PathCounts::default()));
        at
    });
    &mut counts[at].1
}

/// The approximate number of `more` new symbols that arrived with a CE mark, if `marked` of the
/// most recent reported ones did, of `count` in all. At least one if any did.
fn marked_of(more: u16, count: u16, marked: u8) -> u32 {
    let reported = u32::from(count.clamp(1, MARK_MEMORY));
    let marked = u32::from(marked).min(reported);
    (u32::from(more) * marked).div_ceil(reported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::answer::NONE_ACKNOWLEDGED;

    /// A sender's log, and the number of its next packet.
    #[derive(Default)]
    struct Sent(SentLog, u64);

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
            let arrivals = counts.iter().map(|&(path, count)| Arrivals {
                path: PathId(path),
                count,
                marked: 0,
            });
            self.0.arrivals = arrivals.collect();
            let accounts = self.0.account(acknowledged);
            let accounts = accounts.filter(|a| (a.due, a.missing) != (0, 0));
            accounts.map(|a| (a.path.0, a.due, a.missing)).collect()
        }
    }

    fn sent(trains: &[(u16, usize)]) -> Sent {
        let mut sent = Sent::default();
        trains.iter().for_each(|&(path, packets)| sent.on_sent(path, packets));
        sent
    }

    #[test]
    fn only_packets_sent_before_an_arrival_count_as_missing() {
        let mut log = sent(&[(0, 2), (1, 2), (2, 2), (0, 2), (1, 2), (2, 2)]);
        assert_eq!(log.account(&[]), []);
        assert_eq!(log.account(&[(1, 1)]), [(0, 2, 2), (1, 1, 0)]);
        // The third packet on path 1 is of its second train.
        assert_eq!(log.account(&[(1, 3)]), [(0, 2, 2), (1, 2, 0), (2, 2, 2)]);
        assert_eq!(log.account(&[(1, 3)]), []);
        assert_eq!(log.account(&[(1, 3), (0, 1)]), [(0, 0, -1)], "that was only late");
    }

    #[test]
    fn packets_sent_after_the_answer_left_do_not_count_as_missing() {
        let mut log = sent(&[(0, 1), (1, 1), (2, 1), (3, 1), (0, 1), (1, 1)]);
        assert_eq!(log.account(&[(0, 1)]), [(0, 1, 0)]);
    }

    #[test]
    fn impossible_counts_and_unknown_paths_are_tolerated() {
        let mut log = sent(&[(0, 1), (1, 1)]);
        let all = log.account(&[(0, u16::MAX), (1, u16::MAX), (9, u16::MAX)]);
        assert_eq!(all, [(0, 1, 0), (1, 1, 0)]);
        log.on_sent(0, 1);
        assert_eq!(log.account(&[(0, u16::MAX), (1, u16::MAX)]), [(0, 1, 0)]);
    }

    #[test]
    fn the_log_is_bounded_and_packets_dropped_from_it_never_count_as_missing() {
        let trains: Vec<_> = (0..1_000_u16).map(|train| (train % 4, 1)).collect();
        let mut log = sent(&trains);
        assert_eq!(log.0.trains.len(), MAX_SENT_TRAINS);
        assert_eq!(log.account(&[(3, 200)]), [], "those may well be the oldest");
        let few = MAX_SENT_TRAINS as u32 / 4;
        let missing = i64::from(few);
        let all = log.account(&[(3, 250)]);
        assert_eq!(all, [(0, few, missing), (1, few, missing), (2, few, missing), (3, few, 0)]);
    }

    #[test]
    fn packets_sent_before_the_acknowledged_one_are_missing_even_on_a_single_path() {
        let mut log = sent(&[(0, 40), (0, 26)]);
        assert_eq!(log.answer(63, &[(0, 60)]), [(0, 64, 4)]);
        assert_eq!(log.answer(65, &[(0, 61)]), [(0, 2, 1)]);
        assert_eq!(log.answer(63, &[(0, 62)]), [(0, 0, -1)], "an old answer, and a late packet");
        // Other messages had numbers 66 to 99.
        log.1 = 100;
        log.on_sent(0, 4);
        assert_eq!(log.answer(70, &[(0, 62)]), [], "that was none of this message's");
        assert_eq!(log.answer(103, &[(0, 65)]), [(0, 4, 1)]);
    }

    #[test]
    fn packets_that_a_busy_receiver_dropped_do_not_count_as_missing() {
        let mut log = sent(&[(0, 8), (1, 8)]);
        log.0.exempt();
        log.on_sent(0, 4);
        assert_eq!(log.answer(19, &[(0, 3)]), [(0, 4, 1)]);
    }
}
