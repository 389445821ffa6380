//! The paper's two networks.

use crate::engine::{MS, Time, US};
use crate::fabric::{Link, Shape};
use crate::queue::Depth;
use crate::scheme::MARK_AT;

/// A network with the memory and thresholds of its switches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) shape: Shape,
    pub(super) edge: Link,
    pub(super) core: Link,
    /// The memory of a switch in bytes.
    pub(super) buffer: u64,
    /// The limit of a port.
    pub(super) port: Depth,
    /// The limit of Cloudburst's queue in bytes: 1 % of the memory.
    pub(super) tiny: usize,
    /// The ECN threshold of DCTCP's queues, in packets.
    pub(super) mark_at: usize,
    /// The minimum retransmission timeout of TCP.
    pub(super) rto_min: Time,
}

/// The testbed of V-A to V-C: 8 hosts below 2 leaves, 4 spines, 1 Gb/s, switches with 4 MB.
///
/// With 5 us per link, a round trip of full packets takes about 100 us, as in the paper (II-A).
pub(super) const TESTBED: Site = Site {
    shape: Shape::leaf_spine(4, 2, 4),
    edge: Link { rate: 1_000_000_000, delay: 5 * US },
    core: Link { rate: 1_000_000_000, delay: 5 * US },
    buffer: 4_000_000,
    port: Depth::Unlimited,
    tiny: 40_000,
    mark_at: MARK_AT,
    rto_min: 10 * MS,
};

/// The simulation of V-D: 144 hosts below 9 leaves, 4 spines, 10 and 40 Gb/s. The paper does not give the memory of
/// its switches. It is 9 MB here, the smallest of the later chips that the paper names.
pub(super) const LARGE: Site = Site {
    shape: Shape::leaf_spine(16, 9, 4),
    edge: Link { rate: 10_000_000_000, delay: 2 * US },
    core: Link { rate: 40_000_000_000, delay: 2 * US },
    buffer: 9_000_000,
    port: Depth::Unlimited,
    tiny: 90_000,
    mark_at: MARK_AT,
    rto_min: 10 * MS,
};
