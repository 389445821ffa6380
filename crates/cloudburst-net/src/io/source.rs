//! The local address that packets arrive at, and the one that they leave from.
//!
//! By default, the system answers from the address that it would pick for a packet of its own. On a host with
//! several addresses, that need not be the address that the peer sent to, and translators and firewalls drop
//! answers from another. Therefore, sockets that are not bound to a single address learn the destination of
//! each packet, and set the source of each answer.

use nix::libc;
use nix::sys::socket::{ControlMessage, ControlMessageOwned};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The source of packets, in the form for IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// A socket for each address would need no control message, but would have to follow the addresses
// of the host, and multiply the ports.
pub(super) enum Source {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

impl Source {
    /// `local`, for packets to `remote`. As with marks, IPv4 packets need the control message of IPv4, even
    /// on sockets for both families.
    pub(super) fn new(local: Option<IpAddr>, remote: SocketAddr) -> Option<Self> {
        match (local?, remote) {
            (IpAddr::V4(ip), SocketAddr::V4(_)) => {
                let [any, spec_dst] =
                    [0, u32::from_ne_bytes(ip.octets())].map(|s_addr| libc::in_addr { s_addr });
                Some(Self::V4(libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: spec_dst,
                    ipi_addr: any,
                }))
            }
            (IpAddr::V6(ip), SocketAddr::V6(_)) => Some(Self::V6(libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: ip.octets() },
                ipi6_ifindex: 0,
            })),
            _ => None,
        }
    }

    pub(super) const fn control(&self) -> ControlMessage<'_> {
        match self {
            Self::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            Self::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        }
    }
}

/// The address to answer from, if `control` has it. No packet leaves from a multicast or broadcast address.
pub(super) fn destination(control: &ControlMessageOwned) -> Option<IpAddr> {
    let ip = match control {
        // If the packet was a broadcast, this is the address of the interface.
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            IpAddr::from(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()))
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            Ipv6Addr::from(info.ipi6_addr.s6_addr).to_canonical()
        }
        _ => return None,
    };
    let broadcast = ip == Ipv4Addr::BROADCAST;
    (!ip.is_unspecified() && !ip.is_multicast() && !broadcast).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported_v4(ip: &str) -> Option<IpAddr> {
        let Some(Source::V4(info)) = Source::new(ip.parse().ok(), ([10, 0, 0, 1], 1).into()) else {
            unreachable!()
        };
        destination(&ControlMessageOwned::Ipv4PacketInfo(info))
    }

    fn reported_v6(ip: &str) -> Option<IpAddr> {
        let s6_addr = ip.parse::<Ipv6Addr>().unwrap().octets();
        let ipi6_addr = libc::in6_addr { s6_addr };
        let info = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 };
        destination(&ControlMessageOwned::Ipv6PacketInfo(info))
    }

    #[test]
    fn answers_leave_only_from_unicast_addresses() {
        for ip in ["10.0.0.2", "127.0.0.1"] {
            assert_eq!(reported_v4(ip), ip.parse().ok());
            assert_eq!(
                reported_v6(&format!("::ffff:{ip}")),
                ip.parse().ok(),
                "to a socket for both"
            );
        }
        for ip in ["2001:db8::7", "fe80::1", "::1"] {
            assert_eq!(reported_v6(ip), ip.parse().ok());
        }
        for ip in ["224.0.0.1", "239.1.2.3", "255.255.255.255", "0.0.0.0"] {
            assert_eq!((reported_v4(ip), reported_v6(&format!("::ffff:{ip}"))), (None, None));
        }
        for ip in ["ff02::1", "ff0e::7", "::"] {
            assert_eq!(reported_v6(ip), None);
        }
    }
}
