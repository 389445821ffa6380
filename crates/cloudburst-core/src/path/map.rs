//! How packets get onto the paths to a peer, and which addresses are this end's.

use std::net::{IpAddr, SocketAddr};

/// How a packet gets onto a path: an egress and an address of this host, and an address to send to.
///
/// An egress is a number that the owner of the sockets understands: a socket, or a socket with a
/// flow label or an outer header. The core only hands it back.
///
/// # Example
///
/// ```
/// # use cloudburst_core::path::Via;
/// let remote = "10.0.0.2:7000".parse()?;
/// let via = Via { egress: 3, local: None, remote }; // the fourth source port
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Via {
    /// The egress to send on, or that a packet came in on.
    pub egress: u16,
    /// The address of this host to send from, or that a packet was sent to. `None`: the owner of the
    /// sockets knows it without, or the system picks it.
    pub local: Option<IpAddr>,
    /// The address to send to, or that a packet came from.
    pub remote: SocketAddr,
}

impl Via {
    /// The same way, but from `local`.
    pub(crate) fn leaving_from(self, local: Option<IpAddr>) -> Self {
        Self { local, ..self }
    }
}

/// What an address is to an endpoint.
///
/// # Example
///
/// ```
/// # use cloudburst_core::path::Naming;
/// fn explain(naming: Naming) -> &'static str {
///     match naming {
///         Naming::Own => "an address of this host",
///         Naming::Translated => "an address that it is known as",
///         Naming::Foreign => "handshakes for this address are ignored: should it be in `known_as`?",
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Naming {
    /// An address of this host, at a UDP port of this endpoint.
    Own,
    /// An address that peers use for this endpoint, according to the application, because a device
    /// in between translates addresses.
    Translated,
    /// Neither: packets to it are meant for another endpoint.
    Foreign,
}

/// Which paths lead to a peer, and by which addresses peers know this end.
pub trait PathMap: Send + Sync {
    /// The paths to `peer`, in order, each once; the order is what [`Order`](super::Order) goes by.
    /// Empty: unreachable. They leave [`Via::local`] open: that is for the core to say.
    ///
    /// The peer takes messages at `ports` ports, as far as it has said so: that of `peer` and
    /// those right after it. One that has said nothing takes them at one.
    fn paths(&self, peer: SocketAddr, ports: u16) -> Vec<Via>;

    /// All that the order counts: those paths and, where some are not in use after a failure, the
    /// gaps that they leave. A digit reversal is of a whole fabric, whatever of it works.
    fn places(&self, peer: SocketAddr, ports: u16) -> Vec<Via> {
        self.paths(peer, ports)
    }

    /// Other paths to a peer, which replace [`paths`](Self::paths) when no packet on those seems to
    /// arrive: with hashed ports, all of them may lead over dead switches. `draw` counts from 1,
    /// and each draw may name other paths. Empty if there are none.
    fn redraw(&self, _peer: SocketAddr, _ports: u16, _draw: u32) -> Vec<Via> {
        Vec::new()
    }

    /// Bytes that packets have on the wire by `via` beyond their IP and UDP headers.
    fn overhead(&self, _via: Via) -> usize {
        0
    }

    /// What `address` is to this endpoint.
    ///
    /// The answer may change: addresses of a host come and go.
    fn naming(&self, address: SocketAddr) -> Naming;
}

/// Paths that differ in the egress alone: an ECMP pool of source ports is one.
///
/// For tests and simulators: it knows no addresses, and takes each for its own.
#[derive(Clone, Copy, Debug)]
pub struct Egresses(
    /// How many egresses there are.
    pub u16,
);

impl PathMap for Egresses {
    fn paths(&self, peer: SocketAddr, _ports: u16) -> Vec<Via> {
        (0..self.0).map(|egress| Via { egress, local: None, remote: peer }).collect()
    }

    fn naming(&self, _address: SocketAddr) -> Naming {
        Naming::Own
    }
}
