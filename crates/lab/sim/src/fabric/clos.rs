//! A Clos network: its ports, and its routes, which are arithmetic on the numbers of hosts.

use super::{Link, Port, Shape, TopologyError};
use crate::engine::{Packet, byte_time};
use crate::queue::Discipline;
use cloudburst_netem::{ConfigError, LinkConfig, Loss};

/// A Clos network: its ports and routes.
#[derive(Debug)]
pub struct Clos {
    pub(super) shape: Shape,
    ports: Vec<Port>,
    /// The leaf of each host.
    pub(super) leaf_of: Vec<u16>,
    /// The pod of each leaf.
    pub(super) pod_of: Vec<u16>,
    /// Whether packets between leaves of a pod turn around below the cores.
    has_short_cuts: bool,
    /// The first port of each kind. The ports of hosts, and those of leaves to hosts, precede all of these.
    pub(super) leaf_ups: usize,
    pub(super) agg_downs: usize,
    pub(super) agg_ups: usize,
    pub(super) top_downs: usize,
    /// Paths withdrawn from ECMP.
    withdrawn: Vec<u16>,
}

impl Clos {
    /// A network with `edge` links between hosts and leaves and `core` links between switches. Given a link, `nic`
    /// makes the queue of a host's port, and `queue` that of a switch port.
    ///
    /// # Errors
    ///
    /// [`TopologyError`]: the first invalid field.
    pub fn new(
        shape: Shape,
        edge: Link,
        core: Link,
        nic: impl FnMut(Link) -> Discipline,
        mut queue: impl FnMut(Link) -> Discipline,
    ) -> Result<Self, TopologyError> {
        Self::with_switches(shape, edge, core, nic, |_, link| queue(link))
    }

    /// As [`new`](Self::new), but `queue` also gets the number of the switch. Leaves come first, then aggregation
    /// switches, then cores or spines.
    ///
    /// # Errors
    ///
    /// [`TopologyError`]: the first invalid field.
    pub fn with_switches(
        shape: Shape,
        edge: Link,
        core: Link,
        mut nic: impl FnMut(Link) -> Discipline,
        mut queue: impl FnMut(usize, Link) -> Discipline,
    ) -> Result<Self, TopologyError> {
        shape.check()?;
        edge.check()?;
        core.check()?;
        let hosts = shape.hosts();
        let leaves = shape.leaves();
        let ways = usize::from(shape.ways);
        let ups = usize::from(shape.ups);
        let pods = usize::from(shape.pods);
        let hosts_per_leaf = usize::from(shape.hosts_per_leaf);
        let leaves_per_pod = usize::from(shape.leaves_per_pod);
        let aggs = if shape.layers() == 3 { pods * ways } else { 0 };
        // Spines have a port for each leaf, cores one for each pod.
        let (tops, top_ports) = match shape.layers() {
            1 => (0, 0),
            2 => (ways, leaves),
            _ => (ways * ups, pods),
        };
        let mut ports = Vec::new();
        ports.extend((0..hosts).map(|_| Port::new(edge, nic(edge))));
        ports.extend((0..hosts).map(|host| Port::new(edge, queue(host / hosts_per_leaf, edge))));
        // Adds the ports of `switches` switches in one direction. `first` is the number of the first switch.
        let mut add = |first, switches, ports_each| {
            let begin = ports.len();
            for switch in first..first + switches {
                ports.extend((0..ports_each).map(|_| Port::new(core, queue(switch, core))));
            }
            begin
        };
        let leaf_ups = add(0, leaves, ways);
        let agg_downs = add(leaves, aggs, leaves_per_pod);
        let agg_ups = add(leaves, aggs, ups);
        let top_downs = add(leaves + aggs, tops, top_ports);
        let leaf_of = (0..hosts).map(|host| (host / hosts_per_leaf) as u16);
        let pod_of = (0..leaves).map(|leaf| (leaf / leaves_per_pod) as u16);
        Ok(Self {
            shape,
            ports,
            leaf_of: leaf_of.collect(),
            pod_of: pod_of.collect(),
            has_short_cuts: true,
            leaf_ups,
            agg_downs,
            agg_ups,
            top_downs,
            withdrawn: Vec::new(),
        })
    }

    /// Sends all packets between leaves over the cores, even those that stay in a pod: bouncing switches are
    /// cores (DRB paper, 3.1.1).
    #[must_use]
    pub fn over_cores(self) -> Self {
        Self { has_short_cuts: false, ..self }
    }

    /// The dimensions of the network.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The leaf of a host.
    #[inline]
    pub fn leaf(&self, host: u16) -> u16 {
        self.leaf_of[usize::from(host)]
    }

    /// The number of paths from one host to another.
    pub fn paths(&self, source: u16, destination: u16) -> u16 {
        let from = self.leaf(source);
        let to = self.leaf(destination);
        if from == to {
            1
        } else if self.shape.ups == 0
            || self.has_short_cuts && self.pod_of[usize::from(from)] == self.pod_of[usize::from(to)]
        {
            self.shape.ways
        } else {
            self.shape.ways * self.shape.ups
        }
    }

    /// The egress port of a packet after [`Packet::hop`] links; `None` at its destination.
    #[inline]
    pub(crate) fn route(&self, packet: &Packet) -> Option<usize> {
        let hosts = self.leaf_of.len();
        let to = usize::from(packet.destination);
        if packet.hop == 0 {
            return Some(usize::from(packet.source));
        }
        let from_leaf = usize::from(self.leaf_of[usize::from(packet.source)]);
        let to_leaf = usize::from(self.leaf_of[to]);
        if from_leaf == to_leaf {
            return (packet.hop == 1).then_some(hosts + to);
        }
        let ways = usize::from(self.shape.ways);
        let ups = usize::from(self.shape.ups);
        let path = usize::from(packet.path);
        if ups == 0 {
            return match packet.hop {
                1 => Some(self.leaf_ups + from_leaf * ways + path),
                2 => Some(self.top_downs + path * self.shape.leaves() + to_leaf),
                3 => Some(hosts + to),
                _ => None,
            };
        }
        let from_pod = usize::from(self.pod_of[from_leaf]);
        let to_pod = usize::from(self.pod_of[to_leaf]);
        let leaves = usize::from(self.shape.leaves_per_pod);
        if from_pod == to_pod && self.has_short_cuts {
            return match packet.hop {
                1 => Some(self.leaf_ups + from_leaf * ways + path),
                2 => {
                    let leaf = to_leaf - to_pod * leaves;
                    Some(self.agg_downs + (to_pod * ways + path) * leaves + leaf)
                }
                3 => Some(hosts + to),
                _ => None,
            };
        }
        let way = path / ups;
        let up = path % ups;
        match packet.hop {
            1 => Some(self.leaf_ups + from_leaf * ways + way),
            2 => Some(self.agg_ups + (from_pod * ways + way) * ups + up),
            3 => Some(self.top_downs + path * usize::from(self.shape.pods) + to_pod),
            4 => {
                let leaf = to_leaf - to_pod * leaves;
                Some(self.agg_downs + (to_pod * ways + way) * leaves + leaf)
            }
            5 => Some(hosts + to),
            _ => None,
        }
    }

    /// All ports.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    #[inline]
    pub(crate) fn port_mut(&mut self, port: usize) -> &mut Port {
        &mut self.ports[port]
    }

    /// The egress ports of packets after `hop` links between the most distant hosts: 0 for the ports of hosts, 1
    /// for those of leaves upwards (to hosts, at a single switch), and so on to those of leaves to hosts.
    pub fn ports_of_hop(&self, hop: usize) -> core::ops::Range<usize> {
        let hosts = self.leaf_of.len();
        let ranges = [
            0..hosts,
            self.leaf_ups..self.agg_downs,
            self.agg_ups..self.top_downs,
            self.top_downs..self.ports.len(),
            self.agg_downs..self.agg_ups,
            hosts..2 * hosts,
        ];
        let order: &[usize] = match self.shape.layers() {
            1 => &[0, 5],
            2 => &[0, 1, 3, 5],
            _ => &[0, 1, 2, 3, 4, 5],
        };
        order.get(hop).map_or(0..0, |&range| ranges[range].clone())
    }

    /// The port of leaf `leaf` towards switch `way` above it.
    pub fn up_port(&self, leaf: usize, way: usize) -> usize {
        self.leaf_ups + leaf * usize::from(self.shape.ways) + way
    }

    /// The port of spine `spine` towards `leaf`, where there are two layers.
    pub fn down_port(&self, spine: usize, leaf: usize) -> usize {
        self.top_downs + spine * self.shape.leaves() + leaf
    }

    /// Changes the rate and the delay of a port's link, and the rate of its queue. Packets already sent are not
    /// affected.
    ///
    /// # Errors
    ///
    /// [`TopologyError`]: an invalid rate.
    pub fn set_link(&mut self, port: usize, link: Link) -> Result<(), TopologyError> {
        link.check()?;
        let port = &mut self.ports[port];
        port.byte = byte_time(link.rate);
        port.delay = link.delay;
        if let Discipline::Scheduled(queue) = &mut port.queue {
            queue.set_rate(link.rate);
        }
        Ok(())
    }

    /// Makes a port's link lose packets at random. `seed` determines which.
    ///
    /// # Errors
    ///
    /// A value that is not a probability.
    pub fn set_loss(&mut self, port: usize, loss: Loss, seed: u64) -> Result<(), ConfigError> {
        LinkConfig { loss, ..LinkConfig::default() }.check()?;
        self.ports[port].set_loss(loss, seed);
        Ok(())
    }

    /// Withdraws a path from ECMP: no new flow is hashed onto it. Transports that choose paths themselves may still
    /// use it.
    pub fn withdraw(&mut self, path: u16) {
        self.withdrawn.push(path);
    }

    /// The ECMP paths from one host to another; all paths if all are withdrawn.
    pub(crate) fn hashed(&self, source: u16, destination: u16) -> Vec<u16> {
        let all = 0..self.paths(source, destination);
        let left: Vec<u16> = all.clone().filter(|path| !self.withdrawn.contains(path)).collect();
        if left.is_empty() { all.collect() } else { left }
    }

    /// Whether any path is withdrawn from ECMP.
    pub(crate) const fn has_withdrawn(&self) -> bool {
        !self.withdrawn.is_empty()
    }

    /// Takes a port's link down or up. A link that is down loses all packets; routing does not notice.
    pub fn set_up(&mut self, port: usize, is_up: bool) {
        self.ports[port].is_up = is_up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::US;
    use crate::queue::{Depth, DropTail};
    use std::collections::BTreeSet;

    fn clos(shape: Shape) -> Clos {
        let link = Link { rate: 10_000_000_000, delay: US };
        let queue = |_| DropTail::new(Depth::Unlimited).into();
        Clos::new(shape, link, link, queue, queue).unwrap()
    }

    /// The ports on a path.
    fn walk(clos: &Clos, source: u16, destination: u16, path: u16) -> Vec<usize> {
        let mut packet = Packet { source, destination, path, ..Packet::default() };
        let mut ports = Vec::new();
        while let Some(port) = clos.route(&packet) {
            ports.push(port);
            packet.hop += 1;
        }
        ports
    }

    #[test]
    fn every_path_of_every_pair_ends_at_the_destination_and_paths_differ() {
        let shapes = [
            Shape::one_switch(4),
            Shape::leaf_spine(2, 3, 4),
            Shape::fat_tree(4, 1),
            Shape::fat_tree(4, 2),
            Shape::vl2(2, 2, 6, 4),
        ];
        for shape in shapes {
            let clos = clos(shape);
            let hosts = shape.hosts() as u16;
            let mut used = BTreeSet::new();
            for (source, destination) in (0..hosts).flat_map(|s| (0..hosts).map(move |d| (s, d))) {
                if source == destination {
                    continue;
                }
                let mut ways = BTreeSet::new();
                for path in 0..clos.paths(source, destination) {
                    let ports = walk(&clos, source, destination, path);
                    assert_eq!(ports[0], usize::from(source));
                    let last = usize::from(hosts + destination);
                    assert_eq!(ports.last(), Some(&last));
                    used.extend(ports.iter().copied());
                    assert!(ways.insert(ports));
                }
            }
            // Every port is on some path.
            assert_eq!(used.len(), clos.ports().len(), "{shape:?}");
        }
    }

    #[test]
    fn packets_leave_by_the_ports_of_their_hop() {
        for shape in [Shape::one_switch(4), Shape::leaf_spine(2, 3, 4), Shape::fat_tree(4, 1)] {
            let clos = clos(shape);
            let last = shape.hosts() as u16 - 1;
            for (hop, port) in walk(&clos, 0, last, 0).into_iter().enumerate() {
                assert!(clos.ports_of_hop(hop).contains(&port), "{shape:?}, hop {hop}");
            }
        }
    }

    #[test]
    fn the_names_of_consecutive_links_join() {
        let shapes = [
            Shape::one_switch(4),
            Shape::leaf_spine(2, 3, 4),
            Shape::fat_tree(4, 2),
            Shape::vl2(2, 2, 6, 4),
        ];
        let both = |shape| [clos(shape), clos(shape).over_cores()];
        for clos in shapes.into_iter().flat_map(both) {
            let shape = *clos.shape();
            let hosts = shape.hosts() as u16;
            for (source, destination) in (0..hosts).flat_map(|s| (0..hosts).map(move |d| (s, d))) {
                if source == destination {
                    continue;
                }
                for path in 0..clos.paths(source, destination) {
                    let mut at = format!("host{source}");
                    for port in walk(&clos, source, destination, path) {
                        let name = clos.link_name(port);
                        let (from, to) = name.split_once("->").unwrap();
                        assert_eq!(from, at, "{shape:?}, port {port}");
                        at = to.into();
                    }
                    assert_eq!(at, format!("host{destination}"));
                }
            }
        }
        assert_eq!(clos(Shape::leaf_spine(2, 3, 4)).link_name(12 + 6), "leaf1->spine2");
    }

    #[test]
    fn packets_within_a_pod_cross_cores_only_without_short_cuts() {
        let clos = clos(Shape::fat_tree(4, 1));
        assert_eq!((clos.paths(0, 2), walk(&clos, 0, 2, 0).len()), (2, 4));
        let clos = clos.over_cores();
        assert_eq!((clos.paths(0, 2), walk(&clos, 0, 2, 0).len()), (4, 6));
        assert_eq!((clos.paths(0, 1), walk(&clos, 0, 1, 0).len()), (1, 2));
    }

    #[test]
    fn invalid_topologies_are_refused() {
        let link = Link { rate: 10_000_000_000, delay: US };
        let queue = |_: Link| -> Discipline { DropTail::new(Depth::Unlimited).into() };
        let refusals = [
            (Shape::one_switch(0), "topology: hosts per leaf: got 0, expected 1 or more"),
            (
                Shape::leaf_spine(4, 2, 0),
                "topology: switches above a leaf: got 0, expected 1 or more if there are several \
                 leaves",
            ),
            (Shape::fat_tree(128, 1), "topology: hosts: got 524288, expected 65535 or fewer"),
            (
                Shape::leaf_spine(1, 60_000, 60_000),
                "topology: links: got 3600060000, expected 1048576 or fewer",
            ),
        ];
        for (shape, line) in refusals {
            assert_eq!(Clos::new(shape, link, link, queue, queue).unwrap_err().to_string(), line);
        }
        let odd = Link { rate: 7, delay: US };
        let error = Clos::new(Shape::one_switch(2), odd, link, queue, queue).unwrap_err();
        assert!(error.to_string().starts_with("topology: rate: got 7, expected"), "{error}");
    }
}
