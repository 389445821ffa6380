//! Watches the peers that calls depend on, so that one that is gone is noticed.
//!
//! A watched peer from which nothing was heard for [`CHECK_AFTER`] is checked. If it answers by RETRY, it does
//! not hold the session: a handshake finds out whether another incarnation is there. If it does not answer at
//! all, it is gone after [`MAX_LOST`](super::checks::MAX_LOST) checks.

use super::Sender;
use super::checks::{CheckEnd, LostChecks, Purpose};
use super::peer::Peer;
use crate::error::Indeterminate;
use crate::id::PathId;
use crate::proto::session::{Departure, Finding};
use crate::time::Instant;
use core::time::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The time without a packet of a watched peer after which it is checked.
const CHECK_AFTER: Duration = Duration::from_secs(5);

/// The shortest interval of keep-alives.
const MIN_KEEP_ALIVE: Duration = Duration::from_secs(1);

impl Sender {
    /// Watches these peers and no others.
    pub(in crate::proto) fn watch(&mut self, now: Instant, peers: BTreeSet<SocketAddr>) {
        let before = core::mem::replace(&mut self.watched, peers.clone());
        for &address in before.union(&peers) {
            let Some(peer) = self.peers.get_mut(&address) else { continue };
            let watched = peers.contains(&address) && !peer.is_over();
            if core::mem::replace(&mut peer.watched, watched) == watched {
                continue;
            }
            if watched && !peer.liveness.is_verified() {
                self.begin_handshake(now, address);
            }
            self.reschedule_peer(address);
        }
        for address in peers {
            let known = self.peers.get(&address);
            let is_there = |peer: &&Peer| {
                !peer.has_ended() && !peer.lost_checks.is_gone(peer.liveness.last_heard())
            };
            let Some(peer) = known.filter(is_there) else {
                self.on_departed(address, Indeterminate::PeerGone, false);
                continue;
            };
            if now.saturating_since(peer.liveness.last_heard()) >= CHECK_AFTER {
                self.check(now, address, Purpose::KeepAlive);
            }
        }
    }

    /// Reports that the incarnation of the session with a peer has departed. It may still answer what it has
    /// if it `may_answer`.
    pub(super) fn on_departed(
        &mut self,
        address: SocketAddr,
        why: Indeterminate,
        may_answer: bool,
    ) {
        let session = self.peers.get(&address).and_then(|peer| peer.session.as_ref());
        let incarnation = session.map(|session| session.remote);
        let departure = Departure { peer: address, incarnation, why, may_answer };
        self.findings.push_back(Finding::Departed(departure));
    }

    /// Sends something by each socket to each peer with a session at least `every` so often.
    pub(in crate::proto) fn set_keep_alive(&mut self, now: Instant, every: Duration) {
        let every = every.max(MIN_KEEP_ALIVE);
        self.keep_alive = Some((every, now + every));
    }

    pub(super) fn keep_alive_timeout(&mut self, now: Instant) {
        let Some((every, at)) = self.keep_alive.filter(|(_, at)| *at <= now) else { return };
        // After a sleep, once is enough.
        let next = if at + every > now { at } else { now } + every;
        self.keep_alive = Some((every, next));
        let is_there = |peer: &Peer| {
            let heard = peer.liveness.last_heard();
            peer.session.is_some() && !peer.is_over() && !peer.lost_checks.is_gone(heard)
        };
        let mut due = Vec::new();
        for (&address, peer) in self.peers.iter().filter(|(_, peer)| is_there(peer)) {
            let mut egresses = BTreeSet::new();
            let paths = (0..).map(PathId).zip(peer.paths.stats());
            let of_egress =
                paths.filter(|(_, path)| !path.removed && egresses.insert(path.via.egress));
            due.extend(of_egress.map(|(path, _)| (address, path)));
        }
        // Sorted, so that the order does not change from run to run.
        due.sort_unstable();
        for (address, path) in due {
            self.check(now, address, Purpose::KeepPath { path });
        }
    }

    /// Handles the end of a check that asks whether a peer is there.
    pub(super) fn on_watch_ended(&mut self, now: Instant, address: SocketAddr, end: CheckEnd) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        match end {
            CheckEnd::Lost => peer.lost_checks.on_lost(now, peer.liveness.last_heard()),
            CheckEnd::Answered => peer.lost_checks = LostChecks::default(),
        }
    }

    /// Handles a RETRY in answer to a check: whoever is at the address of a peer does not hold the session.
    /// Returns whether the nonce is that of a check.
    pub(super) fn on_check_retry(&mut self, now: Instant, nonce: u64) -> bool {
        let Some((address, purpose)) = self.checks.find(nonce) else { return false };
        // While it is not known at which address the peer is, another endpoint may have one of them.
        let is_certain = !matches!(purpose, Purpose::Address(_) | Purpose::Present);
        if is_certain && self.peers.get(&address).is_some_and(|peer| !peer.is_idle()) {
            self.drop_checks(address);
            self.begin_handshake(now, address);
        }
        true
    }
}
