//! Ports at which nothing listens, as ICMP messages report that quote packets of this endpoint.
//!
//! Anyone can forge such a message. One that quotes a HELLO or an OPEN under way shows a nonce that only
//! those know who have seen the packet, and who could as well drop all of them. After enough
//! [`Refusals`](super::liveness::Refusals), connects and calls end. One that
//! quotes a symbol is no more than a reason to find out at once whether the peer is there.

use super::checks::Purpose;
use super::waiting::{Flow, FlowKind};
use super::{Sender, with_port};
use crate::error::{Indeterminate, Outcome, Rejection};
use crate::naming::is_alias;
use crate::proto::steps::step;
use crate::time::Instant;
use crate::wire::handshake::nonce_of;
use crate::wire::{Kind, Prefix, Role};
use std::net::SocketAddr;

impl Sender {
    /// Learns that, as an ICMP message says, nothing listens at `to`. It quotes the beginning of a packet
    /// that was sent there.
    pub(in crate::proto) fn handle_refused(&mut self, now: Instant, to: SocketAddr, quoted: &[u8]) {
        match Kind::of(quoted) {
            Ok(Kind::Hello | Kind::Open) => {
                let Some(nonce) = nonce_of(quoted) else { return };
                if let Some(&address) = self.openings.get(&nonce) {
                    self.on_handshake_refused(now, address, to);
                } else if let Some((address, purpose)) = self.checks.find(nonce) {
                    self.on_check_refused(now, address, purpose, to);
                }
            }
            Ok(Kind::Symbol) => {
                let Some(session) = Prefix::session_of(quoted) else { return };
                // A peer whose session has a port of its own, or that has moved, is not found here: it is
                // unresponsive soon.
                let known = self.peers.get(&to).and_then(|peer| peer.session.as_ref());
                if known.is_some_and(|known| known.sealer.session() == session) {
                    self.verify_peer(now, to);
                }
            }
            _ => {}
        }
    }

    fn on_handshake_refused(&mut self, now: Instant, address: SocketAddr, to: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let Some(opening) = &peer.opening else { return };
        // A translator refuses what it has no mapping for, until the peer behind it sends; and the packets
        // that this host did not send were refused by its own firewall.
        if peer.address.ip() != to.ip() || is_alias(&address) || peer.local_error().is_some() {
            return;
        }
        let is_of_owner = opening.responder.is_some();
        let port = opening.port;
        peer.liveness.on_refused();
        if !peer.refusals.is_closed_after(now, peer.counts.last_heard) {
            return;
        }
        let is_elsewhere = |purpose| matches!(purpose, Purpose::Address(_));
        if is_of_owner {
            // The owner is gone, whoever is at the common port.
            self.on_departed(address, Indeterminate::PeerGone, false);
            self.seek_any_endpoint(now, address);
        } else if !self.checks.of(address).any(|(_, check)| is_elsewhere(check.purpose)) {
            self.fail_at_closed_port(address, port);
        }
    }

    /// Handles the refusal of a check, which proves the same as one of a handshake, but does not end calls:
    /// the handshake finds out.
    fn on_check_refused(
        &mut self,
        now: Instant,
        address: SocketAddr,
        purpose: Purpose,
        to: SocketAddr,
    ) {
        let is_there = self.peers.get(&address).is_some_and(|peer| peer.address.ip() == to.ip());
        // The others look for the peer where it may not be.
        if is_there && !matches!(purpose, Purpose::Address(_) | Purpose::Present) {
            self.verify_peer(now, address);
        }
    }

    /// Begins a handshake, which finds out whether a peer is gone.
    fn verify_peer(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        if !peer.is_idle() && !peer.is_over() && peer.refusals.may_begin_handshake(now) {
            self.begin_handshake(now, address);
        }
    }

    /// Ends what should not wait for a peer whose port is closed: connects and calls. Messages wait for
    /// their deadline, as in any outage.
    fn fail_at_closed_port(&mut self, address: SocketAddr, port: u16) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let closed = Rejection::PortClosed(with_port(peer.address, port));
        tracing::debug!(peer = %address, "its port is closed");
        // No call depends on it any more, and nothing more begins in its session.
        peer.watched = false;
        peer.liveness.unverify();
        if peer.session.is_some() {
            self.on_departed(address, Indeterminate::PeerGone, false);
        }
        let Some(peer) = self.peers.get(&address) else { return };
        let connects: Vec<_> = peer.connects.iter().copied().collect();
        for id in peer.unfinished() {
            step();
            let request = self.messages.get(&id).filter(|sent| sent.source.role == Role::Request);
            if let Some(request) = request {
                let outcome = if self.is_ruled_out(request) {
                    Outcome::Rejected(closed)
                } else {
                    Outcome::Unknown(Indeterminate::PeerGone)
                };
                self.finish(id, outcome);
            }
        }
        for id in connects {
            self.end_connect(id, Err(closed));
        }
        for kind in [FlowKind::Requests, FlowKind::Connects] {
            while let Some(ticket) = self.line.first_of(Flow { peer: address, kind }) {
                step();
                self.end_waiting(ticket, closed);
            }
        }
        self.reschedule_all_of(address);
        if let Some(peer) = self.peers.get(&address)
            && peer.is_idle()
        {
            self.end_handshake(address);
        }
        self.reschedule_peer(address);
    }
}
