//! Handshakes, and the sessions that they open or that the receiving half has accepted.

use super::hellos::{HelloOf, HelloRank};
use super::liveness::Resume;
use super::peer::Peer;
use super::peers::with_port;
use super::{Outgoing, Sender};
use crate::config::Security;
use crate::error::{Indeterminate, Outcome};
use crate::id::Incarnation;
use crate::naming::{Naming, is_alias};
use crate::proto::observe::{Observation, emit};
use crate::proto::session::{
    Chooser, Discovery, Invitation, Opening, Peering, Remote, more_ports, ports,
};
use crate::proto::steps::step;
use crate::time::Instant;
use crate::wire::handshake::{Accept, AcceptFields, Initiation, OpenFields, Retry, Versions};
use crate::wire::keys::{FlowKeys, SessionKeys};
use crate::wire::packet::VERSION;
use crate::wire::{Certificate, Role};
use std::net::SocketAddr;

impl Sender {
    /// Learns a discovery of the receiving half.
    pub(in crate::proto) fn learn(&mut self, now: Instant, found: Discovery) {
        match found {
            Discovery::Peer(peering) => self.adopt(now, *peering),
            Discovery::Routes(peer, incarnation, routes) => {
                let session = self.peers.get(&peer).and_then(|peer| peer.session.as_ref());
                if session.is_some_and(|session| session.remote == incarnation) {
                    self.learn_routes(peer, routes);
                }
            }
            Discovery::Elsewhere(sighting) => self.on_sighting(now, &sighting),
        }
    }

    /// Adopts a session that the receiving half accepted, so that messages to its initiator need no
    /// handshake of their own.
    fn adopt(&mut self, now: Instant, peering: Peering) {
        let Peering { peer, incarnation, flow, capabilities, port, ports, local, routes } = peering;
        let entered = if is_alias(&peer) {
            self.enter_translated_peer(now, peer, &routes)
        } else {
            self.enter_peer(now, peer, local)
        };
        if entered.is_err() {
            return;
        }
        self.learn_local(peer, local);
        let route = routes.first().copied();
        let known = self.peers.get(&peer);
        let has_ended = known.is_some_and(Peer::has_ended);
        match known.and_then(|peer| peer.session.as_ref()) {
            Some(session) if session.remote == incarnation => self.learn_ports(peer, port, ports),
            // A session that has not ended is never replaced here.
            known if known.is_none() || has_ended => {
                self.on_replaced(peer, incarnation);
                self.install(now, peer, Remote { incarnation, capabilities }, flow, true);
                self.learn_ports(peer, port, ports);
                self.learn_routes(peer, routes);
            }
            // It restarted, or another endpoint claims its port. A handshake shows which one is at
            // that address. Until then, nothing is begun in a session that may be dead.
            _ => {
                if let Some(known) = self.peers.get_mut(&peer) {
                    known.liveness.unverify();
                }
                if self.peers.get(&peer).is_some_and(Peer::is_idle) {
                    self.look_at_name(peer);
                }
                self.begin_handshake(now, peer);
                self.reschedule_all_of(peer);
            }
        }
        if let Some(route) = route {
            self.check_other_names(now, incarnation, peer, route);
        }
    }

    /// Handles a RETRY: the peer is there, and an OPEN returns its token at once.
    pub(in crate::proto) fn handle_retry(&mut self, now: Instant, packet: &[u8]) {
        let retry = match Retry::parse(self.identity.hello_key(), packet) {
            Ok(Some(retry)) => retry,
            Ok(None) => return self.counters.forged += 1,
            Err(_) => return self.counters.malformed += 1,
        };
        if self.on_retry(now, &retry).is_none() && !self.on_check_retry(now, retry.nonce) {
            self.counters.late_answers += 1;
        }
    }

    fn on_retry(&mut self, now: Instant, retry: &Retry) -> Option<()> {
        let address = *self.openings.get(&retry.nonce)?;
        let translated = self.resolver.naming(retry.observed) != Naming::Own;
        let peer = self.peers.get_mut(&address)?;
        let opening = peer.opening.as_mut()?;
        if opening.is_outdated(now) || !peer.liveness.takes_retry() {
            return None;
        }
        if opening.invitation.as_ref().is_some_and(|known| known.translated != translated) {
            core::mem::swap(&mut opening.invitation, &mut opening.other);
        }
        let fresh = if opening.invitation.is_some() {
            None
        } else {
            Some(Box::new(self.invite(address, retry, translated)?))
        };
        let peer = self.peers.get_mut(&address)?;
        let opening = peer.opening.as_mut()?;
        if fresh.is_some() {
            opening.invitation = fresh;
        }
        // An endpoint there supports this version.
        opening.other_version = None;
        opening.invitation.as_mut()?.token = retry.token;
        if let Some(sample) = opening.round_trip(now, retry.path) {
            peer.rtt.sample(now, sample);
        }
        // The path has delivered the packet.
        peer.paths.heard(now, retry.path, 0);
        peer.refusals.clear();
        opening.on_retry(retry.path, retry.return_path);
        let attempt = peer.liveness.on_retry();
        self.hellos.due.set(HelloOf::Handshake(address), Some(HelloRank { attempt, since: now }));
        self.reschedule_peer(address);
        Some(())
    }

    /// Handles a VERSION: the peer supports other versions. It may be a third party's replay, or
    /// come from one of several endpoints at a port, so the handshake continues, but callers learn
    /// of it.
    pub(in crate::proto) fn handle_versions(&mut self, packet: &[u8]) {
        let counter = match Versions::parse(self.identity.hello_key(), packet) {
            Ok(Some(known)) => match self.openings.get(&known.nonce) {
                Some(address) => {
                    let peer = self.peers.get_mut(address);
                    let theirs = known.versions.iter().copied().max();
                    if let Some(opening) = peer.and_then(|peer| peer.opening.as_mut())
                        && !known.versions.contains(&VERSION)
                    {
                        opening.other_version = theirs.or(opening.other_version);
                    }
                    return;
                }
                None => &mut self.counters.late_answers,
            },
            Ok(None) => &mut self.counters.forged,
            Err(_) => &mut self.counters.malformed,
        };
        *counter += 1;
    }

    /// The contents of an OPEN to `address`, and the state that decrypts its answer.
    fn invite(
        &mut self,
        address: SocketAddr,
        retry: &Retry,
        translated: bool,
    ) -> Option<Invitation> {
        let peer = self.peers.get(&address)?;
        self.invitations += 1;
        let count = self.invitations;
        let session = self
            .identity
            .choose_session(Chooser::Initiator, count, |taken| self.sessions.contains_key(&taken));
        let fields = OpenFields {
            incarnation: self.identity.incarnation,
            addressed: with_port(peer.address, peer.opening.as_ref()?.port),
            session,
            capabilities: self.config.capabilities(),
            port: self.config.ports.first,
            more_ports: more_ports(self.config.ports.count),
            translated,
        };
        let psk = self.identity.preshared(0);
        let ephemeral = self.ephemeral.draw();
        let initiation = Initiation::new(psk, retry.nonce, ephemeral, &fields);
        Some(Invitation { token: retry.token, initiation, session, translated })
    }

    /// Handles an ACCEPT. Returns the peer if it opens a session: the receiving half adopts the
    /// other direction.
    pub(in crate::proto) fn handle_accept(
        &mut self,
        now: Instant,
        packet: &[u8],
    ) -> Option<Peering> {
        let counter = match Accept::parse(self.identity.hello_key(), packet) {
            Ok(Some(accept)) => match self.openings.get(&accept.nonce).copied() {
                Some(address) => return self.on_accept(now, address, &accept),
                None => &mut self.counters.late_answers,
            },
            Ok(None) => &mut self.counters.forged,
            Err(_) => &mut self.counters.malformed,
        };
        *counter += 1;
        None
    }

    fn on_accept(&mut self, now: Instant, address: SocketAddr, accept: &Accept) -> Option<Peering> {
        let peer = self.peers.get_mut(&address)?;
        let opening = peer.opening.as_mut()?;
        let made = [&mut opening.invitation, &mut opening.other].into_iter().flatten();
        let opened = made.into_iter().find_map(|invitation| {
            Some((invitation.session, invitation.initiation.accept(accept)?))
        });
        let Some((session, (fields, secrets))) = opened else {
            self.counters.forged += 1;
            return None;
        };
        let opening = self.take_opening(now, address, fields.incarnation)?;
        let peer = self.peers.get_mut(&address)?;
        if let Some(sample) = opening.since_opened(now) {
            peer.rtt.begin_with(sample);
        }
        peer.paths.heard(now, accept.path, 0);
        let port = if fields.port == 0 { opening.port } else { fields.port };
        let ports = ports(fields.more_ports);
        let keys = SessionKeys::new(&secrets, session, fields.session);
        let AcceptFields { incarnation, capabilities, .. } = fields;
        self.on_replaced(address, incarnation);
        self.learn_ports(address, port, ports);
        let remote = Remote { incarnation, capabilities };
        self.install(now, address, remote, keys.forward, false);
        Some(Peering {
            peer: address,
            incarnation,
            flow: keys.backward,
            capabilities,
            port,
            ports,
            local: None,
            routes: Vec::new(),
        })
    }

    /// Ends the handshake that `responder` has answered, unless the answer is out of date or
    /// `responder` is not the intended one. If anything waits for it, the handshake then continues:
    /// after an outdated answer, under another nonce.
    fn take_opening(
        &mut self,
        now: Instant,
        address: SocketAddr,
        responder: Incarnation,
    ) -> Option<Opening> {
        let peer = self.peers.get(&address)?;
        let opening = peer.opening.as_ref()?;
        // The port of an endpoint that is gone is soon another's, perhaps that of another service
        // with the same key.
        let is_over = peer.is_over()
            && peer.session.as_ref().is_some_and(|session| session.remote == responder);
        let was_intended =
            opening.responder.is_none_or(|intended| intended == responder) && !is_over;
        if was_intended && !opening.is_outdated(now) {
            return self.end_handshake(address);
        }
        self.counters.late_answers += 1;
        if peer.is_idle() {
            self.end_handshake(address);
            self.reschedule_peer(address);
        } else if was_intended {
            self.renew_handshake(now, address);
            self.begin_handshake(now, address);
        } else if let Some(opening) = self.peers.get_mut(&address).and_then(|p| p.opening.as_mut())
        {
            // The endpoint that answered is not the intended one, which the next attempt may reach.
            opening.invitation = None;
            opening.other = None;
        }
        None
    }

    /// Handles the report of a peer, in its session, that the session is alive: an answer to the
    /// handshake or the check with `nonce`. A session that has ended stays ended.
    pub(super) fn on_alive(&mut self, now: Instant, address: SocketAddr, nonce: u64) {
        if self.on_check_alive(now, address, nonce) {
            return;
        }
        let peer = self.peers.get(&address).filter(|peer| !peer.is_over());
        let opening = peer.and_then(|peer| peer.opening.as_ref());
        if opening.is_none_or(|opening| opening.nonce != nonce || opening.is_outdated(now)) {
            return self.counters.late_answers += 1;
        }
        let Some(opening) = self.end_handshake(address) else { return };
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let resumed = peer.confirm_alive(now, opening.began_at());
        self.reschedule_peer(address);
        self.resume(now, address, resumed);
    }

    /// Notes that the incarnation of the session with a peer, if there is one, is being replaced, unless it
    /// is `by` itself.
    fn on_replaced(&mut self, address: SocketAddr, by: Incarnation) {
        let Some(peer) = self.peers.get(&address) else { return };
        if peer.session.as_ref().is_some_and(|session| session.remote != by) {
            // It may have a port of its own, and another endpoint have taken over the common one.
            let may_answer = peer.port != address.port() && !peer.has_ended();
            self.on_departed(address, Indeterminate::PeerRestarted, may_answer);
        }
    }

    /// Uses a new session from now on. `confirmed` says that the receiver already holds it for
    /// good.
    ///
    /// Messages of which packets were sent in the old one become indeterminate, because its
    /// receiver may have delivered them, unless it has ruled that out.
    pub(super) fn install(
        &mut self,
        now: Instant,
        address: SocketAddr,
        remote: Remote,
        flow: FlowKeys,
        confirmed: bool,
    ) {
        let capabilities = self.config.capabilities_with(remote.capabilities);
        let remote = Remote { capabilities, ..remote };
        let Some(peer) = self.peers.get_mut(&address) else { return };
        if let Some(old) = &peer.session {
            let old_remote = old.remote;
            self.sessions.remove(&old.opener.session());
            self.by_incarnation.remove(&(old.remote, address));
            for id in peer.unfinished() {
                step();
                let Some(peer) = self.peers.get(&address) else { return };
                let Some(Outgoing { source, transfer }) = self.messages.get_mut(&id) else {
                    continue;
                };
                // The new incarnation has no request to be withdrawn.
                let is_in_vain =
                    source.role == Role::Withdrawal && remote.incarnation != old_remote;
                if is_in_vain || !peer.rules_out(source.role, transfer) {
                    self.finish(id, Outcome::Unknown(Indeterminate::PeerRestarted));
                } else if transfer.has_begun() {
                    transfer.unsend(source);
                }
            }
        }
        self.use_own_paths(address);
        self.drop_checks(address);
        let Some(peer) = self.peers.get_mut(&address) else { return };
        self.sessions.insert(flow.answers.session, address);
        self.by_incarnation.insert((remote.incarnation, address));
        peer.install(now, remote, flow, confirmed);
        self.end_handshake(address);
        self.counters.sessions_opened += 1;
        tracing::debug!(peer = %address, remote = ?remote.incarnation, "session opened");
        emit(&self.observer, || Observation::SessionOpened { peer: address, sends: true });
        self.reschedule_peer(address);
        self.resume(now, address, Resume::All);
        self.confirm_for_connects(now, address);
    }

    /// Begins a handshake with a peer for which something new waits, if there is no session, if the
    /// peer has not been heard from for too long, or if it did not answer.
    pub(super) fn seek_session(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let stops = peer.check_stale(now);
        self.idle.remove(address);
        if !peer.liveness.is_verified() || peer.liveness.is_unresponsive() {
            self.begin_handshake(now, address);
        }
        if stops {
            self.reschedule_all_of(address);
        }
    }

    /// The peer has ended the session. Nothing begins in it any more: the next message waits for a
    /// handshake, so that it certainly was not delivered if there is no answer. So do messages that the
    /// peer has certainly not delivered.
    pub(super) fn on_ended(&mut self, now: Instant, address: SocketAddr, end: &Certificate) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        // A peer that says so again costs no more work.
        if !peer.end_session() {
            return;
        }
        // No call depends on it any more.
        peer.watched = false;
        self.on_departed(address, Indeterminate::PeerRestarted, false);
        let Some(peer) = self.peers.get(&address) else { return };
        for id in peer.unfinished() {
            let Some(Outgoing { source, transfer }) = self.messages.get_mut(&id) else { continue };
            // The next incarnation has no use for responses and withdrawals.
            let is_new = matches!(source.role, Role::Plain | Role::Request);
            let is_ruled_out = end.rules_out(id) || peer.rules_out(source.role, transfer);
            if transfer.has_begun() && is_new && is_ruled_out {
                transfer.unsend(source);
            }
        }
        self.leave_session(now, address);
    }

    /// The peer takes no new messages. If it shares its port with others, one of them takes over,
    /// once nothing is under way to this one: see [`hand_over`](Self::hand_over).
    pub(super) fn on_closing(&mut self, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        if !peer.hands_over() {
            peer.on_closing(&address);
            // Messages that have not begun wait from now on.
            if peer.hands_over() {
                self.reschedule_all_of(address);
            }
        }
    }

    /// Leaves the session with a peer from which another endpoint takes over, if nothing is under way
    /// to it.
    pub(super) fn hand_over(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get(&address) else { return };
        let has_begun =
            |id| self.messages.get(&id).is_some_and(|message| message.transfer.has_begun());
        if peer.hands_over() && !peer.is_over() && !peer.unfinished().into_iter().any(has_begun) {
            self.leave_session(now, address);
        }
    }

    /// Looks for another endpoint than that of the session, as soon as something waits for one.
    fn leave_session(&mut self, now: Instant, address: SocketAddr) {
        // A handshake under way asks the endpoint that is gone.
        self.end_handshake(address);
        let Some(peer) = self.peers.get_mut(&address) else { return };
        peer.liveness.unverify();
        if !peer.is_idle() {
            self.begin_handshake(now, address);
        }
        self.reschedule_all_of(address);
    }

    /// Begins a handshake with a peer, or another attempt at it if that is due.
    pub(super) fn begin_handshake(&mut self, now: Instant, address: SocketAddr) {
        let Some(peer) = self.peers.get(&address) else { return };
        let opening = peer.opening.as_ref().filter(|_| !is_alias(&address));
        let is_due = peer.liveness.attempt_is_due(now);
        let is_elsewhere = peer.has_moved(&address);
        let exhausted = opening.is_some_and(|opening| opening.responder.is_some() || is_elsewhere)
            && peer.liveness.has_tried_enough()
            && is_due;
        let (port, responder) = peer.handshake_target(&address, exhausted);
        if exhausted {
            self.end_handshake(address);
            self.look_at_name(address);
        }
        let Some(peer) = self.peers.get(&address) else { return };
        match &peer.opening {
            Some(opening) if is_due && opening.is_outdated(now) => {
                self.renew_handshake(now, address);
            }
            Some(_) => {}
            None => self.open_handshake(now, address, port, responder),
        }
        let Some(peer) = self.peers.get_mut(&address) else { return };
        if peer.liveness.attempt_is_due(now) {
            peer.liveness.attempt(peer.paths.len());
            let attempt = peer.liveness.attempt_to_send();
            let rank = attempt.map(|attempt| HelloRank { attempt, since: now });
            self.hellos.due.set(HelloOf::Handshake(address), rank);
        }
        self.reschedule_peer(address);
    }

    /// Begins a handshake with any endpoint where a peer is known: at the port of its session, and where it
    /// has moved, nothing listens.
    pub(super) fn seek_any_endpoint(&mut self, now: Instant, address: SocketAddr) {
        self.end_handshake(address);
        self.look_at_name(address);
        let Some(peer) = self.peers.get_mut(&address) else { return };
        peer.refusals.clear();
        let (port, responder) = peer.handshake_target(&address, true);
        self.open_handshake(now, address, port, responder);
        self.begin_handshake(now, address);
    }

    fn open_handshake(
        &mut self,
        now: Instant,
        address: SocketAddr,
        port: u16,
        responder: Option<Incarnation>,
    ) {
        let opening = Opening::new(now, self.draw_nonce(address), port, responder);
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.opening = Some(opening);
            peer.liveness.seek(now);
        }
    }

    /// Continues a handshake under another nonce, because it has lasted for so long that the
    /// answers to its first packets may be out of date.
    fn renew_handshake(&mut self, now: Instant, address: SocketAddr) {
        let nonce = self.draw_nonce(address);
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let Some(opening) = &mut peer.opening else { return };
        self.openings.remove(&opening.nonce);
        opening.renew(now, nonce);
        peer.liveness.seek(now);
    }

    /// Uses other keys in handshakes that begin from now on. Those under way are bound to the key that they
    /// began with, which the peers may not have any more, so they begin again.
    pub(in crate::proto) fn set_security(&mut self, now: Instant, security: &Security) {
        if !self.identity.set_security(security) {
            return;
        }
        let mut under_way: Vec<SocketAddr> = self.openings.values().copied().collect();
        // Sorted, so that the order does not change from run to run.
        under_way.sort_unstable();
        for address in under_way {
            self.renew_handshake(now, address);
            self.begin_handshake(now, address);
        }
    }

    /// Draws the nonce of a handshake with a peer, under which the handshake is found from now on.
    fn draw_nonce(&mut self, address: SocketAddr) -> u64 {
        self.handshakes += 1;
        let drawn = self.identity.seed.derive("handshake nonce", self.handshakes);
        let nonce = u64::from_be_bytes(drawn);
        self.openings.insert(nonce, address);
        nonce
    }

    /// Ends the handshake with a peer, if one is under way: no more packets of it are sent, and no
    /// answers accepted.
    pub(super) fn end_handshake(&mut self, address: SocketAddr) -> Option<Opening> {
        let peer = self.peers.get_mut(&address)?;
        let opening = peer.opening.take()?;
        peer.liveness.end_attempts();
        self.openings.remove(&opening.nonce);
        self.hellos.due.remove(HelloOf::Handshake(address));
        Some(opening)
    }
}
