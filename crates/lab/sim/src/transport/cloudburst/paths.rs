//! The path map of a host: from egresses to paths of the fabric.

use crate::engine::Packet;
use crate::fabric::Shape;
use crate::wire;
use cloudburst_core::naming::Naming;
use cloudburst_core::path::{PathResolver, Via};
use cloudburst_core::rng::SplitMix64;
use std::net::SocketAddr;

/// The UDP port of endpoints, and the first source port with hashed paths.
pub(super) const PORT: u16 = 7_000;

/// The maximum number of paths that packets can name: path numbers have 12 bits.
pub(super) const MAX_PATHS: u16 = 1 << 12;

/// How packets are mapped to paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// Each egress is one path of the fabric: explicit path control (XPath).
    ///
    /// Egress `a * ups + u` leads through the `a`th switch above the leaf and, in three layers, the `u`th core
    /// above that. Hosts in the same pod or rack use one egress for each distinct path.
    Explicit,
    /// Each egress is a source port, and switches hash addresses and ports onto a path (ECMP).
    Hashed {
        /// The number of ports, at least 1. Several may share a path, and some paths may have none.
        /// As many spare ports are used for peers to which all of these lead through dead switches.
        ports: u16,
    },
    /// All packets take one path of the fabric, as if a host knew which one works.
    Fixed {
        /// The path between the most distant hosts.
        path: u16,
    },
}

/// The path map of one host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostPaths {
    paths: Paths,
    shape: Shape,
    host: u16,
    /// The salt of the hash.
    salt: u64,
}

/// The lowest layer that connects two hosts.
enum Meet {
    Leaf,
    Pod,
    Top,
}

impl Paths {
    /// The number of egresses of a host.
    pub(super) fn egresses(self, shape: &Shape) -> u16 {
        match self {
            Self::Explicit => shape.ways.max(1) * shape.ups.max(1),
            Self::Hashed { ports } => ports.max(1),
            Self::Fixed { .. } => 1,
        }
    }
}

impl HostPaths {
    pub(super) const fn new(paths: Paths, shape: Shape, host: u16, salt: u64) -> Self {
        Self { paths, shape, host, salt }
    }

    /// The source port of packets that leave by `egress`.
    pub(super) const fn port(&self, egress: u16) -> u16 {
        match self.paths {
            Paths::Explicit | Paths::Fixed { .. } => PORT,
            Paths::Hashed { .. } => PORT + egress,
        }
    }

    /// The path of the fabric for packets to `peer` that leave by `egress`.
    pub(super) fn path(&self, egress: u16, peer: u16, port: u16) -> u16 {
        let ways = self.shape.ways;
        let ups = self.shape.ups.max(1);
        match (self.paths, self.meet(peer)) {
            (_, Meet::Leaf) => 0,
            (Paths::Explicit, Meet::Pod) => egress / ups,
            (Paths::Explicit, Meet::Top) => egress,
            (Paths::Fixed { path }, Meet::Pod) => path / ups,
            (Paths::Fixed { path }, Meet::Top) => path,
            (Paths::Hashed { .. }, meet) => {
                let paths = if matches!(meet, Meet::Pod) { ways } else { ways * ups };
                let hosts = u64::from(self.host) << 48 | u64::from(peer) << 32;
                let ports = u64::from(self.port(egress)) << 16 | u64::from(port);
                let hash = SplitMix64::new(self.salt ^ hosts ^ ports).next_u64();
                (hash % u64::from(paths)) as u16
            }
        }
    }

    /// The egress that a packet to `port` of this host arrived on.
    pub(super) fn arrival(&self, packet: &Packet, port: u16) -> u16 {
        match (self.paths, self.meet(packet.source)) {
            (Paths::Hashed { .. }, _) => port.saturating_sub(PORT),
            (Paths::Explicit, Meet::Leaf) | (Paths::Fixed { .. }, _) => 0,
            (Paths::Explicit, Meet::Pod) => packet.path * self.shape.ups.max(1),
            (Paths::Explicit, Meet::Top) => packet.path,
        }
    }

    fn meet(&self, peer: u16) -> Meet {
        let leaf = |host| host / self.shape.hosts_per_leaf;
        let own = leaf(self.host);
        let other = leaf(peer);
        if own == other {
            return Meet::Leaf;
        }
        let pod = |leaf| leaf / self.shape.leaves_per_pod;
        if self.shape.ups > 0 && pod(own) == pod(other) { Meet::Pod } else { Meet::Top }
    }
}

impl PathResolver for HostPaths {
    fn paths(&self, peer: SocketAddr, _ports: u16) -> Vec<Via> {
        let Some(host) = wire::host(peer.ip()) else {
            return Vec::new();
        };
        let step = match (self.paths, self.meet(host)) {
            (Paths::Hashed { .. } | Paths::Fixed { .. }, _) | (Paths::Explicit, Meet::Top) => 1,
            (Paths::Explicit, Meet::Pod) => self.shape.ups,
            (Paths::Explicit, Meet::Leaf) => self.paths.egresses(&self.shape),
        };
        let egresses = (0..self.paths.egresses(&self.shape)).step_by(step.into());
        egresses.map(|egress| Via { egress, local: None, remote: peer }).collect()
    }

    fn regenerate(&self, peer: SocketAddr, _ports: u16, generation: u32) -> Vec<Via> {
        let Paths::Hashed { ports } = self.paths else { return Vec::new() };
        let first = if generation.is_multiple_of(2) { 0 } else { ports };
        let egresses = first..first + ports;
        egresses.map(|egress| Via { egress, local: None, remote: peer }).collect()
    }

    /// All egresses: a path order covers the whole fabric, and pairs of nearby hosts leave gaps in it.
    fn slots(&self, peer: SocketAddr, _ports: u16) -> Vec<Via> {
        let egresses = 0..self.paths.egresses(&self.shape);
        egresses.map(|egress| Via { egress, local: None, remote: peer }).collect()
    }

    fn naming(&self, address: SocketAddr) -> Naming {
        let ports = PORT..=self.port(2 * self.paths.egresses(&self.shape) - 1);
        let is_own = address.ip() == wire::address(self.host) && ports.contains(&address.port());
        if is_own { Naming::Own } else { Naming::Foreign }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn egresses(map: &HostPaths, peer: u16) -> Vec<u16> {
        let vias = map.paths(wire::socket(peer, PORT), 1);
        vias.iter().map(|via| via.egress).collect()
    }

    #[test]
    fn explicit_egresses_are_the_paths_between_each_pair() {
        // 2 hosts a leaf, 2 leaves a pod, 2 aggregation switches with 2 cores each.
        let map = HostPaths::new(Paths::Explicit, Shape::fat_tree(4, 1), 0, 0);
        assert_eq!(egresses(&map, 1), [0]);
        assert_eq!(egresses(&map, 2), [0, 2]);
        assert_eq!(egresses(&map, 15), [0, 1, 2, 3]);
        let paths = |peer| egresses(&map, peer).iter().map(|&e| map.path(e, peer, PORT)).collect();
        let near: Vec<u16> = paths(2);
        let far: Vec<u16> = paths(15);
        assert_eq!((near, far), (vec![0, 1], vec![0, 1, 2, 3]));
        for (source, path, egress) in [(1, 0, 0), (2, 1, 2), (15, 3, 3)] {
            let packet = Packet { source, path, ..Packet::default() };
            assert_eq!(map.arrival(&packet, PORT), egress, "from {source}");
        }
    }

    #[test]
    fn hashed_ports_use_all_paths() {
        let hashed = Paths::Hashed { ports: 64 };
        let map = HostPaths::new(hashed, Shape::leaf_spine(2, 2, 4), 0, 7);
        let path = |egress| map.path(egress, 3, PORT);
        let used: std::collections::BTreeSet<u16> = (0..64).map(path).collect();
        assert_eq!(used.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(map.arrival(&Packet::default(), map.port(9)), 9);
    }
}
