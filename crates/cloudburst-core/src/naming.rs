//! Names of endpoints: which addresses belong to this one, and aliases of peers behind a translator.
//!
//! A peer behind an address translator is observed at an address that is not its own and that may
//! belong to another host, since an attacker on the path can forge it. It therefore gets a unique
//! *alias*: the observed address as IPv6, with a mark in `flowinfo` that is derived from its
//! incarnation. Only sockets use this field, and the bit that tells aliases from addresses has no
//! meaning for them (RFC 3493, section 3.3).

use crate::id::Incarnation;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// The relation of an address to an endpoint: one of these three, so it is not `#[non_exhaustive]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Naming {
    /// An address of this host, at a UDP port of this endpoint.
    Own,
    /// An address that peers use for this endpoint, according to the application, because a device
    /// on the path translates addresses.
    Translated,
    /// Neither: packets to it are meant for another endpoint.
    Foreign,
}

const MARK: u32 = 1 << 31;

/// Returns the alias of a peer observed at `observed`.
pub(crate) const fn alias(observed: SocketAddr, incarnation: Incarnation) -> SocketAddr {
    let (ip, scope) = match observed {
        SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
    };
    let [a, b, c, d, ..] = incarnation.0;
    // A type of its own would change every signature for peers that most users never meet: a reply
    // takes an alias as it takes any other address.
    let mark = MARK | u32::from_be_bytes([a, b, c, d]);
    SocketAddr::V6(SocketAddrV6::new(ip, observed.port(), mark, scope))
}

/// Returns whether `peer` is the alias of a peer behind an address translator, as in
/// [`Message::peer`].
///
/// Keep the value itself: its text is the address at which the peer was observed, without the mark,
/// and does not identify the peer.
///
/// [`Message::peer`]: crate::proto::Message::peer
pub const fn is_alias(peer: &SocketAddr) -> bool {
    matches!(peer, SocketAddr::V6(v6) if v6.flowinfo() & MARK != 0)
}

/// Returns the address at which a peer is observed, given its alias or address.
pub(crate) fn address_of(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V6(v6) if is_alias(&peer) => match v6.ip().to_canonical() {
            IpAddr::V4(ip) => SocketAddr::new(ip.into(), v6.port()),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, v6.port(), 0, v6.scope_id()).into(),
        },
        _ => peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INCARNATIONS: [Incarnation; 2] = [Incarnation([0; 16]), Incarnation([0xff; 16])];

    #[test]
    fn an_alias_is_unique_and_yields_the_address_that_was_observed() {
        for observed in ["192.0.2.7:80", "[2001:db8::7]:80", "[fe80::7%3]:80"] {
            let observed: SocketAddr = observed.parse().unwrap();
            assert!(!is_alias(&observed));
            assert_eq!(address_of(observed), observed);
            let names = INCARNATIONS.map(|incarnation| alias(observed, incarnation));
            assert_ne!(names[0], names[1]);
            for name in names {
                assert!(is_alias(&name));
                assert_ne!(name, observed);
                assert_eq!(address_of(name), observed);
            }
        }
    }

    #[test]
    fn flow_labels_and_traffic_classes_make_no_alias() {
        let labelled = SocketAddrV6::new("2001:db8::7".parse().unwrap(), 80, 0x0fff_ffff, 0);
        assert!(!is_alias(&labelled.into()));
    }
}
