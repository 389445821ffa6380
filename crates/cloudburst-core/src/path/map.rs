//! How packets reach the paths to a peer.

use crate::naming::Naming;
use std::net::{IpAddr, SocketAddr};

/// How a packet reaches a path: an egress and an address of this host, and an address to send to.
///
/// An egress is a number that only the owner of the sockets interprets: a socket, or a socket with a
/// flow label or an outer header. The core passes it through.
///
/// Drivers and path maps construct it, so it is not `#[non_exhaustive]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Via {
    /// The egress to send on, or on which a packet arrived.
    pub egress: u16,
    /// The address of this host to send from, or to which a packet was sent. `None`: the egress
    /// determines it, or the operating system chooses it.
    pub local: Option<IpAddr>,
    /// The address to send to, or from which a packet came.
    pub remote: SocketAddr,
}

impl Via {
    /// Returns the same route, but from `local`.
    pub(crate) fn leaving_from(self, local: Option<IpAddr>) -> Self {
        Self { local, ..self }
    }
}

/// The paths to each peer, and the addresses by which peers know this endpoint.
///
/// It is called under the lock of the engine, on the threads that handle packets, so it must not
/// block.
pub trait PathResolver: Send + Sync {
    /// Returns the paths to `peer`, each once, in the order that [`Order`](super::Order) relies on.
    /// Empty: the peer is unreachable. [`Via::local`] is `None`: the core fills it in.
    ///
    /// The peer accepts messages at `ports` ports: that of `peer` and those right after it. `ports`
    /// is 1 until the peer has announced its number.
    fn paths(&self, peer: SocketAddr, ports: u16) -> Vec<Via>;

    /// Returns all slots of the order: the paths in use, and those out of use after a failure, which
    /// leave gaps. Digit reversal covers the whole fabric, whichever parts of it work.
    fn slots(&self, peer: SocketAddr, ports: u16) -> Vec<Via> {
        self.paths(peer, ports)
    }

    /// Returns other paths to a peer, which replace [`paths`](Self::paths) when no packet on those
    /// seems to arrive: with hashed ports, all of them may cross dead switches. `generation`
    /// counts from 1, and each may have other paths. Empty if there are none.
    fn regenerate(&self, _peer: SocketAddr, _ports: u16, _generation: u32) -> Vec<Via> {
        Vec::new()
    }

    /// Returns the bytes that packets on `via` have on the wire beyond their IP and UDP headers.
    fn overhead(&self, _via: Via) -> usize {
        0
    }

    /// Returns the bytes of the longest IP packet that the interface and the route of `via` take, as
    /// far as the system knows. `None`: unknown, and no packet will have more than 1,500 bytes.
    ///
    /// It is asked when packets prove too long or longer ones are to be tried, so it may change.
    fn mtu(&self, _via: Via) -> Option<usize> {
        None
    }

    /// Returns the relation of `address` to this endpoint.
    ///
    /// The answer may change: addresses of a host come and go.
    fn naming(&self, address: SocketAddr) -> Naming;
}

/// A path map whose paths differ only in the egress, such as an ECMP pool of source ports.
///
/// For tests and simulators: it knows no addresses, and treats each as its own.
#[derive(Clone, Copy, Debug)]
pub struct Egresses(
    /// The number of egresses.
    pub u16,
);

impl PathResolver for Egresses {
    fn paths(&self, peer: SocketAddr, _ports: u16) -> Vec<Via> {
        (0..self.0).map(|egress| Via { egress, local: None, remote: peer }).collect()
    }

    fn naming(&self, _address: SocketAddr) -> Naming {
        Naming::Own
    }
}
