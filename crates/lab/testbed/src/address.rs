//! The addresses of nodes. They are the same in every fabric, because each is a separate network.

use crate::topology::{Node, Topology};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns the address of a host, `10.1.LEAF.HOST`; of a leaf, `10.2.0.LEAF`; or of a spine, to which
/// bounced packets go, `10.3.0.SPINE`.
pub(crate) fn v4(topology: &Topology, node: Node) -> Ipv4Addr {
    match node {
        Node::Host(host) => Ipv4Addr::new(10, 1, topology.leaf_of(host) as u8, host as u8),
        Node::Leaf(leaf) => Ipv4Addr::new(10, 2, 0, leaf as u8),
        Node::Spine(spine) => Ipv4Addr::new(10, 3, 0, spine as u8),
    }
}

/// Returns the IPv6 address of a node, in `fd00:cb:KIND::/48`.
pub(crate) fn v6(topology: &Topology, node: Node) -> Ipv6Addr {
    let (kind, leaf, index) = match node {
        Node::Host(host) => (1, topology.leaf_of(host), host),
        Node::Leaf(leaf) => (2, 0, leaf),
        Node::Spine(spine) => (3, 0, spine),
    };
    Ipv6Addr::new(0xfd00, 0xcb, kind, leaf, 0, 0, 0, index)
}

/// Returns path ID `number` of `spine` (XPath): an address of `host` that is reached only through that
/// spine.
pub(crate) fn path_v4(topology: &Topology, host: u16, (spine, number): (u16, u16)) -> Ipv4Addr {
    let third = topology.leaf_of(host) + 64 * (number - 1);
    Ipv4Addr::new(10, 100 + spine as u8, third as u8, host as u8)
}

/// Returns the IPv6 counterpart of [`path_v4`].
pub(crate) fn path_v6(topology: &Topology, host: u16, (spine, number): (u16, u16)) -> Ipv6Addr {
    let leaf = topology.leaf_of(host);
    Ipv6Addr::new(0xfd00, 0xcb, 0x100 + spine, leaf, 0, 0, number - 1, host)
}

/// Returns the hardware address of the port of `node` towards `neighbour`.
pub(crate) fn mac(node: Node, neighbour: Node) -> [u8; 6] {
    let pair = |node| match node {
        Node::Host(index) => (1, index as u8),
        Node::Leaf(index) => (2, index as u8),
        Node::Spine(index) => (3, index as u8),
    };
    let (kind, index) = pair(node);
    let (far_kind, far_index) = pair(neighbour);
    [2, kind, index, far_kind, far_index, 0]
}

/// Returns the hardware address in the format of `ip`.
pub(crate) fn mac_text(node: Node, neighbour: Node) -> String {
    mac(node, neighbour).map(|byte| format!("{byte:02x}")).join(":")
}

/// Returns an IPv6 next hop on the link to `node`: only a name for the neighbour entry, never resolved.
pub(crate) fn link_local(node: Node) -> Ipv6Addr {
    let (kind, index) = match node {
        Node::Host(index) => (1, index),
        Node::Leaf(index) => (2, index),
        Node::Spine(index) => (3, index),
    };
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xcb, kind, index)
}
