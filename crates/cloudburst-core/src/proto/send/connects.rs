//! Connects: callers that wait for the session with a peer, without a message.

use super::peer::Peer;
use super::waiting::{Flow, FlowKind, Ticket, Waiting};
use super::{Accepts, SendOptions, Sender, SenderEvent, Timer};
use crate::error::{Rejection, StartError};
use crate::id::ConnectId;
use crate::proto::steps::step;
use crate::time::Instant;
use std::net::SocketAddr;

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
        peer: SocketAddr,
        options: &SendOptions,
    ) -> Result<ConnectId, StartError> {
        if self.accepts != Accepts::All {
            return Err(StartError::Closing);
        }
        let flow = Flow { peer, kind: FlowKind::Connects };
        let starts = self.starts_at_once(now, flow, 0, 0, options.wait)?;
        let id = ConnectId(self.next_connect);
        self.next_connect += 1;
        let deadline = now + options.deadline.unwrap_or(self.config.deadline);
        if starts {
            self.start_connect(now, id, peer, deadline);
        } else {
            self.enqueue(Ticket::Connect(id), Waiting::Connect { peer, deadline });
            self.end_connects_to(peer);
        }
        Ok(id)
    }

    /// Starts a connect to a peer that was entered.
    pub(super) fn start_connect(
        &mut self,
        now: Instant,
        id: ConnectId,
        address: SocketAddr,
        deadline: Instant,
    ) {
        self.timers.set(Timer::Connect(id), Some(deadline));
        self.connects.insert(id, address);
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.connects.insert(id);
        }
        self.seek_session(now, address);
        self.confirm_for_connects(now, address);
        self.end_connects_to(address);
    }

    /// Ends a connect before its deadline. Does nothing if it has ended.
    pub(crate) fn cancel_connect(&mut self, id: ConnectId) {
        self.end_connect(id, Err(Rejection::Cancelled));
        self.end_waiting(Ticket::Connect(id), Rejection::Cancelled);
    }

    pub(super) fn connect_timeout(&mut self, id: ConnectId) {
        let Some(address) = self.connects.get(&id) else {
            return self.end_waiting(Ticket::Connect(id), Rejection::NotStarted);
        };
        let peer = self.peers.get(address);
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

    /// Ends the connects to a peer whose session is usable and confirmed, those that wait in line among
    /// them.
    pub(super) fn end_connects_to(&mut self, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address).filter(|peer| peer.is_connected()) else {
            return;
        };
        for id in core::mem::take(&mut peer.connects) {
            step();
            self.end_connect(id, Ok(()));
        }
        let flow = Flow { peer: address, kind: FlowKind::Connects };
        while let Some(Ticket::Connect(id)) = self.line.first_of(flow) {
            self.dequeue(Ticket::Connect(id));
            self.events.push_back(SenderEvent::Connected(id, Ok(())));
        }
    }

    pub(super) fn end_connect(&mut self, id: ConnectId, result: Result<(), Rejection>) {
        let Some(address) = self.connects.remove(&id) else { return };
        self.timers.remove(Timer::Connect(id));
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.connects.remove(&id);
            self.idle.set(address, peer.forget_at());
        }
        self.events.push_back(SenderEvent::Connected(id, result));
    }
}
