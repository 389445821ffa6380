//! A leaf-spine fabric of network namespaces, for testing transports.
//!
//! ```text
//!      s1        s2        s3        s4       spines   10.3.0.SPINE    decapsulate IP-in-IP
//!      | \       | \      / |       / |
//!      |  every leaf is joined to every spine          `uplink_rate`, `loss`
//!      | /       | /      \ |       \ |
//!      l1 ------ ... -------------- l2        leaves   10.2.0.LEAF     ECMP, hashed on ports
//!    / |  | \                     / |  | \             `rate`
//!  h1 h2  h3 h4                 h5 h6  h7 h8  hosts    10.1.LEAF.HOST, fd00:cb:1:LEAF::HOST
//!
//!  each port:   --+-- DSCP ----> tiny queue, N packets --+-- weighted round robin --> link
//!                 +-- others --> default queue ----------+
//! ```
//!
//! With [`Topology::low_dscps`], each port has several tiny queues, which it serves in order of
//! priority. With [`Topology::trim`] or [`Topology::selective`], tiny queues of switches trim packets, or
//! first drop packets that are not ECN-capable.
//!
//! Each host and switch is a namespace, each link a veth pair, each queue a `pfifo` under HTB, and
//! loss is by nftables on ingress. Functions that no queue of the kernel has are provided by a link of
//! `cloudburst-netem`, in a thread for each switch. A [`Topology`] describes a [`Fabric`]:
//!
//! ```no_run
//! use cloudburst_testbed::{Fabric, Failure, Node, Target, Topology};
//! use std::net::UdpSocket;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fabric = Fabric::up(&Topology { hosts: 4, ..Topology::default() })?;
//! let (from, to) = (fabric.host(1)?, fabric.host(4)?);
//! let receiver = to.run(|| UdpSocket::bind((to.v4(), 7000)))??;
//! let sender = from.run(|| UdpSocket::bind((from.v4(), 0)))??;
//! fabric.fail(Target::Node(Node::Spine(2)), Failure::Silent)?;
//! sender.send_to(b"through spine 3", (to.path_address(3)?, 7000))?;
//! for port in fabric.ports_of(Node::Spine(3))? {
//!     println!("{} to {}: {} packets", port.node, port.neighbour, port.default.sent);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Paths
//!
//! - **ECMP**: a leaf chooses the spine by a hash of addresses, protocol and ports; for IPv6, of
//!   the flow label too. Each leaf has its own seed, derived from [`Topology::seed`].
//! - **XPath**: [`Host::path_address`] is an address of the host that every other leaf reaches through
//!   one spine only: a /32 route, and a /128 for IPv6. With [`Topology::path_ids`], there are more
//!   of them for each spine.
//! - **Bouncing**: an IPv4 packet inside another one that is addressed to a spine
//!   ([`Fabric::addresses`]) goes to that spine, which decapsulates and forwards it.
//!
//! # Without switches
//!
//! [`Wire`] is two hosts on one wire; [`Gateway`] is clients and a server with a router between
//! them that translates addresses, or is a firewall; [`Star`] is any number of hosts around a router. They
//! leave nothing behind, even if the program is killed.
//!
//! # Limitations
//!
//! A link has no delay other than that of its rate and its queues, and the whole fabric shares this
//! machine's processors: scale rates and load together, and state the factor. A veth port reports
//! 10 Gb/s whatever its actual rate, so programs must be told the rate. Super-packets that a host sends
//! are segmented before they are queued, and packets are not coalesced on receipt.

mod address;
mod bounce;
mod capture;
mod cli;
mod counters;
mod emulated;
mod error;
mod fabric;
mod gateway;
mod namespace;
mod plan;
mod signals;
mod star;
mod state;
mod topology;
mod wire;

pub use capture::Capture;
pub use cli::main;
pub use counters::{Port, Queue};
pub use error::Error;
pub use fabric::{Fabric, Faults, Host, Removed, available};
pub use gateway::Gateway;
pub use namespace::Namespace;
pub use signals::interrupted;
pub use star::Star;
pub use state::Failure;
pub use topology::{Link, Node, Queues, Target, Topology, Trim, Weights};
pub use wire::{End, Wire};
