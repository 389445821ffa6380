//! Which symbol takes which path, and when. Knows no sockets and no packets.
//!
//! A path is a number; a [`PathMap`] says how a packet gets onto it. [`PathSet`] keeps the paths
//! to one peer, visits them in an [`Order`] and counts; [`Pacer`] spaces rounds of them as
//! Algorithm 1 says.
//!
//! # Orders
//!
//! The orders are those of the DRB paper (section 3.1.2). In a Fat-tree of four ports, where paths
//! 0 and 1 share the uplink A of the sender's TOR, and 2 and 3 its uplink B:
//!
//! ```text
//!               paths              uplinks
//!   rrb         0 1 2 3 0 1 2 3    A A B B A A B B
//!   drb:2x2     0 2 1 3 0 2 1 3    A B A B A B A B
//!   rb          drawn              drawn
//! ```
//!
//! Digit reversal counts turns in a number system with a digit for each layer of switches, and lets
//! the digit that changes with every turn choose the uplink of the TOR, the next digit that of the
//! switch above. So each link of layer i is taken exactly every f1 f2 ... fi turns (Theorem 2),
//! where fj are the ways up at layer j, and whatever the start. It must know how the paths share
//! links, which is a [`Shape`]; where they share none below the spines, as in a leaf-spine, it is
//! round robin.
//!
//! What takes a turn is a run of packets (`Config::run`): these distances are between runs, and
//! between packets only if `run` is 1.
//!
//! # Health
//!
//! A path whose packets go missing while those sent later on others arrive is *thinned*: most of
//! its turns pass to the next path in the order, and now and then one packet probes it. The first
//! packet that is known to have arrived on it gives it all of its turns back. See [`PathSet`].

mod order;
mod pacer;
mod sequence;
mod set;
mod shape;

pub use order::{Order, OrderError};
pub use pacer::Pacer;
pub use sequence::Sequence;
pub use set::{PathSet, PathStats, Turn};
pub use shape::{MAX_SHAPE_PATHS, Shape};

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

    /// The lanes of this host, which are numbered from 0: HELLO_ACKs may leave by any of them.
    fn lanes(&self) -> u16 {
        1
    }
}

/// The lane of a HELLO_ACK: every other time the one that its cause came in by, which
/// firewalls expect; else another, since all ways back by that one may be dead. Which, follows from
/// `turn`, but not in a rhythm, which might be that of the causes.
pub(crate) const fn answer_lane(arrived: u16, lanes: u16, turn: u64) -> u16 {
    let mixed = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if lanes < 2 || mixed >> 63 != 1 {
        return arrived;
    }
    let others = lanes as u64 - 1;
    ((arrived as u64 + 1 + (mixed >> 40) % others) % lanes as u64) as u16
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

    fn lanes(&self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_answers_go_back_by_the_lane_asked_and_half_by_all_others() {
        let mut taken = [0; 4];
        (0..1_000).for_each(|turn| taken[usize::from(answer_lane(2, 4, turn))] += 1);
        assert!((450..550).contains(&taken[2]), "{taken:?}");
        assert!([0, 1, 3].iter().all(|&lane| taken[lane] > 100), "{taken:?}");
        // The first, which decides about the time of most handshakes.
        assert_eq!(answer_lane(2, 4, 0), 2);
        assert!((0..10).all(|turn| answer_lane(5, 1, turn) == 5 && answer_lane(5, 0, turn) == 5));
    }
}
