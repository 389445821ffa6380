//! UDP sockets behind the core's [`PacketIo`](cloudburst_core::burst::PacketIo).
//!
//! An egress is a socket or, for outgoing packets, a flow label or an outer header of packets that egress 0
//! sends. Egress 0 has the address that peers send to. The next egresses have the ports right after it, if
//! messages are taken there as well; the other sockets have ports that the system picks, and exist so that
//! switches hash their packets onto other paths. The last ones are the reserve, for peers that do not answer.
//!
//! The caller may supply the sockets that take messages, already bound; all others are opened here.
//!
//! With `reuse_port`, the address that peers send to is that of one more socket, which takes
//! handshakes; egress 0 then has a port that the system picks.
//!
//! IPv6 sockets take only IPv6, except that those for `[::]` take IPv4 as well. IPv4 addresses in
//! [`Via`](cloudburst_core::path::Via) are always canonical: the mapped form (`::ffff:a.b.c.d`) does not leave
//! this module.
//!
//! | file | role |
//! |---|---|
//! | `udp` | [`UdpIo`]: all of these together |
//! | `config` | which sockets to open |
//! | `sockets`, `socket`, `ports` | all sockets; one socket and its options; consecutive ports |
//! | `egresses` | the numbers of egresses |
//! | `send`, `encapsulate`, `loss` | sending batches; encapsulation; datagrams that the system refuses |
//! | `receive`, `poller` | receiving batches; waiting for them, and ending such waits |
//! | `unreachable` | ICMP "port unreachable", from the error queues |
//! | `changes` | changes of this host's addresses and interfaces |
//! | `filter` | system calls that a seccomp filter may refuse |
//! | `link_speed`, `route_mtu` | the speed of a link and the MTU of a route that the system reports |
//! | `source` | the local address that packets arrive at or leave from |
//! | `marks` | DSCP and ECN of outgoing and arriving packets |
//! | `counters` | the counters of all of these |

mod changes;
mod config;
mod counters;
mod egresses;
mod encapsulate;
mod filter;
pub(crate) mod link_speed;
mod loss;
mod marks;
mod poller;
mod ports;
mod receive;
mod route_mtu;
mod send;
mod socket;
mod sockets;
mod source;
mod udp;
mod unreachable;

pub use config::UdpConfig;
pub use counters::{EcnCounts, IoCounters, RefusedDatagrams};
pub(crate) use egresses::EgressNumbers;
pub(crate) use encapsulate::OUTER_LEN;
pub use poller::Ready;
pub(crate) use route_mtu::Routes;
pub use socket::GrantedBuffers;
pub(crate) use socket::canonical;
pub use udp::UdpIo;
