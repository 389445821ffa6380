//! The state machines: [`Endpoint`], and the parts that it is made of.
//!
//! Here, and only here, codes, paths and packets meet. Nothing in this module reads a clock,
//! owns a socket or blocks. Every driver of an endpoint follows this contract, the threads of
//! [`burst::Engine`](crate::burst::Engine) included:
//!
//! 1. Hand in **one** input: [`Endpoint::send`], [`Endpoint::call`], [`Endpoint::reply`],
//!    [`Endpoint::cancel`], [`Endpoint::hang_up`], [`Endpoint::recv`], [`Endpoint::recv_request`],
//!    [`Endpoint::handle_datagram`] or [`Endpoint::handle_timeout`].
//! 2. Call [`Endpoint::poll_event`] until it returns `None`, and let the application act on each
//!    event: what it does is another input.
//! 3. Call [`Endpoint::poll_transmit`] until it returns `None`, putting each batch on the wire. Of
//!    a batch that the host does not take, tell [`Endpoint::not_sent`]. While the application may
//!    be about to respond to what it has just got, a driver may call [`Endpoint::poll_symbols`]
//!    instead, and [`Endpoint::poll_transmit`] a little later.
//! 4. Wait until [`Endpoint::poll_timeout`], or for the next input, whichever comes first. When
//!    the moment has come, hand in the datagrams that are there, and then the timeout: go to 1.
//!
//! What holds in any order of inputs:
//!
//! - A message is in the application's queue before its STOP can leave, for the queue is a part of
//!   the endpoint. [`Endpoint::recv`] takes from it, and makes room in it.
//! - A peer that one half has met is known to the other before the datagram that told of it has
//!   been handed in.
//! - Answers to handshakes leave first. An answer leaves with symbols for the same peer where it
//!   fits (a piggybacked ACK), and by itself after one batch of symbols at the latest.
//!
//! Transmit buffers belong to the caller. One [`Transmit`] holds one or more datagrams of equal
//! size for one path, so that a batch is one system call; the last datagram may be shorter.

mod calls;
pub(crate) mod coupling;
mod endpoint;
mod layout;
mod limits;
mod marking;
mod receive;
mod send;
mod session;
mod stats;
mod timers;

pub use calls::{CallCounters, CallFailure, CallId, Calls, Prepared, Request, response};
pub use endpoint::{Counters, Endpoint, Event, Latencies};
pub use layout::Layout;
pub use marking::{Class, Ecn, Marking};
pub use receive::{Message, ReceiverCounters};
pub(crate) use receive::{Receiver, ReceiverEvent};
pub use send::{SendOptions, SenderCounters};
pub(crate) use send::{Sender, SenderEvent};
use session::Identity;
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
    /// The egress to send on and the address to send to.
    pub via: Via,
    /// Bytes in each datagram but the last.
    pub segment_size: usize,
    /// Bytes in the buffer.
    pub len: usize,
    /// The class and the ECN codepoint of the datagrams.
    pub marking: Marking,
}
