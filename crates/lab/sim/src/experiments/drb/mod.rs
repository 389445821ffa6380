//! The packet-level experiments of the DRB paper (CoNEXT 2013, section 5).
//!
//! | file | experiment | source |
//! |---|---|---|
//! | [`permutation`] | ECMP, RB, RRB and DRB under permutation traffic | 5.1, Figure 6 |
//! | [`probes`] | short flows under a load like that of a production trace | 5.2, Figure 7 |
//! | [`mptcp`] | MPTCP with 1 to 32 subflows | 5.3, Figure 8 |
//! | [`oversubscribed`] | an over-subscription of 2:1, with and without ECN | 5.5 |
//!
//! # Readings
//!
//! The paper leaves some details open. Where they matter, each reading is run:
//!
//! * *Window.* The text says 256 KB. With it, the sending host queues twice as much as a round trip carries, and
//!   round trips exceed 2 ms. Those of Figure 6 are below 1 ms, and throughput times round trip is about 64 KB for all
//!   schemes and both fabrics. This is the window of TCP without window scaling, 65,535 bytes, as that of NS3 was at the
//!   time. Schemes whose names end in `-64k` have that window, and the others 256 KB.
//! * *TCP.* The paper does not describe it. Here it has SACK, acknowledges every packet, and starts with a window of 10
//!   packets and without a handshake. Its minimum timeout is 200 ms, as in Linux and NS3, so that the 10 ms for which
//!   a receiver holds packets that are out of order cannot cause a timeout. In the short forms, a flow in a timeout
//!   is silent until the end. ECMP and MPTCP do not hold packets.
//! * *Throughput* counts the bytes of messages that arrive, without headers. Each host sends data and ACKs on one
//!   link, so no permutation can have more than 1460 / 1540 of the links' rate, which is 948 Mb/s.
//! * *The queueing delay of a hop* is the mean over all packets at this hop, including ACKs. Network latency is that of
//!   data packets only.
//! * *Bouncing.* All packets between racks go over a core, even within a pod (5.2).

mod fabric;
pub mod mptcp;
pub mod oversubscribed;
pub mod permutation;
pub mod probes;
mod show;
mod traffic;
