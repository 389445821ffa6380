//! What the state machines give out: packets for the wire, and events for the application.

use super::{CallId, Marking, RequestId};
use crate::error::{CallFailure, Outcome, Rejection};
use crate::id::{ConnectId, MessageId};
use crate::path::Via;
use crate::wire::Role;
use bytes::Bytes;
use std::net::SocketAddr;

/// The contents of a batch of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Symbols of messages to one peer, or a probe that follows them.
    Symbols {
        /// The number of trains that the sender has sent, this one included.
        train: u64,
    },
    /// A HELLO or OPEN to a peer.
    Handshake(SocketAddr),
    /// A HELLO that checks a peer in its session: its address, the path's MTU, or that it is there.
    Check {
        /// The peer.
        peer: SocketAddr,
        /// Identifies the check.
        nonce: u64,
    },
    /// Answers to symbols and to handshakes.
    Answers,
}

/// Datagrams to put on the wire. The caller's buffer holds them, at `segment_size` bytes each; the
/// last one may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// What the datagrams contain.
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

/// An event for the application.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Another message of this role is in the application's queue: see
    /// [`Transceiver::recv`](super::Transceiver::recv) and
    /// [`Transceiver::recv_request`](super::Transceiver::recv_request).
    Readable(Role),
    /// A send ended. Sends of requests and responses are included; callers can ignore them.
    Ended(MessageId, Outcome),
    /// A connect ended: the session with the peer is ready for use, or was not established.
    Connected(ConnectId, Result<(), Rejection>),
    /// A call ended.
    Answered(CallId, Result<Bytes, CallFailure>),
    /// The caller of a request that the application has taken no longer waits: it has withdrawn the
    /// request, or its deadline has passed.
    Withdrawn(RequestId),
}
