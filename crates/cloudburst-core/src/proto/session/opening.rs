//! A handshake, from the initiator's side: which HELLOs went where, and when the next are due.

use crate::id::{Incarnation, PathId};
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
    pub(in crate::proto) next_at: Instant,
    attempts: u32,
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
        Self { nonce, port, asked, next_at: now, attempts: 0, sent: Vec::new() }
    }

    /// The owner of the session has been asked for long enough, and another attempt is due.
    pub(in crate::proto) fn is_in_vain(&self, now: Instant) -> bool {
        self.asked.is_some() && self.attempts >= ASK_OWNER && self.next_at <= now
    }

    /// A HELLO is being sent on `path`.
    pub(in crate::proto) fn on_sent(&mut self, now: Instant, path: PathId) {
        match self.sent.iter_mut().find(|(known, ..)| *known == path) {
            Some((_, at, times)) => (*at, *times) = (now, *times + 1),
            None => self.sent.push((path, now, 1)),
        }
    }

    /// Another attempt is due: with how many HELLOs, over `paths` paths. Two at first, for one path
    /// may be a black hole; more and more while nobody answers, for most may be, one way or the
    /// other, and each HELLO may be answered another way.
    pub(in crate::proto) fn attempt(&mut self, now: Instant, paths: usize) -> usize {
        let retry = FIRST_RETRY.saturating_mul(1 << self.attempts.min(16)).min(MAX_RETRY);
        let copies = (self.attempts as usize).max(paths.min(2)).min(MAX_COPIES).min(2 * paths);
        self.attempts += 1;
        self.next_at = now + retry;
        copies
    }

    /// The round-trip time of the HELLO on `path`, if it is certain which one was answered.
    pub(in crate::proto) fn round_trip(&self, now: Instant, path: PathId) -> Option<Duration> {
        let (_, at, times) = self.sent.iter().find(|(known, ..)| *known == path)?;
        (*times == 1).then(|| now.saturating_since(*at))
    }
}
