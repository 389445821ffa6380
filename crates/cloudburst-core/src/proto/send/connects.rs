//! Connects: callers that wait for the session with a peer, without a message.

use super::peer::Peer;
use super::{Accepts, Sender, SenderEvent, Timer};
use crate::error::{Rejection, StartError};
use crate::id::ConnectId;
use crate::proto::steps::step;
use crate::time::Instant;
use core::time::Duration;
use std::net::SocketAddr;

/// A connect under way.
#[derive(Debug)]
pub(super) struct Connect {
    pub(super) peer: SocketAddr,
}

impl Sender {
    /// Opens a session with the peer at `address`, or checks the existing one as a message would.
    /// The connect ends with a [`SenderEvent::Connected`]: at once if the session is usable and
    /// confirmed.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. On an error, no connect was started.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        address: SocketAddr,
        deadline: Option<Duration>,
    ) -> Result<ConnectId, StartError> {
        if self.accepts != Accepts::All {
            return Err(StartError::Closing);
        }
        if self.unfinished() >= self.config.limits.send_messages {
            return Err(self.full());
        }
        self.enter_peer(address, None)?;
        let id = ConnectId(self.next_connect);
        self.next_connect += 1;
        let deadline = now + deadline.unwrap_or(self.config.deadline);
        self.timers.set(Timer::Connect(id), Some(deadline));
        self.connects.insert(id, Connect { peer: address });
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.connects.insert(id);
        }
        self.seek_session(now, address);
        self.confirm_for_connects(now, address);
        self.end_connects_to(address);
        Ok(id)
    }

    /// Ends a connect before its deadline. Does nothing if it has ended.
    pub(crate) fn cancel_connect(&mut self, id: ConnectId) {
        self.end_connect(id, Err(Rejection::Cancelled));
    }

    pub(super) fn connect_timeout(&mut self, id: ConnectId) {
        let Some(connect) = self.connects.get(&id) else { return };
        let peer = self.peers.get(&connect.peer);
        let rejection = peer.map_or(Rejection::NoAnswer, Peer::unreached_reason);
        self.end_connect(id, Err(rejection));
    }

    /// If connects wait for a session that the peer may still forget for lack of a packet, checks
    /// the session. The HELLO of the check is such a packet.
    pub(super) fn confirm_for_connects(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get(&address) else { return };
        if peer.liveness.is_verified() && !peer.is_confirmed() && !peer.connects.is_empty() {
            self.begin_handshake(now, address);
        }
    }

    /// Ends the connects to a peer whose session is usable and confirmed.
    pub(super) fn end_connects_to(&mut self, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address).filter(|peer| peer.is_connected()) else {
            return;
        };
        for id in core::mem::take(&mut peer.connects) {
            step();
            self.end_connect(id, Ok(()));
        }
    }

    fn end_connect(&mut self, id: ConnectId, result: Result<(), Rejection>) {
        let Some(connect) = self.connects.remove(&id) else { return };
        self.timers.remove(Timer::Connect(id));
        if let Some(peer) = self.peers.get_mut(&connect.peer) {
            peer.connects.remove(&id);
            self.idle.set(connect.peer, peer.idle_since());
        }
        self.events.push_back(SenderEvent::Connected(id, result));
    }
}
