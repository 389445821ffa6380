//! Events by which an endpoint reports its work to a recorder, message by message and train by
//! train.

use crate::error::{Indeterminate, Outcome, Rejection};
use crate::id::{MessageId, PathId};
use crate::path::PathStats;
use crate::wire::{RejectReason, Report, Verdict};
use core::fmt::Debug;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

/// Records what an endpoint does. See [`Transceiver::observe`](super::Transceiver::observe).
///
/// It is called under the lock of the engine, on the threads that handle packets, so it must not
/// block.
pub trait Observer: Debug + Send + Sync {
    /// Called at the moment when `event` happens.
    fn observe(&self, event: Observation);
}

/// An event at an endpoint. Information from peers is authentic.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
// Plain numbers in order, which `tracing` does not offer: it formats fields by name and has no
// bound.
pub enum Observation {
    /// A session is in use from now on.
    SessionOpened {
        /// The peer.
        peer: SocketAddr,
        /// Whether this end sends the messages in it.
        sends: bool,
    },
    /// A message begins: this end accepted it for sending, or its first symbol arrived.
    MessageStarted {
        /// The peer.
        peer: SocketAddr,
        /// The id that the sender gave the message.
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
        /// The number of symbols.
        packets: usize,
        /// Whether they are sent because no answer has arrived within the RTO.
        retry: bool,
    },
    /// A probe has left: a packet without a symbol that requests a report.
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
    /// A receiver's report was sent or received by this end.
    Report {
        /// The peer.
        peer: SocketAddr,
        /// The message.
        message: MessageId,
        /// The block of the message.
        block: u32,
        /// What it says.
        kind: ReportKind,
        /// Whether this end sends the message, and so received the report.
        sends: bool,
    },
    /// More packets on a path are known to be lost. A negative number means that some were only
    /// late.
    Lost {
        /// The peer.
        peer: SocketAddr,
        /// The path.
        path: PathId,
        /// The change in the number of lost packets.
        packets: i64,
    },
    /// A path has been degraded to a trickle, or has recovered.
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
    /// The packets to a peer are longer or shorter from now on: the MTU of the path is another one, or
    /// better known.
    MtuChanged {
        /// The peer.
        peer: SocketAddr,
        /// Bytes of the longest IP packets.
        mtu: usize,
    },
    /// A send has ended.
    SendEnded {
        /// The peer.
        peer: SocketAddr,
        /// The message.
        message: MessageId,
        /// How it ended.
        end: SendEnd,
    },
    /// A message was put into the application's queue.
    Received {
        /// The peer.
        peer: SocketAddr,
        /// The message.
        message: MessageId,
        /// The time from its first symbol to the one that completed it.
        took: Duration,
    },
}

/// The statement of a report about a block or its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportKind {
    /// STOP: the block is decoded.
    StopBlock,
    /// STOP: the message is delivered.
    StopMessage,
    /// NACK: at least this many more symbols are needed.
    Nack(u32),
    /// PULL: this many symbols may be sent in total, besides those that are sent unscheduled.
    Pull(u32),
    /// There is no capacity at present.
    Busy,
    /// The message will never be delivered.
    Reject(RejectReason),
    /// The part of the message that had arrived is forgotten.
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
        /// The time from when the message was accepted to STOP.
        took: Duration,
    },
    /// The message was not delivered.
    Rejected(Rejection),
    /// The message may have been delivered.
    Unknown(Indeterminate),
}

/// The observer of one half, if there is one.
pub(super) type Observing = Option<Arc<dyn Observer>>;

/// Passes the result of `event` to the observer, if there is one.
#[inline]
pub(super) fn emit(observer: &Observing, event: impl FnOnce() -> Observation) {
    if let Some(observer) = observer {
        observer.observe(event());
    }
}

impl<A> From<&Verdict<A>> for ReportKind {
    fn from(verdict: &Verdict<A>) -> Self {
        match *verdict {
            Verdict::BlockDone { .. } => Self::StopBlock,
            Verdict::Delivered { .. } => Self::StopMessage,
            Verdict::Nack { needed, .. } => Self::Nack(needed.into()),
            Verdict::Pull { credit, .. } => Self::Pull(credit),
            Verdict::Busy | Verdict::Held => Self::Busy,
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

/// Reports to the observer, if there is one, the reports that leave for `peer`.
#[inline]
pub(super) fn emit_reports<'a, A: 'a>(
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
                kind: ReportKind::from(&answer.verdict),
                sends: false,
            });
        }
    }
}

/// The state of each path whose changes are reported to observers: lost packets, and whether it is
/// degraded.
pub(super) fn path_states(paths: &[PathStats]) -> Vec<(u64, bool)> {
    paths.iter().map(|path| (path.lost, path.degraded)).collect()
}

/// Reports to the observer, if there is one, what has changed on the paths to `peer`.
pub(super) fn emit_path_changes(
    observer: &Observing,
    peer: SocketAddr,
    before: &[(u64, bool)],
    paths: &[PathStats],
) {
    let Some(observer) = observer else { return };
    for (number, (&(lost, was_degraded), path)) in before.iter().zip(paths).enumerate() {
        let packets = path.lost.wrapping_sub(lost) as i64;
        let degraded = path.degraded;
        let path = PathId(number as u16);
        if packets != 0 {
            observer.observe(Observation::Lost { peer, path, packets });
        }
        if degraded != was_degraded {
            observer.observe(Observation::PathState { peer, path, degraded });
        }
    }
}
