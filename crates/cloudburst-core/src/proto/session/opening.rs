//! A handshake, from the initiator's side: which HELLOs went where, and when the next are due.

use crate::id::{Incarnation, PathId};
use crate::proto::limits::HANDSHAKE_FOR;
use crate::time::Instant;
use core::time::Duration;

const FIRST_RETRY: Duration = Duration::from_millis(1);
const MAX_RETRY: Duration = Duration::from_millis(200);
/// Attempts that ask the owner of a session with a port of its own, before others may answer: some
/// 0.25 s.
const ASK_OWNER: u32 = 8;
/// HELLOs of one attempt at a handshake, at most.
const MAX_COPIES: usize = 16;

/// A handshake under way.
#[derive(Debug)]
pub(in crate::proto) struct Opening {
    pub(in crate::proto) nonce: u64,
    /// Where its HELLOs go.
    pub(in crate::proto) port: u16,
    /// Who is asked; `None`: whoever is there.
    pub(in crate::proto) asked: Option<Incarnation>,
    began_at: Instant,
    next_at: Instant,
    attempts: u32,
    /// HELLOs of this attempt that are still to be sent.
    copies: usize,
    /// The last HELLO on each path tried, and how many went that way.
    sent: Vec<(PathId, Instant, u32)>,
}

impl Opening {
    /// A handshake with `asked`, or with whoever is there, that begins at `now`.
    pub(in crate::proto) fn new(
        now: Instant,
        nonce: u64,
        port: u16,
        asked: Option<Incarnation>,
    ) -> Self {
        let (began_at, next_at) = (now, now);
        Self { nonce, port, asked, began_at, next_at, attempts: 0, copies: 0, sent: Vec::new() }
    }

    /// A HELLO_ACK may answer a HELLO that is too old to say anything about the responder's present
    /// state.
    pub(in crate::proto) fn is_outdated(&self, now: Instant) -> bool {
        now.saturating_since(self.began_at) > HANDSHAKE_FOR
    }

    /// Goes on under another nonce: nothing that answers the HELLOs so far is taken any more.
    pub(in crate::proto) fn renew(&mut self, now: Instant, nonce: u64) {
        (self.nonce, self.began_at, self.next_at) = (nonce, now, now);
        self.sent.clear();
    }

    /// The owner of the session has been asked for long enough, and another attempt is due.
    pub(in crate::proto) fn is_in_vain(&self, now: Instant) -> bool {
        self.asked.is_some() && self.attempts >= ASK_OWNER && self.next_at <= now
    }

    /// Another attempt is due.
    pub(in crate::proto) fn is_due(&self, now: Instant) -> bool {
        self.wake_at().is_some_and(|at| at <= now)
    }

    /// When the next attempt is due; not before the HELLOs of this one have been sent.
    pub(in crate::proto) fn wake_at(&self) -> Option<Instant> {
        (self.copies == 0).then_some(self.next_at)
    }

    /// Attempts that were begun, as long as HELLOs of the last one are still to be sent.
    pub(in crate::proto) fn attempt_to_send(&self) -> Option<u32> {
        (self.copies > 0).then_some(self.attempts)
    }

    /// Begins another attempt, over `paths` paths. Two HELLOs at first, for one path may be a black
    /// hole; more and more while nobody answers, for most may be, one way or the other, and each HELLO
    /// may be answered another way.
    pub(in crate::proto) fn attempt(&mut self, paths: usize) {
        let copies = (self.attempts as usize).max(paths.min(2));
        self.copies = copies.min(MAX_COPIES).min(2 * paths);
        self.attempts += 1;
    }

    /// A HELLO is being sent on `path`.
    pub(in crate::proto) fn on_sent(&mut self, now: Instant, path: PathId) {
        match self.sent.iter_mut().find(|(known, ..)| *known == path) {
            Some((_, at, times)) => (*at, *times) = (now, *times + 1),
            None => self.sent.push((path, now, 1)),
        }
        self.copies = self.copies.saturating_sub(1);
        let doublings = self.attempts.saturating_sub(1).min(16);
        self.next_at = now + FIRST_RETRY.saturating_mul(1 << doublings).min(MAX_RETRY);
    }

    /// The round-trip time of the HELLO on `path`, if it is certain which one was answered.
    pub(in crate::proto) fn round_trip(&self, now: Instant, path: PathId) -> Option<Duration> {
        let (_, at, times) = self.sent.iter().find(|(known, ..)| *known == path)?;
        (*times == 1).then(|| now.saturating_since(*at))
    }
}
