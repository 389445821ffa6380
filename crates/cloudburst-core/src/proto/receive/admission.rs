//! Capacity for new messages: quotas, and a place in line for messages that were refused.

use super::Receiver;
use super::peers::{Host, Peer, Waiter};
use super::quota::{PeerKey, Usage};
use crate::config::Limits;
use crate::id::{MessageId, SessionId};
use crate::proto::indexed::Indexed;
use crate::proto::limits::{
    BACKLOG_SHARE, ENDING_BYTES, MAX_OVERTAKEN, MODEST_ENDINGS, WAITER_TIMEOUT,
};
use crate::proto::share::share;
use crate::proto::steps::step;
use crate::time::Instant;
use crate::wire::Role;
use core::hash::Hash;

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

/// A quota for one peer, for one host, or for all, as it is to a candidate.
struct Quota {
    usage: Usage,
    limit: usize,
    /// Whether endings count.
    counts_endings: bool,
    /// The capacity that is kept for a message that waits for it.
    kept: usize,
}

impl Quota {
    fn new(usage: Usage, limit: usize, counts_endings: bool, kept: usize) -> Self {
        // Messages that the application does not take may stay for long. If they alone block the
        // waiter, keeping others out would not help it.
        let kept = if usage.backlog.iter().sum::<usize>() + kept > limit { 0 } else { kept };
        Self { usage, limit, counts_endings, kept }
    }

    fn fits(&self, candidate: &Candidate) -> bool {
        let taken = self.usage.memory + self.kept;
        let endings = if self.counts_endings { self.usage.endings * ENDING_BYTES } else { 0 };
        // One message always fits, whatever its bookkeeping takes: otherwise it would never arrive.
        // Endings are forgotten only when all older messages have ended, so the oldest message fits
        // however many endings there are.
        taken == 0 && (endings < self.limit || candidate.oldest)
            || taken + endings + candidate.memory + ENDING_BYTES <= self.limit
    }
}

impl Waiter {
    const fn is(&self, candidate: &Candidate) -> bool {
        self.session.0 == candidate.session.0 && self.id.0 == candidate.id.0
    }

    fn is_waiting(&self, now: Instant) -> bool {
        now.saturating_since(self.last_requested) <= WAITER_TIMEOUT
    }

    /// The capacity that is kept for it from `candidate`, once `begun` messages have overtaken it.
    const fn kept(&self, candidate: &Candidate, begun: u64) -> usize {
        if begun >= MAX_OVERTAKEN && !self.is(candidate) { self.memory + ENDING_BYTES } else { 0 }
    }
}

impl Peer {
    fn waiter(&self, now: Instant) -> Option<Waiter> {
        self.waiter.filter(|waiter| waiter.is_waiting(now))
    }
}

impl Host {
    /// The message that has waited longest, and the memory of its peer.
    fn first_waiter(&mut self, now: Instant) -> Option<(Waiter, usize)> {
        let peers = &self.peers;
        first(&mut self.admission_queue, |key| {
            let peer = peers.get(&key)?;
            Some((peer.waiter(now)?, peer.usage.memory))
        })
    }
}

/// What `waiting` finds for the first key of the queue for which it finds something. Those before it
/// no longer wait.
fn first<K: Copy + Eq + Hash + Ord, T>(
    queue: &mut Indexed<K, u64>,
    mut waiting: impl FnMut(K) -> Option<T>,
) -> Option<T> {
    while let Some(key) = queue.first() {
        step();
        if let Some(found) = waiting(key) {
            return Some(found);
        }
        queue.remove(key);
    }
    None
}

/// Whether one more message of a role may wait for the application beside what its peer, its host, and
/// all hold.
fn fits_backlog(limits: &Limits, role: Role, [peer, host, all]: [&Usage; 3]) -> bool {
    let fits = |usage: &Usage, limit: usize| {
        let backlog = usage.backlog[role as usize];
        backlog == 0 || backlog < limit
    };
    let own = limits.decode_bytes_per_peer / BACKLOG_SHARE;
    let shared = limits.decode_bytes / BACKLOG_SHARE;
    let others = all.backlog[role as usize] - host.backlog[role as usize];
    fits(peer, own) && fits(host, share(shared, others)) && fits(all, shared)
}

impl Receiver {
    /// Whether a message may begin. One that is refused for lack of memory waits for it from now on.
    pub(super) fn admit(&mut self, now: Instant, candidate: &Candidate) -> bool {
        let key = candidate.peer;
        let hosts = &mut self.hosts;
        let of_all = first(&mut self.admission_queue, |host| {
            let host = hosts.get_mut(&host)?;
            Some((host.first_waiter(now)?.0, host.usage.memory))
        });
        // This is done for each message, so its host and its peer are looked up once.
        let Some(host) = self.hosts.get_mut(&key.host()) else { return false };
        let of_host = host.first_waiter(now);
        let Some(peer) = host.peers.get_mut(&key) else { return false };
        let limits = &self.config.limits;
        if !fits_backlog(limits, candidate.role, [&peer.usage, &host.usage, &self.usage]) {
            return false;
        }
        // Nothing is kept from those who hold less than the peer or the host of the waiter.
        let kept = |waiter: Option<(Waiter, usize)>, at: usize, holds: usize, begun: u64| {
            let (waiter, _) = waiter.filter(|&(_, others)| holds >= others)?;
            Some(waiter.kept(candidate, begun - waiter.before[at]))
        };
        let kept_own = kept(peer.waiter(now).map(|own| (own, 0)), 0, 0, peer.begun);
        let kept_host = kept(of_host, 1, peer.usage.memory, host.begun);
        let kept_all = kept(of_all, 2, host.usage.memory, self.begun);
        // Many peers with many endings must not keep out peers with few.
        let many = peer.usage.endings > MODEST_ENDINGS;
        let taken =
            |usage: &Usage| usage.memory + if many { usage.endings * ENDING_BYTES } else { 0 };
        let all = limits.decode_bytes;
        let of_host = share(all, taken(&self.usage) - taken(&host.usage));
        let of_peer = share(of_host, taken(&host.usage) - taken(&peer.usage));
        let own = limits.decode_bytes_per_peer;
        let fits = |usage, limit, counts_endings, kept: Option<usize>| {
            Quota::new(usage, limit, counts_endings, kept.unwrap_or(0)).fits(candidate)
        };
        let has_own =
            fits(peer.usage, own, true, kept_own) && fits(peer.usage, of_peer, many, kept_own);
        let has_host = fits(host.usage, of_host, many, kept_host);
        let has_shared = fits(self.usage, all, many, kept_all);
        if !(has_own && has_host && has_shared) {
            self.on_refused(now, candidate, has_host, has_shared);
            return false;
        }
        // It stops waiting, and overtakes those that wait.
        self.begun += 1;
        host.begun += 1;
        peer.begun += 1;
        if peer.waiter.take_if(|waiter| waiter.is(candidate)).is_some() {
            host.admission_queue.remove(key);
            // Hosts take turns.
            let waited = self.admission_queue.remove(key.host()).is_some();
            if waited && !host.admission_queue.is_empty() {
                self.admission_queue.push_back(key.host());
            }
        }
        true
    }

    /// Whether more messages of a role may wait for the application. Each role has a share, so that
    /// a role whose messages are not taken leaves capacity for the others. The share does not depend on
    /// a message's length, because short messages must not overtake long ones.
    pub(super) fn has_backlog_capacity(&self, key: &PeerKey, role: Role) -> bool {
        let host = self.hosts.get(&key.host());
        let holders = host.and_then(|host| Some((&host.peers.get(key)?.usage, &host.usage)));
        holders.is_none_or(|(peer, host)| {
            fits_backlog(&self.config.limits, role, [peer, host, &self.usage])
        })
    }

    /// Handles a refusal for lack of capacity. One message of each peer waits: the oldest refused one
    /// of a session.
    fn on_refused(
        &mut self,
        now: Instant,
        candidate: &Candidate,
        has_host: bool,
        has_shared: bool,
    ) {
        let Candidate { peer: key, session, id, memory, .. } = *candidate;
        let Some(host) = self.hosts.get_mut(&key.host()) else { return };
        let Some(peer) = host.peers.get_mut(&key) else { return };
        if peer.waiter.take_if(|waiter| !waiter.is_waiting(now)).is_some() {
            host.admission_queue.remove(key);
        }
        let waiter = peer.waiter.get_or_insert(Waiter {
            session,
            id,
            memory,
            last_requested: now,
            before: [peer.begun, host.begun, self.begun],
        });
        if waiter.session != session || waiter.id < id {
            return;
        }
        waiter.id = id;
        waiter.memory = memory;
        waiter.last_requested = now;
        if has_host && has_shared {
            host.admission_queue.remove(key);
        } else if !host.admission_queue.contains(key) {
            host.admission_queue.push_back(key);
        }
        if !has_shared && !self.admission_queue.contains(key.host()) {
            self.admission_queue.push_back(key.host());
        }
    }
}
