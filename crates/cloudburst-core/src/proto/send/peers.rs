//! The peers of a sender: meeting them, their ports and paths, their timers, forgetting them.

use super::path_mtu::PathMtu;
use super::peer::Peer;
use super::transmit::headers;
use super::{Sender, Timer};
use crate::error::StartError;
use crate::id::Incarnation;
use crate::naming::is_alias;
use crate::path::{Order, PathResolver, PathSet, PathStats, Via};
use crate::proto::session::Finding;
use crate::proto::steps::step;
use crate::time::Instant;
use std::net::{IpAddr, SocketAddr};

impl Sender {
    pub(super) fn peer_timeout(&mut self, now: Instant, address: SocketAddr) {
        self.hand_over(now, address);
        let Some(peer) = self.peers.get_mut(&address) else { return };
        peer.rtt.on_timeout(now);
        if peer.is_idle() {
            // No caller waits for an answer any more. A handshake still completes its current
            // attempt. If the peer is unresponsive, the next message begins with a handshake.
            if !peer.liveness.is_unresponsive() {
                drop(peer.liveness.reset());
            }
            if peer.liveness.attempt_is_due(now) {
                self.end_handshake(address);
            }
            return self.reschedule_peer(address);
        }
        let rto = peer.rtt.rto();
        if peer.liveness.becomes_unresponsive(now, rto) {
            // A message that has not begun waits until the peer answers: if it has restarted, the
            // message is certainly not delivered, and goes to the new incarnation.
            for id in peer.unfinished() {
                if self.messages.get(&id).is_some_and(|message| message.transfer.has_begun()) {
                    peer.liveness.waiting.push_back(id);
                }
            }
            self.findings.push_back(Finding::Unresponsive(address));
            self.reschedule_all_of(address);
        }
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.liveness.begin_period(now, rto, peer.paths.len());
        }
        self.grant_retries(now, address);
        // An attempt is due, or the peer has become unresponsive: it may have been replaced.
        let Some(peer) = self.peers.get(&address) else { return };
        if !peer.liveness.needs_attempt(now) {
            return;
        }
        // Routes and regenerated paths alternate until something is answered.
        if peer.liveness.has_tried_enough() && !self.try_routes(address) {
            // With three of four spines dead, all of 16 hashed ports lead over dead ones for one
            // pair of hosts in a hundred. p99 is 1.8 ms with regenerated paths, and was 25 ms
            // without.
            self.regenerate_paths(address);
        }
        self.begin_handshake(now, address);
    }

    /// Learns at which ports the peer accepts messages, to which there may be other or more paths.
    /// If the order does not fit that many, only the first port is used.
    pub(super) fn learn_ports(&mut self, address: SocketAddr, port: u16, ports: u16) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        if peer.by_routes || (peer.port, peer.ports) == (port, ports) {
            return;
        }
        self.use_ports(address, port, ports);
    }

    pub(super) fn use_ports(&mut self, address: SocketAddr, port: u16, ports: u16) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let to = with_port(peer.address, port);
        let order = self.config.order;
        let start = self.rng.next_u64();
        for ports in [ports, 1] {
            let (slots, vias) =
                slots_and_paths(&*self.resolver, to, ports, peer.local, peer.path_generation);
            if peer.paths.replace(&slots, &vias, order, start).is_ok() {
                peer.port = port;
                peer.ports = ports;
                peer.headers = longest_headers(&peer.paths, &*self.resolver);
                break;
            }
        }
    }

    /// Has our own paths to the peer leave from `local` from now on: the peer has opened a session
    /// with that address, and firewalls on the way may let no other pass. Routes have local
    /// addresses of their own.
    pub(super) fn learn_local(&mut self, address: SocketAddr, local: Option<IpAddr>) {
        let Some(peer) = self.peers.get_mut(&address).filter(|_| !is_alias(&address)) else {
            return;
        };
        if core::mem::replace(&mut peer.local, local) != local && !peer.by_routes {
            let port = peer.port;
            let ports = peer.ports;
            self.use_ports(address, port, ports);
        }
    }

    /// Ensures that `address` is among the peers. Packets to a new one leave from `local`.
    pub(super) fn enter_peer(
        &mut self,
        now: Instant,
        address: SocketAddr,
        local: Option<IpAddr>,
    ) -> Result<(), StartError> {
        match self.peers.get(&address) {
            Some(peer) if peer.reachable => return Ok(()),
            Some(_) => return Err(StartError::NoPath(address)),
            // Another endpoint may have its address by now.
            None if is_alias(&address) => return Err(StartError::Gone(address)),
            None => {}
        }
        let (slots, vias) = slots_and_paths(&*self.resolver, address, 1, local, 0);
        if vias.is_empty() {
            return Err(StartError::NoPath(address));
        }
        let paths = PathSet::new(&slots, &vias, self.config.order, self.rng.next_u64())
            .map_err(|source| StartError::Order { peer: address, source })?;
        self.insert_peer(now, address, paths, local)
    }

    /// Ensures that `address` is among the peers and is reached by `routes` alone.
    pub(super) fn enter_translated_peer(
        &mut self,
        now: Instant,
        address: SocketAddr,
        routes: &[Via],
    ) -> Result<(), StartError> {
        if !self.peers.contains_key(&address) {
            let paths = PathSet::new(routes, routes, Order::default(), self.rng.next_u64())
                .map_err(|source| StartError::Order { peer: address, source })?;
            self.insert_peer(now, address, paths, None)?;
        }
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.by_routes = true;
            peer.reachable = true;
        }
        self.line.reopen(address);
        self.learn_routes(address, routes.to_vec());
        Ok(())
    }

    /// Learns by which routes the packets of a peer arrive.
    pub(super) fn learn_routes(&mut self, address: SocketAddr, routes: Vec<Via>) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        peer.routes = routes;
        if peer.by_routes {
            self.use_routes(address);
        }
    }

    /// Switches to the routes by which a peer's packets arrive, if no packet to it was answered in
    /// this session: a firewall may let nothing else pass. Returns whether it has switched.
    pub(super) fn try_routes(&mut self, address: SocketAddr) -> bool {
        let Some(peer) = self.peers.get_mut(&address) else { return false };
        // Only then: another endpoint at the same address could otherwise claim the port of a live
        // one, and receive packets that are meant for it.
        let answered = peer.session.as_ref().is_none_or(|session| session.answered);
        let tries = !answered && !peer.by_routes && !peer.routes.is_empty();
        if tries {
            tracing::debug!(peer = %address, "no answer: using the routes by which its packets arrive");
            peer.by_routes = true;
            self.use_routes(address);
        }
        tries
    }

    /// Regenerates the paths to a peer, if the path map has others: all that it had may be dead.
    /// Routes by which its packets arrive are kept if any packet sent by them was answered.
    fn regenerate_paths(&mut self, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address).filter(|_| !is_alias(&address)) else {
            return;
        };
        let answered = peer.session.as_ref().is_some_and(|session| session.answered);
        let port = peer.port;
        let ports = peer.ports;
        let generation = peer.path_generation.wrapping_add(1).max(1);
        let others = self.resolver.regenerate(with_port(peer.address, port), ports, generation);
        let works = peer.by_routes && answered;
        if !others.is_empty() && !works {
            tracing::debug!(peer = %address, generation, "no answer: using other paths");
            peer.path_generation = generation;
            peer.by_routes = false;
            self.use_ports(address, port, ports);
        }
    }

    fn use_routes(&mut self, address: SocketAddr) {
        let start = self.rng.next_u64();
        let Some(peer) = self.peers.get_mut(&address) else { return };
        // Without routes, the peer keeps the paths that it had.
        if peer.paths.replace(&peer.routes, &peer.routes, Order::default(), start).is_ok() {
            peer.headers = longest_headers(&peer.paths, &*self.resolver);
        }
    }

    /// Switches back to our own paths to a peer, unless an address translator is in between.
    pub(super) fn use_own_paths(&mut self, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address).filter(|_| !is_alias(&address)) else {
            return;
        };
        // A peer that has moved may be reached by nothing else.
        if !peer.has_moved(&address) {
            peer.routes.clear();
        } else if peer.by_routes {
            return;
        }
        if core::mem::take(&mut peer.by_routes) {
            let port = peer.port;
            let ports = peer.ports;
            self.use_ports(address, port, ports);
        }
    }

    fn insert_peer(
        &mut self,
        now: Instant,
        address: SocketAddr,
        paths: PathSet,
        local: Option<IpAddr>,
    ) -> Result<(), StartError> {
        if self.peers.len() >= self.config.limits.max_peers {
            let Some(idle) = self.idle.first() else { return Err(self.full()) };
            self.forget_peer(idle);
        }
        let headers = longest_headers(&paths, &*self.resolver);
        let mtu = PathMtu::new(self.config.usual_mtu());
        self.peers.insert(address, Peer::new(now, paths, headers, mtu, address, local));
        // What waits may have had no peer to go to.
        self.line.reopen(address);
        self.reschedule_peer(address);
        Ok(())
    }

    /// Forgets the peers that have been idle for long, and those that have left. `is_held` tells whether the
    /// receiving half has a session with a peer, which may call in it, and perhaps be reached only there.
    pub(in crate::proto) fn forget_idle_peers(
        &mut self,
        now: Instant,
        is_held: impl Fn(SocketAddr) -> bool,
    ) {
        while self.idle.first_rank().is_some_and(|at| at <= now)
            && let Some(address) = self.idle.first()
        {
            match self.peers.get_mut(&address).filter(|peer| !peer.has_ended()) {
                Some(peer) if is_held(address) => {
                    step();
                    peer.last_used = now;
                    self.idle.set(address, peer.forget_at());
                }
                _ => self.forget_peer(address),
            }
        }
    }

    /// When an incarnation was last heard from in the session with it, unless it has left.
    pub(in crate::proto) fn last_heard(
        &self,
        peer: SocketAddr,
        incarnation: Incarnation,
    ) -> Option<Instant> {
        let peer = self.peers.get(&peer).filter(|peer| !peer.has_ended())?;
        let session = peer.session.as_ref().filter(|session| session.remote == incarnation);
        session.map(|_| peer.liveness.last_heard())
    }

    fn forget_peer(&mut self, address: SocketAddr) {
        step();
        tracing::debug!(peer = %address, "idle peer forgotten");
        self.end_handshake(address);
        self.drop_checks(address);
        self.idle.remove(address);
        if let Some(peer) = self.peers.remove(&address) {
            self.timers.remove(Timer::Peer(address));
            self.retries_due.remove(address);
            if let Some(session) = peer.session {
                self.sessions.remove(&session.opener.session());
                self.by_incarnation.remove(&(session.remote, address));
            }
        }
    }

    pub(super) fn reschedule_all_of(&mut self, address: SocketAddr) {
        self.reschedule_peer(address);
        let Some(peer) = self.peers.get(&address) else { return };
        for id in peer.unfinished() {
            self.reschedule(id);
        }
    }

    pub(super) fn reschedule_peer(&mut self, address: SocketAddr) {
        step();
        let Some(peer) = self.peers.get(&address) else { return };
        self.timers.hasten(Timer::Peer(address), peer.wake_at());
        self.idle.set(address, peer.forget_at());
        if peer.liveness.is_unresponsive()
            && peer.liveness.may_retry()
            && !self.retries_due.contains(address)
        {
            self.retries_due.push_back(address);
        }
    }
}

/// Bytes of the headers of a packet, on the path on which they are the longest.
pub(super) fn longest_headers(paths: &PathSet, resolver: &dyn PathResolver) -> usize {
    let of = |path: &PathStats| headers(&path.via) + resolver.overhead(path.via);
    paths.stats().iter().filter(|path| !path.removed).map(of).max().unwrap_or_default()
}

/// The slots of the order and the paths to `to` from `local`, of generation `generation`.
pub(super) fn slots_and_paths(
    resolver: &dyn PathResolver,
    to: SocketAddr,
    ports: u16,
    local: Option<IpAddr>,
    generation: u32,
) -> (Vec<Via>, Vec<Via>) {
    let from = |vias: Vec<Via>| -> Vec<Via> {
        vias.into_iter().map(|via| via.leaving_from(local)).collect()
    };
    if generation > 0 {
        let others = from(resolver.regenerate(to, ports, generation));
        if !others.is_empty() {
            return (others.clone(), others);
        }
    }
    (from(resolver.slots(to, ports)), from(resolver.paths(to, ports)))
}

/// The address of a peer that accepts messages at `port`.
pub(super) fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}
