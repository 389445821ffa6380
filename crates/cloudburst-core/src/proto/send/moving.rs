//! Peers whose addresses change: which one of them a peer is reached at.
//!
//! A peer keeps its name for the life of its session, wherever it is. The receiving half reports each
//! authentic packet that arrives from another IP address than the one at which the peer is. Such a
//! packet proves little: the peer may have several addresses, and anyone on the way can forward a copy
//! from his own. So both addresses are checked, as RFC 9000 requires (section 9.3.3): the one that the
//! packet came from, and the one at which the peer is.
//!
//! ```text
//!   the other answers   the present one                the peer is from then on
//!   no                  -                              where it was
//!   yes                 answers in time                where it was, unless the other is its name's
//!   yes                 does not within an RTO         at the other, or at once if the peer was
//!                                                      unresponsive before
//! ```
//!
//! If both answer, the address of the name wins. It was validated by the handshake, so a third party
//! that forwards packets keeps a session only while it also stops those from there.

use super::checks::{Check, CheckEnd, Purpose};
use super::liveness::Resume;
use super::{Sender, slots_and_paths, with_port};
use crate::id::Incarnation;
use crate::naming::{address_of, is_alias};
use crate::path::Via;
use crate::proto::session::{Finding, Located, Sighting};
use crate::time::Instant;
use arrayvec::ArrayVec;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr};

/// How long an address at which a peer has not answered is not checked again.
const CHECK_AGAIN: Duration = Duration::from_millis(500);
/// The maximum number of such addresses, and of other names of one incarnation that are checked.
const MAX_ADDRESSES: usize = 4;

/// What is known of the addresses of a peer that may have moved.
#[derive(Debug, Default)]
pub(super) struct Moving {
    /// The route to the other address, once the peer has answered there.
    answered: Option<Via>,
    /// Whether the peer has answered at the address at which it is.
    stays: bool,
    /// Whether it was unresponsive there when the other was first checked.
    is_silent: bool,
    /// Addresses at which it has not answered, and when that was found.
    lost: ArrayVec<(IpAddr, Instant), MAX_ADDRESSES>,
}

impl Sender {
    /// Learns that an authentic packet has arrived from another address than the one at which its
    /// peer is.
    pub(super) fn on_sighting(&mut self, now: Instant, sighting: &Sighting) {
        let Sighting { peer: name, incarnation, via, len } = *sighting;
        let session = self.peers.get(&name).and_then(|peer| peer.session.as_ref());
        if session.is_some_and(|session| session.remote == incarnation) {
            self.check_address(now, name, via, len);
        }
    }

    /// A new session with a peer has shown that it is at `at`, reached by `via`. The peers of other
    /// names with the same incarnation may be there, too: it may have moved before it opened this one.
    pub(super) fn check_other_names(
        &mut self,
        now: Instant,
        incarnation: Incarnation,
        name: SocketAddr,
        via: Via,
    ) {
        let first = (incarnation, SocketAddr::from(([0; 4], 0)));
        let others: Vec<SocketAddr> = self
            .by_incarnation
            .range(first..)
            .take_while(|(of, _)| *of == incarnation)
            .map(|&(_, other)| other)
            .filter(|other| *other != name)
            .take(MAX_ADDRESSES)
            .collect();
        for other in others {
            // The handshake has shown that it receives there.
            self.check_address(now, other, via, usize::MAX);
        }
    }

    /// Finds out whether a peer is at the address to which `via` leads, where it may be sent `credit`
    /// bytes more.
    fn check_address(&mut self, now: Instant, name: SocketAddr, via: Via, credit: usize) {
        let ip = via.remote.ip();
        let Some(peer) = self.peers.get_mut(&name).filter(|peer| peer.address.ip() != ip) else {
            return;
        };
        let is_there =
            |check: &Check| matches!(check.purpose, Purpose::Address(to) if to.remote.ip() == ip);
        if let Some((_, check)) = self.checks.of_mut(name).find(|(_, check)| is_there(check)) {
            check.purpose = Purpose::Address(via);
            check.credit = check.credit.saturating_add(credit);
            return;
        }
        let moving = peer.moving.get_or_insert_with(Box::default);
        let is_recent = |at: &Instant| now.saturating_since(*at) < CHECK_AGAIN;
        moving.lost.retain(|(_, at)| is_recent(at));
        if moving.lost.is_full() || moving.lost.iter().any(|(lost, _)| *lost == ip) {
            return;
        }
        if !self.checks.of(name).any(|(_, check)| matches!(check.purpose, Purpose::Address(_))) {
            moving.answered = None;
            moving.stays = false;
            moving.is_silent = peer.liveness.is_unresponsive();
        }
        // Without the check of the present address, the other's answer would decide alone.
        if self.check(now, name, Purpose::Present) {
            self.check_within(now, name, Purpose::Address(via), credit);
        }
    }

    /// The check of the other address of a peer has ended.
    pub(super) fn on_address_checked(
        &mut self,
        now: Instant,
        name: SocketAddr,
        via: Via,
        end: CheckEnd,
    ) {
        let ip = via.remote.ip();
        let Some(peer) = self.peers.get_mut(&name) else { return };
        let is_answered = end == CheckEnd::Answered;
        if ip == peer.address.ip() {
            // It has moved there, and this was one of our own paths to it.
            if is_answered {
                self.use_paths_to_address(name);
            }
            return;
        }
        let Some(moving) = &mut peer.moving else { return };
        if !is_answered {
            let _ = moving.lost.try_push((ip, now));
            return;
        }
        moving.answered = Some(via);
        if let Some(session) = &peer.session {
            let incarnation = session.remote;
            self.findings.push_back(Finding::Located(Located {
                peer: name,
                incarnation,
                ip,
                is_there: false,
            }));
        }
        self.decide_where(now, name);
    }

    /// The check of the address at which a peer is has ended, or waits longer than it should.
    pub(super) fn on_present_checked(&mut self, now: Instant, name: SocketAddr, answered: bool) {
        let Some(peer) = self.peers.get_mut(&name) else { return };
        if let Some(moving) = &mut peer.moving {
            moving.stays |= answered;
        }
        self.decide_where(now, name);
    }

    fn decide_where(&mut self, now: Instant, name: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&name) else { return };
        let Some(moving) = &mut peer.moving else { return };
        let Some(via) = moving.answered else { return };
        let is_name = via.remote.ip() == address_of(name).ip();
        let rto = peer.rtt.rto();
        let waits = self
            .checks
            .of(name)
            .any(|(_, check)| check.purpose == Purpose::Present && !check.is_overdue(now, rto));
        if is_name || !moving.stays && (moving.is_silent || !waits) {
            self.move_peer(now, name, via);
        } else if moving.stays {
            moving.answered = None;
        }
    }

    /// Reaches a peer at the address to which `via` leads from now on.
    fn move_peer(&mut self, now: Instant, name: SocketAddr, via: Via) {
        let Some(peer) = self.peers.get_mut(&name) else { return };
        let Some(session) = &peer.session else { return };
        let incarnation = session.remote;
        let ip = via.remote.ip();
        tracing::debug!(peer = %name, address = %ip, "peer has moved");
        self.findings.push_back(Finding::Located(Located {
            peer: name,
            incarnation,
            ip,
            is_there: true,
        }));
        let is_at_name = !is_alias(&name) && ip == name.ip();
        peer.moving = None;
        peer.address = with_port(via.remote, address_of(name).port());
        // A translator or a firewall may be on the way now, so at first only the routes by which its
        // packets arrive are used.
        peer.by_routes |= !is_at_name;
        self.drop_check(name, Purpose::Present);
        if is_at_name {
            self.use_paths_to_address(name);
            return self.resume(now, name, Resume::All);
        }
        self.learn_routes(name, vec![via]);
        self.check_own_path(now, name);
        // What was sent since it moved is lost.
        self.resume(now, name, Resume::All);
    }

    /// Checks whether a peer that has moved is reached by our own paths, which are more than the routes
    /// by which its packets arrive.
    fn check_own_path(&mut self, now: Instant, name: SocketAddr) {
        let Some(peer) = self.peers.get(&name).filter(|_| !is_alias(&name)) else { return };
        let to = with_port(peer.address, peer.port);
        let (_, vias) = slots_and_paths(&*self.resolver, to, 1, peer.local, 0);
        if let Some(&own) = vias.first() {
            self.check_within(now, name, Purpose::Address(own), usize::MAX);
        }
    }

    /// Looks for a peer that has moved at the address that it is known by, and for any endpoint there,
    /// because it no longer answers where it was last.
    pub(super) fn look_at_name(&mut self, name: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&name).filter(|peer| peer.has_moved(&name)) else {
            return;
        };
        let Some(session) = &peer.session else { return };
        let incarnation = session.remote;
        peer.address = name;
        self.findings.push_back(Finding::Located(Located {
            peer: name,
            incarnation,
            ip: name.ip(),
            is_there: true,
        }));
        self.use_paths_to_address(name);
    }

    /// Uses our own paths to the address at which a peer is.
    fn use_paths_to_address(&mut self, name: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&name) else { return };
        peer.by_routes = false;
        let port = peer.port;
        let ports = peer.ports;
        self.use_ports(name, port, ports);
    }

    /// Checks the other addresses at which a peer has proved to receive, to which `vias` lead.
    pub(in crate::proto) fn check_alternates(
        &mut self,
        now: Instant,
        name: SocketAddr,
        vias: Vec<Via>,
    ) {
        for via in vias {
            self.check_address(now, name, via, usize::MAX);
        }
    }

    /// Learns the routes by which the packets of a peer arrive from where it has moved.
    pub(in crate::proto) fn learn_routes_of_moved(&mut self, name: SocketAddr, routes: Vec<Via>) {
        if !routes.is_empty() {
            self.learn_routes(name, routes);
        }
    }
}
