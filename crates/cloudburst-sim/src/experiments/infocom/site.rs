//! The paper's two networks.

use crate::engine::{MS, Time, US};
use crate::fabric::{Link, Shape};
use crate::queue::Depth;
use crate::scheme::MARK_AT;

/// A network, and what its switches have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) shape: Shape,
    pub(super) edge: Link,
    pub(super) core: Link,
    /// Bytes of a switch's memory.
    pub(super) buffer: u64,
    /// Bytes that a port may hold, if that is limited.
    pub(super) port: Depth,
    /// Bytes of Cloudburst's queue: 1 % of the memory.
    pub(super) tiny: usize,
    /// Packets at which DCTCP's queues mark.
    pub(super) mark_at: usize,
    /// Smallest retransmission timeout of TCP.
    pub(super) rto_min: Time,
}

/// The testbed of V-A to V-C: 8 hosts below 2 leaves, 4 spines, 1 Gb/s, switches with 4 MB.
///
/// 5 us a link make round trips of some 100 us with full packets, as the paper has (II-A).
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

/// The simulation of V-D: 144 hosts below 9 leaves, 4 spines, 10 and 40 Gb/s. The paper does not say how
/// much memory its switches have: they have 9 MB here, the smallest of the later chips that it names.
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
