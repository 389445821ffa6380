//! The state machines: [`Transceiver`] and its parts.
//!
//! Codes, paths and packets meet only here. Nothing in this module reads a clock, owns a socket or
//! blocks. Every driver of an endpoint follows this contract, including the threads of
//! [`burst::Engine`](crate::burst::Engine):
//!
//! 1. Hand in **one** input: [`Transceiver::connect`], [`Transceiver::send`], [`Transceiver::call`],
//!    [`Transceiver::reply`], [`Transceiver::cancel_connect`], [`Transceiver::cancel`],
//!    [`Transceiver::cancel_call`], [`Transceiver::recv`], [`Transceiver::recv_request`],
//!    [`Transceiver::set_path_resolver`], [`Transceiver::close`], [`Transceiver::handle_datagram`],
//!    [`Transceiver::handle_refused`] or [`Transceiver::handle_timeout`].
//! 2. Call [`Transceiver::poll_event`] until it returns `None`. The application acts on each event;
//!    each of its actions is another input.
//! 3. Call [`Transceiver::poll_transmit`] until it returns `None`, and put each batch on the wire. If
//!    the host does not take a batch, call [`Transceiver::not_sent`]. While the application may still
//!    respond to what it has just received, a driver may call [`Transceiver::poll_symbols`] instead,
//!    and [`Transceiver::poll_transmit`] a little later.
//! 4. Wait until [`Transceiver::poll_timeout`], or for the next input, whichever comes first. When the
//!    timeout is due, hand in the datagrams that have arrived, and then the timeout: go to 1.
//!
//! The following holds for any order of inputs:
//!
//! - A message is in the application's queue before its STOP can leave, because the queue is part
//!   of the endpoint. [`Transceiver::recv`] takes messages from it and frees capacity.
//! - Once a datagram has been handed in, each half knows the peers that the other half has met
//!   through it.
//! - Answers leave with symbols for the same peer where they fit (a piggybacked ACK), and otherwise
//!   on their own after at most one batch of symbols. Answers to handshakes do not wait for
//!   symbols. While any are pending, the two kinds of answers alternate.
//!
//! Transmit buffers belong to the caller. One [`Transmit`] holds one or more datagrams of equal
//! size for one path, so that a batch is one system call; the last datagram may be shorter.

#[macro_use]
mod counters;

mod calls;
mod coupling;
mod fair_queue;
mod idle;
mod indexed;
mod layout;
mod limits;
mod marking;
mod observe;
mod output;
mod receive;
mod round_trip;
mod send;
mod session;
mod share;
mod stats;
mod steps;
mod transceiver;

pub use calls::{
    CallCounters, CallId, CallTable, IncomingRequest, Prepared, RequestId, Served, overload,
    response,
};
pub use layout::Layout;
pub(crate) use limits::MAX_BACKOFF;
pub use marking::{Class, Ecn, Marking};
pub use observe::{Observation, Observer, ReportKind, SendEnd};
pub use output::{Contents, Event, Transmit};
pub use receive::{Message, ReceiverCounters};
pub(crate) use receive::{Receiver, ReceiverEvent};
pub use send::{SendOptions, SenderCounters};
pub(crate) use send::{Sender, SenderEvent};
use session::{Departure, Finding, Identity};
pub use stats::{PeerStats, ReceivedFrom, SentTo};
pub use transceiver::{Latencies, Transceiver, TransceiverCounters};
