//! Checks that what an endpoint reports about a send is true.

use super::messages::Sent;
use cloudburst_core::error::{Indeterminate, Outcome, Receipt, Rejection, StartError};
use cloudburst_core::naming::is_alias;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::RejectReason;
use core::time::Duration;
use std::net::SocketAddr;

/// The minimum time without a packet after which a peer forgets a session. Until then, a peer that
/// has not restarted does not look as if it had.
pub(super) const SESSION_IDLE: Duration = Duration::from_secs(10);

/// How long before its deadline a message may be given up for which its peer has no capacity.
const GIVE_UP_WITHIN: Duration = Duration::from_millis(200);

/// The facts at the end of a send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The time by the sender's clock.
    pub(crate) now: Instant,
    /// How long ago the peer last received a packet of the sender, if it ever did.
    pub(crate) contact: Option<Duration>,
    /// Whether the peer may seem to have restarted: it has, or it has forgotten the session while the
    /// sender's clock stood still, or it has no capacity for another session,
    /// or another host that got its packets may have answered that it knows no session, or the answers for
    /// one process of the sender reached another.
    pub(crate) peer_replaced: bool,
    /// Whether the peer has said that it was busy.
    pub(crate) peer_busy: bool,
    /// Whether the peer has been closed in one of its lives.
    pub(crate) peer_closed: bool,
    /// Whether the sender has been closed.
    pub(crate) closed: bool,
    /// The longest message that the peer accepts.
    pub(crate) peer_max: usize,
}

/// Checks that `error` is true of a message of `len` bytes to `peer`, refused by an endpoint that
/// accepts messages of up to `max` bytes and may be `closed`.
///
/// # Panics
///
/// If it is not.
pub(crate) fn check_refusal(
    error: &StartError,
    peer: SocketAddr,
    len: usize,
    max: usize,
    closed: bool,
) {
    match *error {
        StartError::TooLarge { .. } => assert!(len > max, "{error}: {len} bytes"),
        StartError::Full { messages, .. } => assert!(messages > 0, "no message is open: {error}"),
        StartError::Closing => assert!(closed, "{error}"),
        // The endpoint knew the peer only by its session.
        StartError::Gone(gone) => assert!(gone == peer && is_alias(&gone), "{error}"),
        ref other => panic!("refused without cause: {other}"),
    }
}

/// Checks that `outcome` is true of `sent`.
///
/// # Panics
///
/// If it is not.
pub(crate) fn check(sent: &Sent, outcome: &Outcome, facts: Facts) {
    match outcome {
        Outcome::Delivered(receipt) => {
            assert!(sent.arrived, "reported as delivered, but was not: {sent:?}");
            check_receipt(sent, receipt);
        }
        Outcome::Rejected(rejection) => {
            assert!(!sent.arrived, "reported as {rejection:?}, but was delivered: {sent:?}");
            check_rejection(sent, *rejection, facts);
        }
        Outcome::Unknown(reason) => check_indeterminate(sent, *reason, facts),
    }
}

fn check_receipt(sent: &Sent, receipt: &Receipt) {
    let Receipt { bytes, blocks, source_symbols, packets, ref arrivals, .. } = *receipt;
    assert_eq!(bytes, sent.bytes.len());
    assert_eq!(blocks, source_symbols.div_ceil(128));
    let cap = sent.packet_cap(source_symbols, receipt.completed_in);
    assert!(packets >= source_symbols && (packets <= cap || sent.uncapped), "{receipt:?}");
    let arrived: usize = arrivals.iter().map(|on| usize::from(on.count)).sum();
    assert!(arrived <= packets, "{receipt:?}");
}

fn check_rejection(sent: &Sent, rejection: Rejection, facts: Facts) {
    match rejection {
        Rejection::ByPeer(RejectReason::TooLarge) => {
            assert!(sent.bytes.len() > facts.peer_max, "{sent:?}");
        }
        Rejection::ByPeer(RejectReason::Busy) => {
            let given_up = sent.deadline - GIVE_UP_WITHIN;
            assert!(given_up <= facts.now, "too early: {sent:?}");
            assert!(facts.peer_busy, "the peer has not said so: {sent:?}");
        }
        Rejection::ByPeer(RejectReason::Closing) => assert!(facts.peer_closed, "{sent:?}"),
        Rejection::NoAnswer | Rejection::NotAccepted | Rejection::NotStarted => {
            assert!(sent.deadline <= facts.now, "too early: {sent:?}");
        }
        Rejection::Closing => assert!(facts.closed, "{sent:?}"),
        Rejection::Cancelled => {}
        // Damage is caught by the tag, and all hosts run the same code.
        other => panic!("rejected without cause: {other:?}: {sent:?}"),
    }
}

fn check_indeterminate(sent: &Sent, reason: Indeterminate, facts: Facts) {
    match reason {
        Indeterminate::Deadline | Indeterminate::Mtu(_) => {
            assert!(sent.deadline <= facts.now, "too early: {sent:?}")
        }
        // The BUSY may have answered an earlier message to the peer: then this one began with a probe.
        Indeterminate::Busy => {
            assert!(sent.deadline <= facts.now, "too early: {sent:?}");
            assert!(facts.peer_busy, "the peer has not said so: {sent:?}");
        }
        Indeterminate::PeerRestarted => {
            let forgotten = facts.contact.is_some_and(|ago| ago >= SESSION_IDLE);
            assert!(facts.peer_replaced || forgotten, "the peer did not restart: {sent:?}");
        }
        Indeterminate::Cancelled => {}
        Indeterminate::PeerGone => panic!("only calls end so: {sent:?}"),
        other => panic!("indeterminate without cause: {other:?}: {sent:?}"),
    }
}
