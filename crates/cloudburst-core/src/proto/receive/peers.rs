//! State of each peer, across its sessions, and of each host, across its peers.

use super::Receiver;
use super::quota::{HostKey, PeerKey, Usage};
use super::session::Session;
use crate::id::{Incarnation, MessageId, SessionId};
use crate::path::Via;
use crate::proto::indexed::Indexed;
use crate::proto::session::Located;
use crate::proto::share::share;
use crate::time::Instant;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// How many sessions are looked at for one that gives way.
pub(super) const SEARCH_LIMIT: usize = 64;

/// A message that was refused for lack of capacity. Its sender keeps retrying. Once enough messages
/// have overtaken it, capacity that becomes free is kept for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) session: SessionId,
    pub(super) id: MessageId,
    pub(super) memory: usize,
    pub(super) last_requested: Instant,
    /// How many messages of the peer, of the host, and of all peers, had begun before.
    pub(super) before: [u64; 3],
}

/// The state of all sessions of one peer.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) sessions: usize,
    pub(super) usage: Usage,
    /// Messages that have begun.
    pub(super) begun: u64,
    /// The peer's message that waits for capacity.
    pub(super) waiter: Option<Waiter>,
}

/// The peers at one host. Quotas of hosts bound those who make up peers.
#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) sessions: usize,
    pub(super) usage: Usage,
    /// Messages that have begun.
    pub(super) begun: u64,
    // Nearly always one.
    pub(super) peers: BTreeMap<PeerKey, Peer>,
    /// Peers with a message that waits for capacity of the host, or for that of all, oldest first.
    pub(super) admission_queue: Indexed<PeerKey, u64>,
    /// The newest session under each name.
    names: BTreeMap<SocketAddr, SessionId>,
    /// Sessions of incarnations under whose name another one has opened a session since, and when.
    pub(super) superseded: BTreeMap<SessionId, Instant>,
}

impl Receiver {
    /// Changes the state of a session, and with it the sums of its peer, its host, and all peers.
    pub(super) fn update<T>(
        &mut self,
        name: SessionId,
        change: impl FnOnce(&mut Session) -> T,
    ) -> Option<T> {
        let session = self.sessions.get_mut(&name)?;
        let before = session.window.usage();
        let was_idle = session.window.is_idle();
        let result = change(session);
        let after = session.window.usage();
        let is_idle = session.window.is_idle();
        if was_idle != is_idle {
            self.idle.set(name, is_idle.then_some(session.forget_at()));
        }
        if before != after {
            let key = session.key();
            self.usage.replace(before, after);
            if let Some(host) = self.hosts.get_mut(&key.host()) {
                host.usage.replace(before, after);
                if let Some(peer) = host.peers.get_mut(&key) {
                    peer.usage.replace(before, after);
                }
            }
        }
        Some(result)
    }

    /// Adds a session that remembers nothing yet.
    pub(super) fn insert_session(&mut self, now: Instant, name: SessionId, session: Session) {
        self.idle.set(name, Some(session.forget_at()));
        let key = session.key();
        let host = self.hosts.entry(key.host()).or_default();
        host.sessions += 1;
        host.peers.entry(key).or_default().sessions += 1;
        let incarnation = session.incarnation;
        if let Some(old) = host.names.insert(session.peer, name)
            && self.sessions.get(&old).is_some_and(|old| old.incarnation != incarnation)
        {
            host.superseded.insert(old, now);
        }
        self.sessions.insert(name, session);
    }

    /// Forgets an idle session, and its peer and host with the last one.
    pub(super) fn forget(&mut self, name: SessionId) {
        let Some(session) = self.sessions.remove(&name) else { return };
        self.idle.remove(name);
        let usage = session.window.usage();
        self.usage.replace(usage, Usage::default());
        let key = session.key();
        let Some(host) = self.hosts.get_mut(&key.host()) else { return };
        host.usage.replace(usage, Usage::default());
        host.sessions -= 1;
        host.superseded.remove(&name);
        if host.names.get(&session.peer) == Some(&name) {
            host.names.remove(&session.peer);
        }
        let Some(peer) = host.peers.get_mut(&key) else { return };
        peer.usage.replace(usage, Usage::default());
        peer.sessions -= 1;
        if peer.sessions == 0 {
            host.admission_queue.remove(key);
            host.peers.remove(&key);
        }
        if host.sessions == 0 {
            self.admission_queue.remove(key.host());
            self.hosts.remove(&key.host());
        }
    }

    /// The newest session with the peer of this name.
    fn newest(&self, peer: SocketAddr) -> Option<&Session> {
        self.sessions.get(self.hosts.get(&HostKey::of(peer.ip()))?.names.get(&peer)?)
    }

    /// The sessions with an incarnation: the newest one of the peer, and some of those that another
    /// incarnation has superseded.
    pub(super) fn sessions_of(&self, peer: SocketAddr, incarnation: Incarnation) -> Vec<SessionId> {
        let Some(host) = self.hosts.get(&HostKey::of(peer.ip())) else { return Vec::new() };
        let superseded = host.superseded.keys().take(SEARCH_LIMIT);
        let names = host.names.get(&peer).into_iter().chain(superseded);
        let is_its = |name: &&SessionId| {
            let session = self.sessions.get(name);
            session.is_some_and(|of| of.peer == peer && of.incarnation == incarnation)
        };
        names.filter(is_its).copied().collect()
    }

    /// When an incarnation was last heard from.
    pub(in crate::proto) fn last_heard(
        &self,
        peer: SocketAddr,
        incarnation: Incarnation,
    ) -> Option<Instant> {
        let names = self.sessions_of(peer, incarnation).into_iter();
        names.filter_map(|name| Some(self.sessions.get(&name)?.last_heard)).max()
    }

    /// Whether there is a session with the peer of this name.
    pub(in crate::proto) fn holds(&self, name: SocketAddr) -> bool {
        self.newest(name).is_some()
    }

    /// Whether `name` is that of a peer which has moved, and not `incarnation`.
    pub(super) fn is_name_of_moved(&self, name: SocketAddr, incarnation: Incarnation) -> bool {
        self.newest(name).is_some_and(|known| known.has_moved() && known.incarnation != incarnation)
    }

    /// The newest route to each other address at which a peer has proved to receive.
    pub(in crate::proto) fn alternates(&self, name: SocketAddr) -> Vec<Via> {
        self.newest(name).map_or(Vec::new(), Session::alternates)
    }

    /// Learns what the sending half has found out about the address of a peer. Returns the routes by
    /// which its packets arrive from there, if it is to be reached there.
    pub(in crate::proto) fn locate(&mut self, now: Instant, located: Located) -> Option<Vec<Via>> {
        let Located { peer, incarnation, ip, is_there } = located;
        // All of them, as it happens seldom: messages of a session that was replaced may be under way.
        let is_of_peer = |(_, session): &(&SessionId, &Session)| {
            session.peer == peer && session.incarnation == incarnation
        };
        let mut names: Vec<SessionId> =
            self.sessions.iter().filter(is_of_peer).map(|(name, _)| *name).collect();
        // Sorted, so that the order does not change from run to run.
        names.sort_unstable();
        let mut routes = Vec::new();
        for name in names {
            let Some(session) = self.sessions.get_mut(&name) else { continue };
            if !is_there {
                session.validate(ip);
                continue;
            }
            for via in session.move_to(now, ip) {
                if !routes.contains(&via) {
                    routes.push(via);
                }
            }
        }
        is_there.then_some(routes)
    }

    /// Whether another session of this host can be added. At the limit, one gives way that its peer
    /// does not use without a check.
    pub(super) fn has_session_capacity(&mut self, now: Instant, host: HostKey) -> bool {
        // Capacity for accepted sessions, and for as many adopted ones.
        let limit = self.config.limits.max_peers.saturating_mul(2);
        let own = self.hosts.get(&host).map_or(0, |host| host.sessions);
        let all = self.sessions.len();
        let fits = |others| own + others < limit && own < share(limit, others).max(1);
        let has_capacity = fits(all - own)
            || self.evict_superseded_session(host)
            || self.evict_idle_session(now, Some(host))
            || all > own && fits(all - own - 1) && self.evict_idle_session(now, None);
        self.counters.peers_refused += u64::from(!has_capacity);
        has_capacity
    }

    /// Forgets an idle session of this host whose incarnation is gone, as far as can be seen: another
    /// has its name, and nothing has arrived in it since.
    // Only at the limit. Otherwise whoever claims the port of a neighbour would end its session.
    fn evict_superseded_session(&mut self, host: HostKey) -> bool {
        let Some(host) = self.hosts.get(&host) else { return false };
        let is_gone = |(name, since): (&SessionId, &Instant)| {
            let session = self.sessions.get(name)?;
            (session.window.is_idle() && session.last_heard <= *since).then_some(*name)
        };
        let gone = host.superseded.iter().take(SEARCH_LIMIT).find_map(is_gone);
        gone.inspect(|name| self.forget(*name)).is_some()
    }
}
