//! Clos networks of one to three layers: one switch, leaf-spine, Fat-tree, VL2.
//!
//! All have the same shape. A leaf has hosts below it and `ways` switches above it. With two layers these are the
//! spines. With three they are the aggregation switches of its pod, each with `ups` cores above it. Cores
//! are numbered like the paths of `cloudburst_core::path::Shape`: core `a * ups + u` is the `u`th above
//! the `a`th aggregation switch of every pod, so that a path is the number of a core, or of a spine.
//!
//! A VL2 has d0 aggregation switches in each group, with d1 / 2 leaves below and d1 / 2 spines above each. Each
//! spine is split into d0 virtual ones (section 3.2 of the DRB paper), one for each aggregation switch of a
//! group. The VL2 thus becomes a network of this shape whose pods are its d2 / d0 groups.

use crate::engine::{SECOND, Time};
use cloudburst_workload::Racks;

/// The maximum number of links of a network: more than any real network has, but few enough to fit in memory.
const MAX_LINKS: usize = 1 << 20;

/// A kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bits per second; must divide 8 * 10^12, so that a byte takes whole picoseconds.
    pub rate: u64,
    /// The propagation delay plus the switching delay of the node at the far end.
    pub delay: Time,
}

/// The dimensions of a Clos network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Hosts below a leaf.
    pub hosts_per_leaf: u16,
    /// Leaves in a pod.
    pub leaves_per_pod: u16,
    /// Pods; 1 with fewer than three layers.
    pub pods: u16,
    /// Switches above a leaf; 0 for a single switch.
    pub ways: u16,
    /// Cores above an aggregation switch; 0 with fewer than three layers.
    pub ups: u16,
}

/// An invalid topology: an error of the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("topology: {field}: got {value}, expected {expected}")]
pub struct TopologyError {
    /// The invalid field.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// The values that it may have.
    pub expected: &'static str,
}

impl Link {
    pub(super) fn check(self) -> Result<(), TopologyError> {
        if self.rate == 0 || !(8 * SECOND).is_multiple_of(self.rate) {
            let expected = "a number of bits per second that divides 8 * 10^12";
            return Err(TopologyError { field: "rate", value: self.rate, expected });
        }
        Ok(())
    }
}

impl Shape {
    /// `hosts` hosts at one switch.
    pub const fn one_switch(hosts: u16) -> Self {
        Self { hosts_per_leaf: hosts, leaves_per_pod: 1, pods: 1, ways: 0, ups: 0 }
    }

    /// `leaves` leaves with `hosts_per_leaf` hosts each, and `spines` spines.
    pub const fn leaf_spine(hosts_per_leaf: u16, leaves: u16, spines: u16) -> Self {
        Self { hosts_per_leaf, leaves_per_pod: leaves, pods: 1, ways: spines, ups: 0 }
    }

    /// A Fat-tree of switches with `ports` ports. Each leaf has `oversubscription` times as many hosts below it as
    /// switches above.
    pub const fn fat_tree(ports: u16, oversubscription: u16) -> Self {
        let half = ports / 2;
        Self {
            hosts_per_leaf: half * oversubscription,
            leaves_per_pod: half,
            pods: ports,
            ways: half,
            ups: half,
        }
    }

    /// A VL2 whose leaves have `d0` uplinks and `hosts_per_leaf` hosts, and whose aggregation and spine
    /// switches have `d1` and `d2` ports.
    pub const fn vl2(hosts_per_leaf: u16, d0: u16, d1: u16, d2: u16) -> Self {
        Self { hosts_per_leaf, leaves_per_pod: d1 / 2, pods: d2 / d0, ways: d0, ups: d1 / 2 }
    }

    /// The number of hosts.
    pub const fn hosts(&self) -> usize {
        self.hosts_per_leaf as usize * self.leaves()
    }

    /// The hosts by leaf.
    pub const fn racks(&self) -> Racks {
        Racks { hosts: self.hosts() as u16, rack: self.hosts_per_leaf }
    }

    /// The number of leaves.
    pub const fn leaves(&self) -> usize {
        self.leaves_per_pod as usize * self.pods as usize
    }

    /// The number of switch layers.
    pub const fn layers(&self) -> usize {
        match (self.ways, self.ups) {
            (0, _) => 1,
            (_, 0) => 2,
            _ => 3,
        }
    }

    pub(super) fn check(&self) -> Result<(), TopologyError> {
        let refuse = |field, value: usize, expected| {
            Err(TopologyError { field, value: value as u64, expected })
        };
        if self.hosts_per_leaf == 0 {
            return refuse("hosts per leaf", 0, "1 or more");
        }
        if self.leaves() == 0 {
            return refuse("leaves", 0, "1 or more");
        }
        if self.hosts() > usize::from(u16::MAX) {
            return refuse("hosts", self.hosts(), "65535 or fewer");
        }
        if self.ways == 0 && self.leaves() > 1 {
            return refuse("switches above a leaf", 0, "1 or more if there are several leaves");
        }
        if self.ups == 0 && self.pods > 1 {
            let expected = "1 or more if there are several pods";
            return refuse("cores above an aggregation switch", 0, expected);
        }
        let paths = usize::from(self.ways) * usize::from(self.ups.max(1));
        if paths > usize::from(u16::MAX) {
            return refuse("paths", paths, "65535 or fewer");
        }
        let aggs = usize::from(self.pods) * usize::from(self.ways);
        let up =
            self.hosts() + self.leaves() * usize::from(self.ways) + aggs * usize::from(self.ups);
        if up > MAX_LINKS {
            return refuse("links", up, "1048576 or fewer");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fabrics_of_the_papers_have_their_sizes() {
        assert_eq!(Shape::leaf_spine(16, 9, 4).hosts(), 144);
        assert_eq!(Shape::fat_tree(24, 1).hosts(), 3_456);
        assert_eq!(Shape::fat_tree(24, 2).hosts(), 6_912);
        // Section 5 of the DRB paper: 3,840 servers, 20 at each leaf.
        let vl2 = Shape::vl2(20, 4, 64, 24);
        assert_eq!((vl2.hosts(), vl2.leaves()), (3_840, 192));
        assert_eq!(usize::from(vl2.ways * vl2.ups), 128);
    }
}
