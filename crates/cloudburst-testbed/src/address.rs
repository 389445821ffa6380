//! Who has which address: the same in every fabric, as each is a network of its own.

use crate::topology::{Node, Topology};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A host's own address: `10.1.LEAF.HOST`. A leaf's: `10.2.0.LEAF`. A spine's, which is the one to
/// bounce off: `10.3.0.SPINE`.
pub(crate) fn v4(topology: &Topology, node: Node) -> Ipv4Addr {
    match node {
        Node::Host(host) => Ipv4Addr::new(10, 1, topology.leaf_of(host) as u8, host as u8),
        Node::Leaf(leaf) => Ipv4Addr::new(10, 2, 0, leaf as u8),
        Node::Spine(spine) => Ipv4Addr::new(10, 3, 0, spine as u8),
    }
}

/// The same in `fd00:cb:KIND::/48`.
pub(crate) fn v6(topology: &Topology, node: Node) -> Ipv6Addr {
    let (kind, leaf, index) = match node {
        Node::Host(host) => (1, topology.leaf_of(host), host),
        Node::Leaf(leaf) => (2, 0, leaf),
        Node::Spine(spine) => (3, 0, spine),
    };
    Ipv6Addr::new(0xfd00, 0xcb, kind, leaf, 0, 0, 0, index)
}

/// As many as the numbers of leaves leave room for in a byte.
pub(crate) const MAX_PATH_IDS: u16 = 3;

/// XPath: path ID `number` of `spine`, an address of `host` that is reached by way of it only.
pub(crate) fn path_v4(topology: &Topology, host: u16, (spine, number): (u16, u16)) -> Ipv4Addr {
    let third = topology.leaf_of(host) + 64 * (number - 1);
    Ipv4Addr::new(10, 100 + spine as u8, third as u8, host as u8)
}

/// The same for IPv6.
pub(crate) fn path_v6(topology: &Topology, host: u16, (spine, number): (u16, u16)) -> Ipv6Addr {
    let leaf = topology.leaf_of(host);
    Ipv6Addr::new(0xfd00, 0xcb, 0x100 + spine, leaf, 0, 0, number - 1, host)
}

/// The hardware address of the port of `node` towards `neighbour`.
pub(crate) fn mac(node: Node, neighbour: Node) -> [u8; 6] {
    let pair = |node| match node {
        Node::Host(index) => (1, index as u8),
        Node::Leaf(index) => (2, index as u8),
        Node::Spine(index) => (3, index as u8),
    };
    let ((kind, index), (far_kind, far_index)) = (pair(node), pair(neighbour));
    [2, kind, index, far_kind, far_index, 0]
}

/// The same as `ip` reads it.
pub(crate) fn mac_text(node: Node, neighbour: Node) -> String {
    mac(node, neighbour).map(|byte| format!("{byte:02x}")).join(":")
}

/// A next hop for IPv6, on the link to `node`: known by name only, never asked for.
pub(crate) fn link_local(node: Node) -> Ipv6Addr {
    let (kind, index) = match node {
        Node::Host(index) => (1, index),
        Node::Leaf(index) => (2, index),
        Node::Spine(index) => (3, index),
    };
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xcb, kind, index)
}
