//! State of each peer, across its sessions.

use super::Receiver;
use super::held::Held;
use super::room::Waiter;
use super::session::Session;
use crate::id::SessionId;

/// The state of all sessions of one peer.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) sessions: usize,
    pub(super) held: Held,
    /// Messages that have begun.
    pub(super) begun: u64,
    /// The peer's message that waits for room.
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
        let before = session.window.held();
        let result = change(session);
        let after = session.window.held();
        let quiet = session.window.is_idle().then_some(session.last_heard);
        if quiet.is_some() != session.quiet.is_some() {
            self.quiet.set(&mut session.quiet, quiet, name);
        }
        if before != after {
            self.held.replace(before, after);
            if let Some(peer) = self.peers.get_mut(&session.key()) {
                peer.held.replace(before, after);
            }
        }
        Some(result)
    }

    /// Adds a session that remembers nothing yet.
    pub(super) fn insert_session(&mut self, name: SessionId, mut session: Session) {
        self.quiet.set(&mut session.quiet, Some(session.last_heard), name);
        self.peers.entry(session.key()).or_default().sessions += 1;
        self.sessions.insert(name, session);
    }

    /// Forgets a quiet session, and its peer with the last one.
    pub(super) fn forget(&mut self, name: SessionId) {
        let Some(session) = self.sessions.remove(&name) else { return };
        let held = session.window.held();
        self.held.replace(held, Held::default());
        if let Some(peer) = self.peers.get_mut(&session.key()) {
            peer.held.replace(held, Held::default());
            peer.sessions -= 1;
            if peer.sessions == 0 {
                peer.waiter.iter().for_each(|waiter| self.room_queue.leave(waiter));
                self.peers.remove(&session.key());
            }
        }
    }
}
