//! Capacity for new messages: quotas, and a place in line for messages that were refused.

use super::Receiver;
use super::quota::{PeerKey, Usage};
use crate::id::{MessageId, SessionId};
use crate::proto::limits::{
    BACKLOG_SHARE, ENDING_BYTES, MAX_OVERTAKEN, MODEST_ENDINGS, WAITER_TIMEOUT,
};
use crate::proto::steps::step;
use crate::time::Instant;
use crate::wire::Role;

/// A message that was refused for lack of capacity. Its sender keeps retrying. Once enough messages
/// have overtaken it, capacity that becomes free is kept for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    session: SessionId,
    id: MessageId,
    memory: usize,
    last_requested: Instant,
    /// How many messages of the peer, and of all peers, had begun before.
    before: [u64; 2],
}

/// A message that is to begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) peer: PeerKey,
    pub(super) session: SessionId,
    pub(super) id: MessageId,
    pub(super) role: Role,
    /// Whether its sender has finished with all older messages of the session.
    pub(super) oldest: bool,
    /// The number of bytes that it may take.
    pub(super) memory: usize,
}

impl Waiter {
    const fn is(&self, candidate: &Candidate) -> bool {
        self.session.0 == candidate.session.0 && self.id.0 == candidate.id.0
    }

    fn is_waiting(&self, now: Instant) -> bool {
        now.saturating_since(self.last_requested) <= WAITER_TIMEOUT
    }

    /// The capacity that is kept for it once `begun` messages have overtaken it.
    const fn kept(&self, begun: u64) -> usize {
        if begun >= MAX_OVERTAKEN { self.memory + ENDING_BYTES } else { 0 }
    }
}

impl Receiver {
    /// Whether a message may begin. One that is refused for lack of memory waits for it from now on.
    pub(super) fn admit(&mut self, now: Instant, candidate: &Candidate) -> bool {
        if !self.has_backlog_capacity(&candidate.peer, candidate.role) {
            return false;
        }
        let first = self.first_waiter(now);
        let Some(peer) = self.peers.get_mut(&candidate.peer) else { return false };
        let waiter = peer.waiter.filter(|waiter| waiter.is_waiting(now));
        let kept =
            |waiter: Option<Waiter>, begun: [u64; 2], at: usize, usage: &Usage, limit: usize| {
                let other = waiter.filter(|waiter| !waiter.is(candidate));
                let kept = other.map_or(0, |waiter| waiter.kept(begun[at] - waiter.before[at]));
                // Messages that the application does not take may stay for long. If they alone
                // block the waiter, keeping others out would not help it.
                if usage.backlog.iter().sum::<usize>() + kept > limit { 0 } else { kept }
            };
        let begun = [peer.begun, self.begun];
        let kept_own =
            kept(waiter, begun, 0, &peer.usage, self.config.limits.decode_bytes_per_peer);
        let kept_all = kept(first, begun, 1, &self.usage, self.config.limits.decode_bytes);
        let fits = |usage: Usage, kept: usize, limit: usize| {
            let taken = usage.memory + kept;
            let endings = usage.endings * ENDING_BYTES;
            // One message always fits, whatever its bookkeeping takes: otherwise it would never
            // arrive. Endings are forgotten only when all older messages have ended, so the oldest
            // message fits however many endings there are.
            taken == 0 && (endings < limit || candidate.oldest)
                || taken + endings + candidate.memory + ENDING_BYTES <= limit
        };
        // Many peers with many endings must not keep out peers with few.
        let endings = if peer.usage.endings > MODEST_ENDINGS { self.usage.endings } else { 0 };
        let all = Usage { endings, ..self.usage };
        let has_own = fits(peer.usage, kept_own, self.config.limits.decode_bytes_per_peer);
        let has_shared = fits(all, kept_all, self.config.limits.decode_bytes);
        if has_own && has_shared {
            self.on_admitted(candidate);
        } else {
            self.on_refused(now, candidate, has_shared);
        }
        has_own && has_shared
    }

    /// Whether more messages of a role may wait for the application. Each role has a share, so that
    /// a role whose messages are not taken leaves capacity for the others. The share does not depend on
    /// a message's length, because short messages must not overtake long ones.
    pub(super) fn has_backlog_capacity(&self, peer: &PeerKey, role: Role) -> bool {
        let fits = |usage: &Usage, limit: usize| {
            let backlog = usage.backlog[role as usize];
            backlog == 0 || backlog < limit / BACKLOG_SHARE
        };
        self.peers
            .get(peer)
            .is_none_or(|own| fits(&own.usage, self.config.limits.decode_bytes_per_peer))
            && fits(&self.usage, self.config.limits.decode_bytes)
    }

    /// The message that has waited longest for shared capacity.
    fn first_waiter(&mut self, now: Instant) -> Option<Waiter> {
        while let Some(first) = self.admission_queue.first() {
            step();
            let waiter = self.peers.get(&first).and_then(|peer| peer.waiter);
            if let Some(waiter) = waiter.filter(|waiter| waiter.is_waiting(now)) {
                return Some(waiter);
            }
            self.admission_queue.remove(first);
        }
        None
    }

    /// Handles the admission of a message: it stops waiting, and overtakes those that wait.
    fn on_admitted(&mut self, candidate: &Candidate) {
        self.begun += 1;
        let Some(peer) = self.peers.get_mut(&candidate.peer) else { return };
        peer.begun += 1;
        if peer.waiter.take_if(|waiter| waiter.is(candidate)).is_some() {
            self.admission_queue.remove(candidate.peer);
        }
    }

    /// Handles a refusal for lack of capacity. One message of each peer waits: the oldest refused one
    /// of a session.
    fn on_refused(&mut self, now: Instant, candidate: &Candidate, has_shared: bool) {
        let Candidate { peer: key, session, id, memory, .. } = *candidate;
        let Some(peer) = self.peers.get_mut(&key) else { return };
        if peer.waiter.take_if(|waiter| !waiter.is_waiting(now)).is_some() {
            self.admission_queue.remove(key);
        }
        let waiter = peer.waiter.get_or_insert(Waiter {
            session,
            id,
            memory,
            last_requested: now,
            before: [peer.begun, self.begun],
        });
        if waiter.session != session || waiter.id < id {
            return;
        }
        waiter.id = id;
        waiter.memory = memory;
        waiter.last_requested = now;
        if has_shared {
            self.admission_queue.remove(key);
        } else if !self.admission_queue.contains(key) {
            self.admission_queue.push_back(key);
        }
    }
}
