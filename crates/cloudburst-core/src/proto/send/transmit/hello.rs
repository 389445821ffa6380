//! Handshakes on the wire: HELLOs, and the OPENs that answer RETRYs.

use crate::naming::is_alias;
use crate::path::{Opportunity, Via};
use crate::proto::send::hellos::HelloRank;
use crate::proto::send::{Sender, with_port};
use crate::proto::session::Invitation;
use crate::proto::{Contents, Transmit, marking};
use crate::time::Instant;
use crate::wire::handshake::{ANY_RETURN_PATH, Hello};
use std::net::SocketAddr;

impl Sender {
    /// The peer whose HELLO may be sent now.
    fn next_hello(&mut self, now: Instant) -> Option<(HelloRank, SocketAddr)> {
        while self.hellos.ready_at()? <= now {
            let address = self.hellos.due.first()?;
            let rank = self.hellos.due.first_rank()?;
            let waited_for = self.peers.get(&address).is_some_and(|peer| !peer.is_idle());
            if waited_for || !rank.is_retry() {
                return Some((rank, address));
            }
            // Everything that waited for it has ended in the meantime.
            self.end_handshake(address);
            self.reschedule_peer(address);
        }
        None
    }

    /// Writes the next HELLO that may be sent now, if there is one.
    pub(super) fn transmit_hello(
        &mut self,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let (rank, address) = self.next_hello(now)?;
        let peer = self.peers.get_mut(&address)?;
        let opening = peer.opening.as_mut()?;
        // Each attempt takes another path: the last may have led through a black hole. Of several
        // ports only the first is tried: the peer may have restarted without the others.
        let port = peer.port;
        let by_routes = peer.by_routes;
        let first = |via: &Via| by_routes || via.remote.port() == port;
        let reply = opening.take_reply();
        let reply_on = reply.and_then(|(path, _)| peer.paths.take_path(path));
        let Opportunity { path, mut via, .. } =
            reply_on.unwrap_or_else(|| peer.paths.take_any_opportunity_of(first));
        let count = opening.on_sent(now, path);
        peer.liveness.on_hello_sent(now);
        if !by_routes {
            via.remote.set_port(opening.port);
        } else if !is_alias(&address) && count.is_multiple_of(2) {
            // The routes may have been forged, or may be gone.
            via.remote = with_port(address, opening.port);
        }
        if peer.liveness.attempt_to_send().is_none() {
            self.hellos.due.remove(address);
        }
        let key = self.identity.hello_key();
        if let Some(Invitation { initiation, token, .. }) = opening.invitation.as_deref() {
            let return_path = reply.map_or(ANY_RETURN_PATH, |(_, return_path)| return_path);
            initiation.open(path, return_path, *token).write(key, buffer);
        } else {
            let current = peer.session.as_mut().map(|session| &mut session.sealer);
            Hello::write(path, count, opening.nonce, current, key, buffer);
        }
        self.counters.handshakes_sent += 1;
        peer.counts.handshakes_sent += 1;
        let on_the_wire = buffer.len() + self.overhead(&via);
        self.pacer.charge(now, on_the_wire);
        self.hellos.on_sent(now, rank, on_the_wire);
        self.reschedule_peer(address);
        let len = buffer.len();
        let marking = marking::control(&self.config);
        Some(Transmit {
            contents: Contents::Handshake(address),
            via,
            segment_size: len,
            len,
            marking,
        })
    }
}
