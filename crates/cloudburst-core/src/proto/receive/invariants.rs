//! Invariants that hold between any two calls of a receiver, for tests and fuzzers.

use super::Receiver;
use super::quota::{HostKey, PeerKey, Usage};
use super::session::IDLE_GRAIN;
use crate::wire::Role;
use foldhash::{HashMap, HashMapExt};

impl Receiver {
    /// Checks that the receiver's totals, queues and deadlines agree with the messages and peers that
    /// it holds. Takes time in proportion to all of them: for tests.
    ///
    /// # Panics
    ///
    /// If anything disagrees, which is a bug in this crate, whatever peers send.
    pub(crate) fn check_invariants(&self) {
        self.check_sums();
        self.check_deadlines();
        self.check_waiting();
        self.half_open.check_invariants();
        self.replies.check_invariants();
        self.answers.check_invariants();
        let messages = self.sessions.iter().flat_map(|(name, session)| {
            let host = session.key().host();
            session.window.messages().map(move |(id, incoming)| (host, (*name, id), incoming))
        });
        self.pulls.check_invariants(messages);
        for (name, session) in &self.sessions {
            assert_eq!(session.opener.session(), *name, "a session opens its own packets");
            session.window.check_invariants();
        }
        let most = self.config.limits.max_peers.saturating_mul(2);
        assert!(self.sessions.len() <= most, "{} sessions of {most}", self.sessions.len());
    }

    /// The sums of each peer, of each host and of all peers equal those of their sessions.
    fn check_sums(&self) {
        let mut all = Usage::default();
        let mut hosts = HashMap::<HostKey, (usize, Usage)>::new();
        let mut peers = HashMap::<PeerKey, (usize, Usage)>::new();
        for session in self.sessions.values() {
            let usage = session.window.usage();
            all.replace(Usage::default(), usage);
            let key = session.key();
            for (sessions, sum) in
                [peers.entry(key).or_default(), hosts.entry(key.host()).or_default()]
            {
                *sessions += 1;
                sum.replace(Usage::default(), usage);
            }
        }
        assert_eq!(self.usage, all, "all sessions together");
        assert_eq!(self.hosts.len(), hosts.len(), "a host has a session");
        for (key, host) in &self.hosts {
            assert_eq!(hosts.get(key), Some(&(host.sessions, host.usage)), "{key:?}");
            for (key, peer) in &host.peers {
                let sum = peers.remove(key);
                assert_eq!(sum, Some((peer.sessions, peer.usage)), "{key:?}");
            }
            let held = |name| self.sessions.get(name).is_some_and(|it| it.key().host() == *key);
            assert!(host.superseded.keys().all(held), "{key:?}: superseded sessions are held");
        }
        assert_eq!(peers.len(), 0, "a peer is at its host");
    }

    /// Each message has a deadline, and each session without messages an entry among the idle ones.
    fn check_deadlines(&self) {
        let mut messages = 0;
        let mut idle = 0;
        for (name, session) in &self.sessions {
            for (id, incoming) in session.window.messages() {
                messages += 1;
                let deadline = incoming.last_wanted() + self.config.decode_timeout;
                let timer = self.timers.rank((*name, id));
                assert!(timer.is_some_and(|at| at <= deadline), "{id:?} of {name:?}: {timer:?}");
            }
            let since = self.idle.rank(*name);
            assert_eq!(since.is_some(), session.window.is_idle(), "{name:?} is idle");
            if let Some(at) = since {
                idle += 1;
                let since = session.forget_at();
                let behind = since.saturating_since(at);
                assert!(at <= since && behind < IDLE_GRAIN, "{behind:?}");
            }
        }
        assert_eq!(self.timers.len(), messages, "one deadline for each message");
        assert_eq!(self.idle.len(), idle, "one entry for each idle session");
    }

    /// Each message that waits for the application is in its queue, and so is each peer that waits
    /// for capacity.
    fn check_waiting(&self) {
        let mut waiting = [0; Role::COUNT];
        for (name, session) in &self.sessions {
            for (id, incoming) in session.window.whole_messages() {
                let role = incoming.role as usize;
                waiting[role] += 1;
                let host = session.key().host();
                let waits = self.inboxes[role].waiting.host((*name, id));
                assert_eq!(waits, Some(host), "it is in its queue");
            }
        }
        for (inbox, waiting) in self.inboxes.iter().zip(waiting) {
            inbox.check_invariants(waiting, self.config.limits.receive_messages);
        }
        for (key, _) in self.admission_queue.iter() {
            assert!(self.hosts.contains_key(&key), "{key:?} waits for capacity");
        }
        for (key, _) in self.hosts.values().flat_map(|host| host.admission_queue.iter()) {
            let host = self.hosts.get(&key.host());
            let peer = host.and_then(|host| host.peers.get(&key));
            assert!(peer.is_some_and(|peer| peer.waiter.is_some()), "{key:?} waits for capacity");
        }
    }
}
