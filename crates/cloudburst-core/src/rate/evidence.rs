//! The evidence that a peer's reports give on the rate.

use crate::path::PathReport;
use arrayvec::ArrayVec;

/// The maximum number of paths considered; path maps have far fewer.
const MAX_PATHS: usize = 256;

/// The evidence that packets to a peer, accounted for lately, give on the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Evidence {
    /// Packets accounted for, and those of them that are missing.
    pub(crate) due: u32,
    pub(crate) missing: u32,
    /// Symbols that arrived, and those of them that came with a CE mark.
    pub(crate) arrived: u32,
    pub(crate) marked: u32,
    /// The shares of packets that were lost, and marked, on the better half of the paths: events on
    /// only some paths do not show in them.
    pub(crate) lost_everywhere: f64,
    pub(crate) marked_everywhere: f64,
}

impl Evidence {
    /// Sums up the reports on all paths to a peer.
    pub(crate) fn of(reports: impl Iterator<Item = PathReport>) -> Self {
        let mut losses = ArrayVec::<(u64, u64), MAX_PATHS>::new();
        let mut marks = ArrayVec::<(u64, u64), MAX_PATHS>::new();
        let mut evidence = Self::default();
        for PathReport { due, missing, arrived, marked } in reports.take(MAX_PATHS) {
            if due > 0 {
                let missing = missing.clamp(0, due.into()) as u32;
                evidence.due += due;
                evidence.missing += missing;
                losses.push((missing.into(), due.into()));
            }
            if arrived > 0 {
                let marked = marked.min(arrived);
                evidence.arrived += arrived;
                evidence.marked += marked;
                marks.push((marked.into(), arrived.into()));
            }
        }
        evidence.lost_everywhere = share_of_better_half(&mut losses);
        evidence.marked_everywhere = share_of_better_half(&mut marks);
        evidence
    }
}

/// Returns the share of packets of one kind on the paths with the smallest such shares that
/// together carry half of all packets. `paths` has the number of either for each path.
fn share_of_better_half(paths: &mut [(u64, u64)]) -> f64 {
    paths.sort_unstable_by_key(|(part, all)| part * 1_000_000 / all);
    let half = paths.iter().map(|(_, all)| all).sum::<u64>().div_ceil(2);
    let mut parts = 0;
    let mut packets = 0;
    for (part, all) in paths.iter() {
        if packets >= half {
            break;
        }
        parts += part;
        packets += all;
    }
    parts as f64 / packets.max(1) as f64
}
