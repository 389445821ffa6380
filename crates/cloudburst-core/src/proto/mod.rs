//! The state machines: [`Sender`], [`Receiver`], and [`Endpoint`], which is both.
//!
//! Here, and only here, codes, paths and packets meet. Nothing in this module reads a clock,
//! owns a socket or blocks. Whoever drives an [`Endpoint`] follows this contract:
//!
//! 1. Hand in **one** input: [`Endpoint::send`], [`Endpoint::cancel`], [`Endpoint::release`],
//!    [`Endpoint::handle_datagram`] or [`Endpoint::handle_timeout`].
//! 2. Drain the outputs: call [`Endpoint::poll_transmit`] until it returns `None`, putting each
//!    batch on the wire, then [`Endpoint::poll_event`] until it returns `None`. Of a batch that the
//!    host does not take, tell [`Endpoint::not_sent`].
//! 3. Wait until [`Endpoint::poll_timeout`], or for the next input, whichever comes first. When
//!    the moment has come, that is the next input: go to 1.
//!
//! Transmit buffers belong to the caller. One [`Transmit`] holds one or more datagrams of equal
//! size for one path, so that a batch is one system call. The last datagram may be shorter, so an
//! answer that waits can leave with symbols for the same peer: [`Receiver::poll_passenger`].
//!
//! Threads that want to encode and decode at the same time [`split`](Endpoint::split) the
//! endpoint and drive both halves; what one half must tell the other are its `Opened` and
//! `Confirmed` events.

mod endpoint;
mod layout;
mod limits;
mod receive;
mod send;
mod session;
mod stats;
mod timers;

pub(crate) use endpoint::is_for_receiver;
pub use endpoint::{Counters, Endpoint, Event, Latencies};
pub use layout::Layout;
pub use receive::{Message, Receiver, ReceiverCounters, ReceiverEvent};
pub use send::{SendOptions, Sender, SenderCounters, SenderEvent};
pub use session::{Identity, Peering};
pub(crate) use stats::merge as merge_peers;
pub use stats::{PeerStats, ReceivedFrom, SentTo};

use crate::id::MessageId;
use crate::path::Via;
use std::net::SocketAddr;

/// What a batch of datagrams is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Symbols of a message.
    Symbols(MessageId),
    /// A HELLO to a peer.
    Hello(SocketAddr),
    /// What a receiver says.
    Answers,
}

/// Datagrams to put on the wire: those in the caller's buffer, cut into `segment_size` bytes each,
/// but for the last, which may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// What is in them.
    pub contents: Contents,
    /// The lane to send on and the address to send to.
    pub via: Via,
    /// Bytes in each datagram but the last.
    pub segment_size: usize,
    /// Bytes in the buffer.
    pub len: usize,
    /// Whether the datagrams are marked ECT(0) instead of Not-ECT (RFC 3168, section 5). Never
    /// unless [`Config::aeolus`](crate::config::Config::aeolus) is set.
    pub ect: bool,
}
