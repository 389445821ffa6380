//! The evidence that a peer's reports give on the rate.

use arrayvec::ArrayVec;

/// The maximum number of paths considered; path maps have far fewer.
const MAX_PATHS: usize = 256;

/// Packets on one path, accounted for by the peer lately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathReport {
    /// Packets accounted for, and those of them that are missing.
    pub(crate) due: u32,
    pub(crate) missing: u32,
    /// Symbols that arrived, and those of them that came with a CE mark.
    pub(crate) arrived: u32,
    pub(crate) marked: u32,
}

/// The evidence that packets to a peer, accounted for lately, give on the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
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
        let mut losses = Shares::new();
        let mut marks = Shares::new();
        let mut sum = PathReport { due: 0, missing: 0, arrived: 0, marked: 0 };
        for PathReport { due, missing, arrived, marked } in reports.take(MAX_PATHS) {
            if due > 0 {
                let missing = missing.min(due);
                sum.due += due;
                sum.missing += missing;
                losses.push(Share { part: missing, all: due });
            }
            if arrived > 0 {
                let marked = marked.min(arrived);
                sum.arrived += arrived;
                sum.marked += marked;
                marks.push(Share { part: marked, all: arrived });
            }
        }
        Self {
            due: sum.due,
            missing: sum.missing,
            arrived: sum.arrived,
            marked: sum.marked,
            lost_everywhere: share_of_better_half(&mut losses),
            marked_everywhere: share_of_better_half(&mut marks),
        }
    }
}

/// For one path, the packets of one kind and all packets.
#[derive(Clone, Copy, Debug)]
struct Share {
    part: u32,
    all: u32,
}

type Shares = ArrayVec<Share, MAX_PATHS>;

/// Returns the share of packets of one kind on the paths with the smallest such shares that
/// together carry half of all packets.
fn share_of_better_half(shares: &mut Shares) -> f64 {
    shares.sort_unstable_by_key(|share| u64::from(share.part) * 1_000_000 / u64::from(share.all));
    let half = shares.iter().map(|share| u64::from(share.all)).sum::<u64>().div_ceil(2);
    let mut parts = 0;
    let mut packets = 0;
    for share in shares.iter() {
        if packets >= half {
            break;
        }
        parts += u64::from(share.part);
        packets += u64::from(share.all);
    }
    parts as f64 / packets.max(1) as f64
}
