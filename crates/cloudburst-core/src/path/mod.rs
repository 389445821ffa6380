//! Which symbol takes which path, and when. Knows no sockets and no packets.
//!
//! A path is a number; a [`PathMap`] says how a packet gets onto it. [`PathSet`] keeps the paths
//! to one peer, visits them in turn and counts; [`Pacer`] spaces rounds of them as Algorithm 1
//! says.

mod pacer;
mod set;

pub use pacer::Pacer;
pub use set::{PathSet, PathStats};

use std::net::SocketAddr;

/// How a packet gets onto a path: a lane of this host, and an address to send to.
///
/// A lane is a number that the owner of the sockets understands: a socket, or a socket with a
/// flow label or an outer header. The core only hands it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Via {
    /// The lane to send on, or that a packet came in on.
    pub lane: u16,
    /// The address to send to, or that a packet came from.
    pub remote: SocketAddr,
}

/// Which paths lead to a peer.
pub trait PathMap: Send {
    /// The paths to `peer`, in order; the position is the path's number. Empty: unreachable.
    fn paths(&self, peer: SocketAddr) -> Vec<Via>;
}

/// Paths that differ in the lane alone: an ECMP pool of source ports is one.
#[derive(Clone, Copy, Debug)]
pub struct Lanes(
    /// How many lanes there are.
    pub u16,
);

impl PathMap for Lanes {
    fn paths(&self, peer: SocketAddr) -> Vec<Via> {
        (0..self.0).map(|lane| Via { lane, remote: peer }).collect()
    }
}
