//! What addresses and prefixes can stand for.

use ipnet::IpNet;
use std::net::IpAddr;

/// Whether sockets bound to `bind` can send to `peer`. Both are canonical.
pub(crate) const fn reaches(bind: IpAddr, peer: IpAddr) -> bool {
    // Sockets on all IPv6 addresses take IPv4 as well.
    let both = bind.is_ipv6() && bind.is_unspecified();
    both || bind.is_ipv4() == peer.is_ipv4()
}

/// Whether the address can be that of a host.
pub(crate) fn is_of_a_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(ip) if ip.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || broadcast)
}

/// Whether the prefix is a single address.
pub(crate) fn is_host(net: &IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len()
}
