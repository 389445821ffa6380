//! Verdicts: whether an endpoint's report about a send is true.

use crate::ledger::Sent;
use cloudburst_core::error::{Indeterminate, Outcome, Receipt, Rejection, SendError};
use cloudburst_core::path::is_alias;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::RejectReason;
use core::time::Duration;
use std::net::SocketAddr;

/// The minimum time without a packet after which a peer forgets a session. Until then, a peer that
/// has not restarted does not seem to have.
const FORGETFUL_AFTER: Duration = Duration::from_secs(10);

/// Facts when a send ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) now: Instant,
    /// When the peer last received a packet of the sender, if it ever did.
    pub(crate) contact: Option<Instant>,
    /// Whether the peer has restarted before, or has no room for another session, which looks
    /// alike, or whether a host that got its packets instead may have said that it knows no session.
    pub(crate) peer_replaced: bool,
    /// Whether the peer has closed before, in one of its lives.
    pub(crate) peer_closed: bool,
    /// The longest message that the peer accepts.
    pub(crate) peer_max: usize,
}

/// Checks that an endpoint that accepts messages of up to `max` bytes, and may be closed, refuses
/// one of `len` bytes to `peer` for a true reason.
///
/// # Panics
///
/// If it does not.
pub(crate) fn check_refusal(
    error: &SendError,
    peer: SocketAddr,
    (len, max): (usize, usize),
    closed: bool,
) {
    match *error {
        SendError::TooLarge { .. } => assert!(len > max, "{error}: {len} bytes"),
        SendError::Full { messages, .. } => assert!(messages > 0, "it waits for nothing: {error}"),
        SendError::Closing => assert!(closed, "{error}"),
        // All that it knew of the peer was its session.
        SendError::Gone(gone) => assert!(gone == peer && is_alias(&gone), "{error}"),
        ref other => panic!("there is no cause for it: {other}"),
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
            assert!(sent.arrived, "reported as delivered: {sent:?}");
            check_receipt(sent, receipt);
        }
        Outcome::Rejected(rejection) => {
            assert!(!sent.arrived, "{rejection:?}, and it was delivered: {sent:?}");
            check_rejection(sent, *rejection, facts);
        }
        Outcome::Unknown(reason) => check_indeterminate(sent, *reason, facts),
    }
}

fn check_receipt(sent: &Sent, receipt: &Receipt) {
    let Receipt { bytes, blocks, source_symbols, packets, ref arrivals, .. } = *receipt;
    assert_eq!(bytes, sent.bytes.len());
    assert_eq!(blocks, source_symbols.div_ceil(128));
    let cap = source_symbols * sent.max_redundancy + blocks * 256;
    assert!(packets >= source_symbols && (packets <= cap || sent.capless), "{receipt:?}");
    let arrived: usize = arrivals.iter().map(|on| usize::from(on.count)).sum();
    assert!(arrived <= packets, "{receipt:?}");
}

fn check_rejection(sent: &Sent, rejection: Rejection, facts: Facts) {
    match rejection {
        Rejection::ByPeer(RejectReason::TooLarge) => {
            assert!(sent.bytes.len() > facts.peer_max, "{sent:?}");
        }
        Rejection::ByPeer(RejectReason::Closing) => assert!(facts.peer_closed, "{sent:?}"),
        Rejection::NoAnswer | Rejection::NotAccepted | Rejection::NotStarted => {
            assert!(sent.deadline <= facts.now, "too early: {sent:?}");
        }
        Rejection::Cancelled => {}
        // The tag reveals damage; all hosts run the same code and send what they intend to.
        other => panic!("nobody said so: {other:?}: {sent:?}"),
    }
}

fn check_indeterminate(sent: &Sent, reason: Indeterminate, facts: Facts) {
    match reason {
        Indeterminate::Deadline => assert!(sent.deadline <= facts.now, "too early: {sent:?}"),
        Indeterminate::Busy => {
            assert!(sent.deadline <= facts.now && sent.capless, "it never was: {sent:?}");
        }
        Indeterminate::PeerRestarted => {
            let since = |contact| facts.now.saturating_since(contact);
            let forgotten = facts.contact.is_some_and(|contact| since(contact) >= FORGETFUL_AFTER);
            assert!(facts.peer_replaced || forgotten, "it did not: {sent:?}");
        }
        Indeterminate::Cancelled => {}
        other => panic!("nobody said so: {other:?}: {sent:?}"),
    }
}
