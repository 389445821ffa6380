//! Errors and outcomes, sorted by who is to blame.
//!
//! [`StartError`], [`Rejection`] and [`Indeterminate`] are exhaustive: a driver of the protocol must
//! decide what each reason means to its callers, so a new variant must not compile unnoticed.
//!
//! The text of an error includes its cause, which [`source`](core::error::Error::source) therefore does
//! not return again.

use crate::code::CodeNameError;
use crate::config::{ConfigError, KeyError};
use crate::id::PathId;
use crate::path::{OrderError, ShapeError};
use crate::wire::{Arrivals, RejectReason};
use core::time::Duration;
use std::io;

/// Why a message was not queued. Nothing was sent.
// `r#source`: thiserror would make a field `source` the error's source, although the text of this
// error already includes that of the source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The message is longer than the configuration allows.
    #[error("message of {len} bytes is too long: `max_message` leaves room for {max} bytes")]
    TooLarge {
        /// Bytes in the message, without the header of a request or response.
        len: usize,
        /// The limit: `max_message`, less that header.
        max: usize,
    },
    /// The limit on messages or bytes in flight is reached, and the message must not wait, or too many
    /// others wait: try again when a message has ended.
    #[error("{messages} messages and connects ({bytes} bytes) are under way: wait until one ends")]
    Full {
        /// Messages and connects under way.
        messages: usize,
        /// The bytes of these messages.
        bytes: usize,
    },
    /// The limit on calls in flight is reached, and the call must not wait, or the line is full.
    #[error("{calls} calls are in flight; wait until one ends, or raise `memory`")]
    TooManyCalls {
        /// Calls in flight.
        calls: usize,
    },
    /// The path map has no path to the peer, the two addresses are of different families, or the
    /// port is 0.
    #[error("there is no path to {0}")]
    NoPath(std::net::SocketAddr),
    /// The peer is behind an address translator (NAT), and there is no session with it any more.
    #[error("{0} is behind an address translator, and its session has ended: it must send first")]
    Gone(std::net::SocketAddr),
    /// The configured order does not fit the number of paths to the peer.
    #[error("the paths to {peer} cannot be put in order: {source}")]
    Order {
        /// The peer.
        peer: std::net::SocketAddr,
        /// The number of paths to the peer, and the number that the order expects.
        r#source: OrderError,
    },
    /// The endpoint is closing.
    #[error("this endpoint is closing")]
    Closing,
    /// An option of the message is out of range.
    #[error(transparent)]
    Option(#[from] ConfigError),
    /// The endpoint has sent 2^48 messages.
    #[error("this endpoint has used up its message ids: start another")]
    OutOfIds,
}

/// Errors of the settings and texts that an application gives.
macro_rules! invalid_input {
    ($($error:ty)*) => {$(
        impl From<$error> for io::Error {
            /// The kind is [`io::ErrorKind::InvalidInput`]. The error is in [`io::Error::get_ref`].
            fn from(error: $error) -> Self {
                Self::new(io::ErrorKind::InvalidInput, error)
            }
        }
    )*};
}

invalid_input! { CodeNameError ConfigError KeyError OrderError ShapeError }

/// Why this host did not send packets. Neither the peer nor the network is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// No interface is up, none has the source address, or there is no route to the peer.
    #[error("no interface, address or route leads to the peer")]
    Unreachable,
    /// This host's firewall rejects the packets.
    #[error("the local firewall rejects them")]
    Denied,
    /// The address is a broadcast address, or a route or the security policy of this host prohibits
    /// packets to it (EACCES).
    #[error("the address is a broadcast address, or a route or policy prohibits packets to it")]
    Prohibited,
    /// The peer cannot be reached from the address that the endpoint is bound to, such as 127.0.0.1
    /// (EINVAL).
    #[error("the peer cannot be reached from the address that the endpoint is bound to")]
    WrongSource,
    /// The send buffers or queues of this host are full, for example because its link has no carrier.
    #[error("the send buffers or queues of this host are full; check its link")]
    NoBuffer,
    /// The packets exceed the MTU of the interface.
    #[error("they exceed the MTU of the interface")]
    TooLarge,
    /// Anything else.
    #[error("the operating system reported another error")]
    Other,
}

/// How a send ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The message is in the receiver's application queue, exactly once and byte for byte.
    Delivered(Receipt),
    /// The message was not delivered and never will be.
    Rejected(Rejection),
    /// The message may have been delivered, or not.
    Unknown(Indeterminate),
}

/// Why a message was certainly not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Rejection {
    /// The receiver rejected it.
    #[error(transparent)]
    ByPeer(RejectReason),
    /// No session was opened before the deadline: no endpoint is there, the keys differ, or no packet
    /// gets through.
    #[error("no endpoint with this key answered before the deadline")]
    NoAnswer,
    /// As [`NoAnswer`](Self::NoAnswer), but an endpoint with the same key answered that it speaks
    /// another version of the protocol.
    #[error("the peer speaks version {theirs} of the protocol, and this endpoint version {ours}")]
    OtherVersion {
        /// The version that this endpoint speaks.
        ours: u8,
        /// The newest version that the peer speaks.
        theirs: u8,
    },
    /// Of a connect or a call: nothing listens at this address, as its host reports.
    #[error("nothing listens at {0}, as its host reports")]
    PortClosed(std::net::SocketAddr),
    /// No session was opened before the deadline, though an endpoint with the same key has
    /// answered. Most likely it does not accept this address as its own (`known_as`).
    #[error(
        "an endpoint with this key answered but did not accept the handshake: it may not know this \
         address as its own"
    )]
    NotAccepted,
    /// As [`NoAnswer`](Self::NoAnswer), and the last packets to the peer did not leave this host.
    #[error(
        "no endpoint with this key answered before the deadline, and this host could not send the \
         last packets: {0}"
    )]
    Local(LocalError),
    /// A session was open, but the rate limit or other messages delayed this one past its deadline,
    /// there was no capacity for it before, or its deadline was zero.
    #[error("no packet of the message was sent before its deadline")]
    NotStarted,
    /// This endpoint closed while it waited for capacity.
    #[error("this endpoint closed before the message was started")]
    Closing,
    /// It was cancelled before its first packet was sent.
    #[error("the message was cancelled before its first packet was sent")]
    Cancelled,
}

/// Why it is not known whether a message was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Indeterminate {
    /// No STOP came before the deadline.
    #[error("no STOP came before the deadline")]
    Deadline,
    /// As [`Deadline`](Self::Deadline), and the receiver was full when it last answered: its
    /// application does not take messages, or not fast enough.
    #[error("no STOP came before the deadline: the receiver was full when it last answered")]
    Busy,
    /// As [`Deadline`](Self::Deadline), and the last packets to the peer did not leave this host.
    #[error("no STOP came before the deadline, and this host could not send the last packets: {0}")]
    Local(LocalError),
    /// As [`Deadline`](Self::Deadline), and packets of this many bytes do not reach the peer, though
    /// shorter ones do: the MTU of the path is below what is supported.
    #[error(
        "no STOP came before the deadline: packets of {0} bytes do not reach the peer, and short ones do: \
         the MTU of the path may be smaller"
    )]
    Mtu(usize),
    /// The receiver restarted, forgot the session, or was replaced by another endpoint on its port
    /// while the message was under way.
    #[error("the receiver restarted, or was replaced, while the message was under way")]
    PeerRestarted,
    /// Of a call: nothing was heard from the peer, which may have the request, for about a minute, or its
    /// port is closed.
    #[error("the peer has not answered for a minute, or nothing listens at its port any more")]
    PeerGone,
    /// It was cancelled after packets had been sent.
    #[error("the message was cancelled while it was under way")]
    Cancelled,
}

/// Why a call has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// The request was not delivered, and never will be.
    Rejected(Rejection),
    /// The request may or may not have been delivered.
    Unknown(Indeterminate),
    /// The callee has the request, but no response arrived before the deadline.
    Deadline,
    /// The callee's application has dropped the request.
    Unanswered,
    /// The callee's application is overloaded, and has not acted on the request.
    Overloaded,
}

/// The cost and latency of a delivered message.
///
/// Only SYMBOL packets of this message count here; handshakes and answers are in the endpoint's
/// counters.
///
/// # Example
///
/// ```
/// # use cloudburst_core::error::Receipt;
/// # use cloudburst_core::id::PathId;
/// fn log(receipt: &Receipt) {
///     let Receipt { bytes, packets, waited, completed_in, .. } = receipt;
///     println!("{bytes} bytes in {packets} packets, {completed_in:?} after {waited:?}");
///     println!("{:.2} packets for each that was needed", receipt.redundancy());
///     println!("{} on path 0, {:?} in all", receipt.arrived_on(PathId(0)), receipt.total());
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Receipt {
    /// Bytes in the message.
    pub bytes: usize,
    /// Blocks that the message was cut into.
    pub blocks: usize,
    /// Source symbols in all blocks: the packets that a loss-free link needs.
    pub source_symbols: usize,
    /// Packets sent for the message until its STOP arrived.
    pub packets: usize,
    /// Symbols known to have arrived on each path, as of the receiver's last answer. A path without
    /// arrivals has no entry.
    pub arrivals: Vec<Arrivals>,
    /// The time from when the endpoint accepted the message to its first packet on the wire: waiting for
    /// capacity ([`Limits`](crate::config::Limits)), for a session, for other messages, for the rate.
    /// Measured by the driver's clock, to the nanosecond.
    pub waited: Duration,
    /// The time from the first packet to STOP: the message completion time (MCT) of the paper, plus
    /// the one-way delay of the STOP. Measured by the driver's clock, to the nanosecond.
    pub completed_in: Duration,
}

impl Receipt {
    /// Returns the packets sent per source symbol (sent/original in Table 14), at least 1.0 on a
    /// loss-free link. It is the inverse of the message's effective coding rate.
    pub fn redundancy(&self) -> f64 {
        self.packets as f64 / self.source_symbols.max(1) as f64
    }

    /// Returns the time from when the endpoint accepted the message to STOP: the sum of
    /// [`waited`](Self::waited) and [`completed_in`](Self::completed_in).
    pub fn total(&self) -> Duration {
        self.waited.saturating_add(self.completed_in)
    }

    /// Returns how many symbols are known to have arrived on `path`; saturates at 65,535.
    pub fn arrived_on(&self, path: PathId) -> u16 {
        self.arrivals.iter().find(|on| on.path == path).map_or(0, |on| on.count)
    }
}
