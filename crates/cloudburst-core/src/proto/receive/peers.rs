//! State of each peer, across its sessions.

use super::Receiver;
use super::admission::Waiter;
use super::quota::Usage;
use super::session::Session;
use crate::id::SessionId;

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

impl Receiver {
    /// Changes the state of a session, and with it the sums of its peer and of all peers.
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
            self.idle.set(name, is_idle.then_some(session.last_heard));
        }
        if before != after {
            self.usage.replace(before, after);
            if let Some(peer) = self.peers.get_mut(&session.key()) {
                peer.usage.replace(before, after);
            }
        }
        Some(result)
    }

    /// Adds a session that remembers nothing yet.
    pub(super) fn insert_session(&mut self, name: SessionId, session: Session) {
        self.idle.set(name, Some(session.last_heard));
        self.peers.entry(session.key()).or_default().sessions += 1;
        self.sessions.insert(name, session);
    }

    /// Forgets an idle session, and its peer with the last one.
    pub(super) fn forget(&mut self, name: SessionId) {
        let Some(session) = self.sessions.remove(&name) else { return };
        let usage = session.window.usage();
        self.usage.replace(usage, Usage::default());
        if let Some(peer) = self.peers.get_mut(&session.key()) {
            peer.usage.replace(usage, Usage::default());
            peer.sessions -= 1;
            if peer.sessions == 0 {
                self.admission_queue.remove(session.key());
                self.peers.remove(&session.key());
            }
        }
    }
}
