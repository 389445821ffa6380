//! Errors and outcomes, sorted by who is to blame.
//!
//! [`SendError`], [`Rejection`] and [`Indeterminate`] are exhaustive: whoever drives the protocol
//! decides what each reason means to its callers, and a new one must not pass unseen.

use crate::config::ConfigError;
use crate::id::PathId;
use crate::path::OrderError;
use crate::wire::{Arrivals, RejectReason};
use core::time::Duration;

/// Why a message was not queued. The caller is to blame, and nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Longer than the configuration allows.
    #[error("message of {len} bytes is larger than `max_message`, {max} bytes")]
    TooLarge {
        /// Bytes in the message.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The limits on messages or bytes under way are reached: try again when a message has ended.
    #[error(
        "{messages} messages and connects ({bytes} bytes) are waiting or under way: wait until one ends"
    )]
    Full {
        /// Messages and connects waiting or under way.
        messages: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// The path map knows no path to the peer.
    #[error("the path map has no path to {0}")]
    NoPath(std::net::SocketAddr),
    /// The peer is behind an address translator, and no session with it is left.
    #[error(
        "no session with {0} is left, and it is behind an address translator: it must send first"
    )]
    Gone(std::net::SocketAddr),
    /// The configured order is not for as many paths as lead to the peer.
    #[error("the paths to {peer} cannot be put in order: {source}")]
    Order {
        /// Where the paths lead.
        peer: std::net::SocketAddr,
        /// How many there are, and how many there should be.
        source: OrderError,
    },
    /// The endpoint is closing.
    #[error("this endpoint is closing")]
    Closing,
    /// An option of the message is out of its range.
    #[error(transparent)]
    Option(#[from] ConfigError),
    /// 2^48 messages were sent.
    #[error("this endpoint has used up its message ids: start another")]
    OutOfIds,
}

/// Why this host did not send packets. The peer and the network are not to blame.
///
/// # Example
///
/// ```
/// # use cloudburst_core::error::LocalError;
/// fn advise(error: LocalError) -> &'static str {
///     match error {
///         LocalError::Denied => "see the rules of this host's firewall",
///         LocalError::TooLarge => "lower `mtu`",
///         _ => "see `dmesg`",
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// No interface is up, or none has the address, or no route leads there.
    #[error("no interface, address or route of it leads to the peer")]
    Unreachable,
    /// This host's firewall.
    #[error("its firewall forbids it")]
    Denied,
    /// The address is that of all hosts of a network, or a route or the security policy of this host
    /// prohibits packets to it (EACCES).
    #[error("the address is a broadcast address, or a route or policy prohibits packets to it")]
    Prohibited,
    /// This host's buffers or queues were full.
    #[error("its buffers are full")]
    NoBuffer,
    /// The packets exceed the MTU of the way to the peer.
    #[error("they are larger than the path to the peer carries")]
    TooLarge,
    /// Anything else.
    #[error("its system reported another error")]
    Other,
}

/// How a send ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The receiver's application queue has the message, exactly once, byte for byte.
    Delivered(Receipt),
    /// The message was not delivered and never will be.
    Rejected(Rejection),
    /// The message may have been delivered, or not.
    Unknown(Indeterminate),
}

/// Why a message was certainly not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Rejection {
    /// The receiver said so.
    #[error(transparent)]
    ByPeer(RejectReason),
    /// No session was opened before the deadline: nobody is there, the keys differ, or no packet
    /// gets through.
    #[error("nobody who shares this key answered before the deadline")]
    NoAnswer,
    /// As [`NoAnswer`](Self::NoAnswer), and an endpoint with the same key speaks another version of
    /// the protocol there.
    #[error("the peer speaks version {theirs} of the protocol, and this end version {ours}")]
    OtherVersion {
        /// The version that this endpoint speaks.
        ours: u8,
        /// The newest version that the peer speaks.
        theirs: u8,
    },
    /// No session was opened before the deadline, though an endpoint with the same key has
    /// answered. Most likely, the address is not one of its own (`known_as`).
    #[error(
        "an endpoint with this key answered and did not accept the handshake: it may not know this \
         address as its own"
    )]
    NotAccepted,
    /// As [`NoAnswer`](Self::NoAnswer), and the last packets to the peer did not even leave this host.
    #[error(
        "nobody who shares this key answered before the deadline, and this host has not sent the \
         last packets: {0}"
    )]
    Local(#[source] LocalError),
    /// A session was open, but the rate or other messages kept this one from being sent before its
    /// deadline; or its deadline was zero.
    #[error("nothing of the message was sent before its deadline")]
    NotStarted,
    /// It was cancelled before its first packet.
    #[error("the message was cancelled before its first packet")]
    Cancelled,
}

/// Why it is not known whether a message was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Indeterminate {
    /// No STOP came before the deadline.
    #[error("no STOP came before the deadline")]
    Deadline,
    /// The same, and the receiver had no room when it last answered: its application does not take
    /// messages, or not fast enough.
    #[error("no STOP came before the deadline: the receiver had no room when it last answered")]
    Busy,
    /// The same, and the last packets to the peer did not even leave this host.
    #[error("no STOP came before the deadline, and this host has not sent the last packets: {0}")]
    Local(#[source] LocalError),
    /// The receiver restarted, or forgot the session, or another one on its port took its place,
    /// while the message was under way.
    #[error("the receiver restarted, or was replaced, while the message was under way")]
    PeerRestarted,
    /// It was cancelled after packets had been sent.
    #[error("the message was cancelled while it was under way")]
    Cancelled,
}

/// What a delivered message cost, and how long it took.
///
/// Packets here are SYMBOL packets of this message: handshakes and answers are in the counters.
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
    /// Blocks that it was cut into.
    pub blocks: usize,
    /// Source symbols in all blocks: the packets that a loss-free link needs.
    pub source_symbols: usize,
    /// Packets that were sent for it, until STOP came.
    pub packets: usize,
    /// Symbols known to have arrived on each path, as of the receiver's last answer. A path without
    /// arrivals has no entry.
    pub arrivals: Vec<Arrivals>,
    /// From the call to the first packet on the wire: waiting for a session, for other messages,
    /// for the rate. To the nanosecond, as the driver's clock was read.
    pub waited: Duration,
    /// From the first packet to STOP: the message completion time (MCT) of the paper, plus the
    /// one-way delay of the STOP. To the nanosecond, as the driver's clock was read.
    pub completed_in: Duration,
}

impl Receipt {
    /// Packets sent for each source symbol (Table 14's sent/original): 1.0 is what a loss-free link
    /// needs at least. The inverse of the coding rate that the message ended up with.
    pub fn redundancy(&self) -> f64 {
        self.packets as f64 / self.source_symbols.max(1) as f64
    }

    /// From the call to STOP: what the caller waited for. [`waited`](Self::waited) and
    /// [`completed_in`](Self::completed_in) together.
    pub fn total(&self) -> Duration {
        self.waited.saturating_add(self.completed_in)
    }

    /// Symbols known to have arrived on `path`; saturates at 65,535.
    pub fn arrived_on(&self, path: PathId) -> u16 {
        self.arrivals.iter().find(|on| on.path == path).map_or(0, |on| on.count)
    }
}
