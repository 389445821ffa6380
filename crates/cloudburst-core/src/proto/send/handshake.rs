//! Handshakes and sessions: asking, opening, adopting.

use super::Sender;
use super::hellos::HelloRank;
use super::peer::Peer;
use super::silence::GoOn;
use crate::error::{Indeterminate, Outcome};
use crate::id::Incarnation;
use crate::proto::session::{Opening, Peering, ports};
use crate::proto::steps::step;
use crate::time::Instant;
use crate::wire::HelloAck;
use crate::wire::keys::FlowKeys;
use std::net::SocketAddr;

impl Sender {
    /// Takes up a session that the receiver half accepted, so that messages to its initiator
    /// need no handshake of their own.
    pub(in crate::proto) fn adopt(&mut self, now: Instant, peering: Peering) {
        let Peering { peer, incarnation, flow, port, ports } = peering;
        if self.enter_peer(peer).is_err() {
            return;
        }
        match self.peers.get(&peer).and_then(|peer| peer.session.as_ref()) {
            None => {
                self.install(now, peer, incarnation, flow, true);
                self.learn_ports(peer, port, ports);
            }
            Some(session) if session.remote == incarnation => self.learn_ports(peer, port, ports),
            // It restarted, or somebody else claims its port: whoever is at that address says.
            // Until then nothing is begun in a session that may be dead.
            Some(_) => {
                if let Some(known) = self.peers.get_mut(&peer) {
                    known.usable = false;
                }
                self.begin_handshake(now, peer);
                self.reschedule_all_of(peer);
            }
        }
    }

    /// Takes a HELLO_ACK that arrived. Returns the peer, if it opens a session: the receiver half
    /// accepts the other direction of it.
    pub(in crate::proto) fn handle_hello_ack(
        &mut self,
        now: Instant,
        packet: &[u8],
    ) -> Option<Peering> {
        let counter = match HelloAck::parse(&self.identity.hello_key, packet) {
            Ok(Some(ack)) => match self.take_opening(now, &ack) {
                Some((address, opening)) => return self.on_opened(now, address, &opening, &ack),
                None => &mut self.counters.late_answers,
            },
            Ok(None) => &mut self.counters.forged,
            Err(_) => &mut self.counters.malformed,
        };
        *counter += 1;
        None
    }

    /// Ends the handshake that `ack` answers, unless the answer is out of date: then the handshake
    /// goes on under another nonce, if messages wait for it.
    fn take_opening(&mut self, now: Instant, ack: &HelloAck) -> Option<(SocketAddr, Opening)> {
        let address = self.answered_by(ack)?;
        let outdated = |peer: &Peer| peer.opening.as_ref().is_some_and(|o| o.is_outdated(now));
        if self.peers.get(&address).is_some_and(|peer| !peer.is_idle() && outdated(peer)) {
            self.renew_handshake(now, address);
            self.begin_handshake(now, address);
            return None;
        }
        let opening = self.end_handshake(address)?;
        if opening.is_outdated(now) {
            self.reschedule_peer(address);
            return None;
        }
        Some((address, opening))
    }

    /// Handles the end of a handshake. Returns the peer, if that opens a session.
    fn on_opened(
        &mut self,
        now: Instant,
        address: SocketAddr,
        opening: &Opening,
        ack: &HelloAck,
    ) -> Option<Peering> {
        let peer = self.peers.get_mut(&address)?;
        if let Some(sample) = opening.round_trip(now, ack.path) {
            peer.rtt.sample(sample);
        }
        // The HELLO got there.
        peer.paths.heard(now, ack.path, 0);
        let port = if ack.port == 0 { opening.port } else { ack.port };
        let ports = ports(ack.more_ports);
        self.learn_ports(address, port, ports);
        let peer = self.peers.get_mut(&address)?;
        if ack.current_alive && peer.session.is_some() {
            let go_on = peer.confirmed_alive(now);
            self.reschedule_peer(address);
            self.go_on(now, address, go_on);
            return None;
        }
        let keys = self.identity.key.session(ack);
        self.install(now, address, ack.responder, keys.forward, false);
        let (peer, incarnation, flow) = (address, ack.responder, keys.backward);
        Some(Peering { peer, incarnation, flow, port, ports })
    }

    /// The peer whose handshake `ack` answers, if it may.
    fn answered_by(&self, ack: &HelloAck) -> Option<SocketAddr> {
        let address = *self.openings.get(&ack.nonce)?;
        let peer = self.peers.get(&address)?;
        // Only its owner can say that a session lives.
        let owner = peer.session.as_ref().map(|session| session.remote);
        let asked = if ack.current_alive { owner } else { peer.opening.as_ref()?.asked };
        let ours = ack.initiator == self.identity.incarnation;
        (ours && asked.is_none_or(|asked| asked == ack.responder)).then_some(address)
    }

    /// Uses a new session from now on, `confirmed` if the receiver holds it for good already. What
    /// was under way in the old one is in doubt.
    pub(super) fn install(
        &mut self,
        now: Instant,
        address: SocketAddr,
        remote: Incarnation,
        flow: FlowKeys,
        confirmed: bool,
    ) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        if let Some(old) = &peer.session {
            self.sessions.remove(&old.opener.session());
            for id in peer.unfinished() {
                step();
                if self.messages.get(&id).is_some_and(|message| message.leg.started_at.is_some()) {
                    self.finish(id, Outcome::Unknown(Indeterminate::PeerRestarted));
                }
            }
        }
        let Some(peer) = self.peers.get_mut(&address) else { return };
        self.sessions.insert(flow.answers.session, address);
        peer.install(now, remote, flow, confirmed);
        self.end_handshake(address);
        self.counters.sessions_opened += 1;
        tracing::debug!(peer = %address, ?remote, "session opened");
        self.reschedule_peer(address);
        self.go_on(now, address, GoOn::All);
    }

    /// Begins a handshake with a peer, or another attempt at it if that is due.
    pub(super) fn begin_handshake(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get(&address) else { return };
        let in_vain = peer.opening.as_ref().is_some_and(|opening| opening.is_in_vain(now));
        let (port, asked) = peer.whom_to_ask(address.port(), in_vain);
        if in_vain {
            self.end_handshake(address);
        }
        let Some(peer) = self.peers.get(&address) else { return };
        match &peer.opening {
            Some(opening) if opening.is_due(now) && opening.is_outdated(now) => {
                self.renew_handshake(now, address);
            }
            Some(_) => {}
            None => {
                let opening = Opening::new(now, self.draw_nonce(address), port, asked);
                if let Some(peer) = self.peers.get_mut(&address) {
                    peer.opening = Some(opening);
                }
            }
        }
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let Some(opening) = &mut peer.opening else { return };
        if opening.is_due(now) {
            opening.attempt(peer.paths.len());
            let rank = opening.attempt_to_send().map(|attempt| HelloRank { attempt, since: now });
            self.hellos.set(&mut peer.hello_key, rank, address);
        }
        self.reschedule_peer(address);
    }

    /// A handshake has lasted for so long that the answers to its first HELLOs may be out of date: it
    /// goes on under another nonce.
    fn renew_handshake(&mut self, now: Instant, address: SocketAddr) {
        let nonce = self.draw_nonce(address);
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let Some(opening) = &mut peer.opening else { return };
        self.openings.remove(&opening.nonce);
        opening.renew(now, nonce);
    }

    /// The nonce of a handshake with a peer, which is found by it from now on.
    fn draw_nonce(&mut self, address: SocketAddr) -> u64 {
        self.handshakes += 1;
        let drawn = self.identity.seed.derive("hello nonce", self.handshakes);
        let nonce = u64::from_be_bytes(drawn[..8].try_into().expect("8 of 16 bytes"));
        self.openings.insert(nonce, address);
        nonce
    }

    /// Ends the handshake with a peer, if one is under way: no more HELLO of it is sent, and no
    /// HELLO_ACK taken.
    pub(super) fn end_handshake(&mut self, address: SocketAddr) -> Option<Opening> {
        let peer = self.peers.get_mut(&address)?;
        let opening = peer.opening.take()?;
        self.openings.remove(&opening.nonce);
        self.hellos.set(&mut peer.hello_key, None, address);
        Some(opening)
    }
}
