//! What an endpoint tells of its work, message by message and train by train, to whoever records it.

use crate::error::{Indeterminate, Outcome, Rejection};
use crate::id::{MessageId, PathId};
use crate::path::PathStats;
use crate::wire::{RejectReason, Report, Verdict};
use core::fmt::Debug;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

/// Records what an endpoint does. See [`Endpoint::observe`](super::Endpoint::observe).
///
/// It is called under the locks of the endpoint, on the threads that handle packets: it must not block.
pub trait Observer: Debug + Send + Sync {
    /// Something has happened, at this moment.
    fn observe(&self, event: Observation);
}

/// Something that has happened. What peers say is authentic.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Observation {
    /// A session is taken into use.
    SessionOpened {
        /// The peer.
        peer: SocketAddr,
        /// Whether this end sends the messages in it.
        sends: bool,
    },
    /// A message begins: this end accepted it, or its first symbol came.
    MessageStarted {
        /// The peer.
        peer: SocketAddr,
        /// The sender's name for the message.
        message: MessageId,
        /// Its length.
        bytes: usize,
        /// Whether this end sends it.
        sends: bool,
    },
    /// Symbols of one block have left, back to back on one path.
    TrainSent {
        /// The peer.
        peer: SocketAddr,
        /// The message.
        message: MessageId,
        /// The block of the message.
        block: u32,
        /// The path.
        path: PathId,
        /// The ESI of the first of them.
        first_symbol: u32,
        /// How many there are.
        packets: usize,
        /// They follow a silence.
        retry: bool,
    },
    /// A packet without a symbol has left, which requests a report.
    ProbeSent {
        /// The peer.
        peer: SocketAddr,
        /// The message.
        message: MessageId,
        /// The block of the message.
        block: u32,
        /// The path.
        path: PathId,
    },
    /// A report of a receiver has left this end, or come to it.
    Report {
        /// The peer.
        peer: SocketAddr,
        /// The message.
        message: MessageId,
        /// The block of the message.
        block: u32,
        /// The verdict that it carries.
        says: Said,
        /// Whether this end sends the message, and so received the report.
        sends: bool,
    },
    /// It is known of more packets on a path that they are lost; if negative, some were only late.
    Lost {
        /// The peer.
        peer: SocketAddr,
        /// The path.
        path: PathId,
        /// How many more.
        packets: i64,
    },
    /// A path is degraded to a trickle, or is not any more.
    PathState {
        /// The peer.
        peer: SocketAddr,
        /// The path.
        path: PathId,
        /// Whether it is degraded.
        degraded: bool,
    },
    /// The adaptive rate has changed.
    RateChanged {
        /// The rate of symbols from now on.
        bits_per_second: u64,
    },
    /// A send has ended.
    SendEnded {
        /// The peer.
        peer: SocketAddr,
        /// The message.
        message: MessageId,
        /// How.
        end: SendEnd,
    },
    /// A message was put into the application's queue.
    Received {
        /// The peer.
        peer: SocketAddr,
        /// The message.
        message: MessageId,
        /// From its first symbol to the one that made it whole.
        took: Duration,
    },
}

/// What a report says of a block or of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Said {
    /// STOP: the block is decoded.
    StopBlock,
    /// STOP: the message is delivered.
    StopMessage,
    /// NACK: at least so many more symbols are needed.
    Nack(u32),
    /// So many symbols may be sent in all, beside those that are sent unasked.
    Credit(u32),
    /// There is no room at present.
    Busy,
    /// The message will never be delivered.
    Reject(RejectReason),
    /// What had arrived of the message is forgotten.
    Forgotten,
}

/// How a send ended.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SendEnd {
    /// The receiver has the message.
    Delivered {
        /// Symbols sent.
        packets: usize,
        /// Symbols that a network without loss needs.
        needed: usize,
        /// From the call to STOP.
        took: Duration,
    },
    /// The message was not delivered.
    Rejected(Rejection),
    /// The message may have been delivered.
    Unknown(Indeterminate),
}

/// The observer of one half, if there is one.
pub(super) type Observing = Option<Arc<dyn Observer>>;

/// Tells the observer, if there is one, what `event` makes.
#[inline]
pub(super) fn tell(observer: &Observing, event: impl FnOnce() -> Observation) {
    if let Some(observer) = observer {
        observer.observe(event());
    }
}

impl<A> From<&Verdict<A>> for Said {
    fn from(verdict: &Verdict<A>) -> Self {
        match *verdict {
            Verdict::BlockDone { .. } => Self::StopBlock,
            Verdict::Delivered { .. } => Self::StopMessage,
            Verdict::Status { needed, .. } => Self::Nack(needed.into()),
            Verdict::Pull { credit, .. } => Self::Credit(credit),
            Verdict::Busy => Self::Busy,
            Verdict::Reject(reason) => Self::Reject(reason),
            Verdict::Forgotten => Self::Forgotten,
        }
    }
}

impl From<&Outcome> for SendEnd {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Delivered(receipt) => Self::Delivered {
                packets: receipt.packets,
                needed: receipt.source_symbols,
                took: receipt.total(),
            },
            Outcome::Rejected(rejection) => Self::Rejected(*rejection),
            Outcome::Unknown(reason) => Self::Unknown(*reason),
        }
    }
}

/// Tells the observer, if there is one, of reports that leave for `peer`.
#[inline]
pub(super) fn tell_reports<'a, A: 'a>(
    observer: &Observing,
    peer: SocketAddr,
    reports: impl IntoIterator<Item = &'a Report<A>>,
) {
    let Some(observer) = observer else { return };
    for report in reports {
        if let Report::Message(answer) = report {
            observer.observe(Observation::Report {
                peer,
                message: answer.message,
                block: answer.block,
                says: Said::from(&answer.verdict),
                sends: false,
            });
        }
    }
}

/// What an observer is told changes of, by path.
pub(super) fn path_states(paths: &[PathStats]) -> Vec<(u64, bool)> {
    paths.iter().map(|path| (path.lost, path.degraded)).collect()
}

/// Tells the observer, if there is one, what has changed on the paths to `peer`.
pub(super) fn tell_paths(
    observer: &Observing,
    peer: SocketAddr,
    before: &[(u64, bool)],
    paths: &[PathStats],
) {
    let Some(observer) = observer else { return };
    for (number, (&(lost, was_degraded), path)) in before.iter().zip(paths).enumerate() {
        let (packets, degraded) = (path.lost.wrapping_sub(lost) as i64, path.degraded);
        let path = PathId(number as u16);
        if packets != 0 {
            observer.observe(Observation::Lost { peer, path, packets });
        }
        if degraded != was_degraded {
            observer.observe(Observation::PathState { peer, path, degraded });
        }
    }
}
