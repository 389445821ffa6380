//! A handshake, from the initiator's side: which packets went where, and when the next are due.

use crate::id::{Incarnation, PathId, SessionId};
use crate::proto::limits::HANDSHAKE_FOR;
use crate::time::Instant;
use crate::wire::handshake::{Initiation, Token};
use core::time::Duration;

const FIRST_RETRY: Duration = Duration::from_millis(1);
const MAX_RETRY: Duration = Duration::from_millis(200);
/// Attempts addressed only to the owner of a session at a port of its own, before other endpoints
/// may answer: about 0.25 s.
// Many outages last longer, but with more attempts, a peer whose endpoint is gone would wait for
// longer.
const OWNER_ATTEMPTS: u32 = 8;
/// The maximum number of packets in one attempt at a handshake.
// With three of four spines dead and 16 hashed ports at both ends, 5 of 8 transfers arrived within
// 10 s by one HELLO at a time, and 39 of 40 this way.
const MAX_COPIES: usize = 16;

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
    next_at: Instant,
    attempts: u32,
    /// Packets of this attempt that are still to be sent.
    copies: usize,
    /// The path that the next packet takes regardless of the order, and the return path of its
    /// answer: both have worked.
    reply_on: Option<(PathId, u8)>,
    /// The last attempt in which a RETRY was answered.
    replied_in: u32,
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
            next_at: now,
            attempts: 0,
            copies: 0,
            reply_on: None,
            replied_in: 0,
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
        self.next_at = now;
        self.invitation = None;
        self.other = None;
        self.reply_on = None;
        self.sent.clear();
    }

    /// Whether enough attempts at the intended responder have failed, and another one is due.
    pub(in crate::proto) fn is_exhausted(&self, now: Instant) -> bool {
        self.responder.is_some() && self.attempts >= OWNER_ATTEMPTS && self.next_at <= now
    }

    /// Whether enough attempts have gone unanswered.
    pub(in crate::proto) fn is_unanswered(&self) -> bool {
        self.attempts >= OWNER_ATTEMPTS
    }

    /// Whether another attempt is due.
    pub(in crate::proto) fn is_due(&self, now: Instant) -> bool {
        self.wake_at().is_some_and(|at| at <= now)
    }

    /// When the next attempt is due; not before the packets of this one have been sent.
    pub(in crate::proto) fn wake_at(&self) -> Option<Instant> {
        (self.copies == 0).then_some(self.next_at)
    }

    /// The number of attempts begun, while packets of the last one are still to be sent.
    pub(in crate::proto) fn attempt_to_send(&self) -> Option<u32> {
        (self.copies > 0).then_some(self.attempts)
    }

    /// Begins another attempt, over `paths` paths. The first attempts send two HELLOs, because one
    /// path may be a black hole. Without an answer, later attempts send more and more, because most
    /// paths may be black holes in one direction or the other, and each HELLO may be answered on
    /// another reverse path.
    pub(in crate::proto) fn attempt(&mut self, paths: usize) {
        let copies = (self.attempts as usize).max(paths.min(2));
        self.copies = copies.min(MAX_COPIES).min(2 * paths);
        self.attempts += 1;
    }

    /// Whether to answer a RETRY with an OPEN. Each attempt answers one, so that a responder that
    /// refuses every token gets packets no faster than one that does not answer.
    pub(in crate::proto) const fn takes_retry(&self) -> bool {
        self.replied_in < self.attempts
    }

    /// Handles a RETRY to the packet on `path`, which came by `return_path`: an OPEN leaves on that
    /// path at once. Returns the attempt.
    pub(in crate::proto) fn on_retry(&mut self, path: PathId, return_path: u8) -> u32 {
        self.replied_in = self.attempts;
        self.reply_on = Some((path, return_path));
        self.copies = self.copies.max(1);
        self.attempts
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
        self.copies = self.copies.saturating_sub(1);
        let doublings = self.attempts.saturating_sub(1).min(16);
        self.next_at = now + FIRST_RETRY.saturating_mul(1 << doublings).min(MAX_RETRY);
        let before = self.count;
        self.count = before.saturating_add(1);
        before
    }

    /// The round-trip time of the packet on `path`, if it is certain which one was answered.
    pub(in crate::proto) fn round_trip(&self, now: Instant, path: PathId) -> Option<Duration> {
        let (_, at, times) = self.sent.iter().find(|(known, ..)| *known == path)?;
        (*times == 1).then(|| now.saturating_since(*at))
    }
}
