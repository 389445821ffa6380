//! A handshake, from the initiator's side: what it is about, and which packets went where.

use crate::id::{Incarnation, PathId, SessionId};
use crate::proto::limits::HANDSHAKE_FOR;
use crate::time::Instant;
use crate::wire::handshake::{Initiation, Token};
use core::time::Duration;

/// A handshake under way.
#[derive(Debug)]
pub(in crate::proto) struct Opening {
    pub(in crate::proto) nonce: u64,
    /// Where its packets go.
    pub(in crate::proto) port: u16,
    /// The intended responder; `None` for any endpoint at the address.
    pub(in crate::proto) responder: Option<Incarnation>,
    /// The token that a responder has issued, and the OPEN that returns it.
    pub(in crate::proto) invitation: Option<Box<Invitation>>,
    /// The same for the opposite finding on whether this end's address is translated: RETRYs may
    /// disagree, and the responder may have answered either OPEN.
    pub(in crate::proto) other: Option<Box<Invitation>>,
    /// The newest version that the peer supports, if it does not support this one.
    pub(in crate::proto) other_version: Option<u8>,
    began_at: Instant,
    /// When the first OPEN was sent.
    opened_at: Option<Instant>,
    /// The path that the next packet takes regardless of the order, and the return path of its
    /// answer: both have worked.
    reply_on: Option<(PathId, u8)>,
    /// Packets sent.
    count: u8,
    /// For each path tried, when the last packet was sent on it and how many were.
    sent: Vec<(PathId, Instant, u32)>,
}

/// A token, and the OPEN that returns it.
#[derive(Debug)]
pub(in crate::proto) struct Invitation {
    pub(in crate::proto) token: Token,
    pub(in crate::proto) initiation: Initiation,
    /// The id of the session at this end.
    pub(in crate::proto) session: SessionId,
    /// Whether the responder sees this endpoint at an address that is none of its own.
    pub(in crate::proto) translated: bool,
}

impl Opening {
    /// A handshake with `responder`, or with any endpoint at the address, that begins at `now`.
    pub(in crate::proto) fn new(
        now: Instant,
        nonce: u64,
        port: u16,
        responder: Option<Incarnation>,
    ) -> Self {
        Self {
            nonce,
            port,
            responder,
            invitation: None,
            other: None,
            other_version: None,
            began_at: now,
            opened_at: None,
            reply_on: None,
            count: 0,
            sent: Vec::new(),
        }
    }

    /// When the first packet with this nonce was due.
    pub(in crate::proto) const fn began_at(&self) -> Instant {
        self.began_at
    }

    /// Whether an answer may be to a packet that is too old for it to show the responder's present
    /// state.
    pub(in crate::proto) fn is_outdated(&self, now: Instant) -> bool {
        now.saturating_since(self.began_at) > HANDSHAKE_FOR
    }

    /// Continues under another nonce: answers to earlier HELLOs are no longer accepted.
    pub(in crate::proto) fn renew(&mut self, now: Instant, nonce: u64) {
        self.nonce = nonce;
        self.began_at = now;
        self.opened_at = None;
        self.invitation = None;
        self.other = None;
        self.reply_on = None;
        self.sent.clear();
    }

    /// Handles a RETRY to the packet on `path`, which came by `return_path`: an OPEN leaves on that
    /// path at once.
    pub(in crate::proto) const fn on_retry(&mut self, path: PathId, return_path: u8) {
        self.reply_on = Some((path, return_path));
    }

    /// Takes the path and the return path of the next packet, if it answers a RETRY.
    pub(in crate::proto) const fn take_reply(&mut self) -> Option<(PathId, u8)> {
        self.reply_on.take()
    }

    /// Records that a packet is being sent on `path`. Returns how many were sent before.
    pub(in crate::proto) fn on_sent(&mut self, now: Instant, path: PathId) -> u8 {
        match self.sent.iter_mut().find(|(known, ..)| *known == path) {
            Some((_, at, times)) => {
                *at = now;
                *times += 1;
            }
            None => self.sent.push((path, now, 1)),
        }
        let before = self.count;
        self.count = before.saturating_add(1);
        before
    }

    /// Records that an OPEN is being sent.
    pub(in crate::proto) fn on_open_sent(&mut self, now: Instant) {
        self.opened_at.get_or_insert(now);
    }

    /// The time since the first OPEN, of which the answer that arrives now took no more.
    // A responder that many others open sessions with at once takes its time for each, and for the symbols
    // that follow: with the round trip of a HELLO alone, which costs it little, every symbol was sent
    // several times.
    pub(in crate::proto) fn since_opened(&self, now: Instant) -> Option<Duration> {
        self.opened_at.map(|at| now.saturating_since(at))
    }

    /// The round-trip time of the packet on `path`, if it is certain which one was answered.
    pub(in crate::proto) fn round_trip(&self, now: Instant, path: PathId) -> Option<Duration> {
        let (_, at, times) = self.sent.iter().find(|(known, ..)| *known == path)?;
        (*times == 1).then(|| now.saturating_since(*at))
    }
}
