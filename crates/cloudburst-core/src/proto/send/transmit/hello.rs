//! HELLOs on the wire, of handshakes and of checks, and the OPENs that answer RETRYs.

use crate::id::PathId;
use crate::naming::is_alias;
use crate::path::{Opportunity, Via};
use crate::proto::send::checks::Purpose;
use crate::proto::send::hellos::CheckId;
use crate::proto::send::hellos::{HelloOf, HelloRank};
use crate::proto::send::{Sender, Timer, with_port};
use crate::proto::session::Invitation;
use crate::proto::{Contents, Transmit, marking};
use crate::time::Instant;
use crate::wire::handshake::{ANY_RETURN_PATH, Hello};
use std::net::SocketAddr;

impl Sender {
    /// What a HELLO may be sent for now.
    fn next_hello(&mut self, now: Instant) -> Option<(HelloRank, HelloOf)> {
        while self.hellos.ready_at()? <= now {
            let of = self.hellos.due.first()?;
            let rank = self.hellos.due.first_rank()?;
            let HelloOf::Handshake(address) = of else { return Some((rank, of)) };
            let waited_for = self.peers.get(&address).is_some_and(|peer| !peer.is_idle());
            if waited_for || !rank.is_retry() {
                return Some((rank, of));
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
        let (rank, of) = self.next_hello(now)?;
        let (address, via, contents) = match of {
            HelloOf::Handshake(peer) => {
                (peer, self.write_handshake(now, peer, buffer)?, Contents::Handshake(peer))
            }
            HelloOf::Check(id) => {
                let CheckId { peer, nonce } = id;
                (peer, self.write_check(now, id, buffer)?, Contents::Check { peer, nonce })
            }
        };
        let on_the_wire = buffer.len() + self.overhead(&via);
        self.pacer.charge(now, on_the_wire);
        self.hellos.on_sent(now, rank, on_the_wire);
        self.reschedule_peer(address);
        let len = buffer.len();
        let marking = marking::control(&self.config);
        Some(Transmit { contents, via, segment_size: len, len, marking })
    }

    /// Appends the next HELLO or OPEN of the handshake with a peer. Returns its route.
    fn write_handshake(
        &mut self,
        now: Instant,
        address: SocketAddr,
        buffer: &mut Vec<u8>,
    ) -> Option<Via> {
        let peer = self.peers.get_mut(&address)?;
        let is_over = peer.is_over();
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
        self.counters.handshakes_sent += 1;
        peer.counts.handshakes_sent += 1;
        // One that answers many at once gets no more OPENs meanwhile.
        let answers_in = peer.rtt.smoothed().filter(|_| opening.invitation.is_some());
        peer.liveness.on_hello_sent(now, answers_in.unwrap_or_default() * 4);
        if !by_routes {
            via.remote.set_port(opening.port);
        } else if !is_alias(&address) && count.is_multiple_of(2) {
            // The routes may have been forged, or may be gone.
            via.remote = with_port(peer.address, opening.port);
        }
        if peer.liveness.attempt_to_send().is_none() {
            self.hellos.due.remove(HelloOf::Handshake(address));
        }
        let key = self.identity.hello_key();
        if opening.invitation.is_some() {
            opening.on_open_sent(now);
        }
        if let Some(Invitation { initiation, token, .. }) = opening.invitation.as_deref() {
            let return_path = reply.map_or(ANY_RETURN_PATH, |(_, return_path)| return_path);
            initiation.open(path, return_path, *token).write(key, buffer);
        } else {
            // An endpoint that is closing would say that it is alive.
            let session = peer.session.as_mut().filter(|_| !is_over);
            let current = session.map(|session| &mut session.sealer);
            Hello::write(path, count, opening.nonce, current, key, buffer);
        }
        Some(via)
    }

    /// Appends the next copy of the HELLO of a check. Returns its route.
    fn write_check(&mut self, now: Instant, id: CheckId, buffer: &mut Vec<u8>) -> Option<Via> {
        self.hellos.due.remove(HelloOf::Check(id));
        let check = self.checks.under_way.get_mut(&id)?;
        let peer = self.peers.get_mut(&id.peer)?;
        let session = peer.session.as_mut()?;
        let before = check.on_sent(now);
        self.counters.handshakes_sent += 1;
        self.timers.set(Timer::Check(id), Some(now + check.wait(peer.rtt.rto())));
        let len = check.purpose.hello_len();
        check.credit = check.credit.saturating_sub(len);
        let (path, via, count) = match check.purpose {
            Purpose::Address(via) => {
                let known =
                    peer.paths.stats().iter().position(|path| path.via.egress == via.egress);
                (PathId(known.unwrap_or(0) as u16), via, 0)
            }
            // The answer to the first copy returns by the way it came, and those to further ones by
            // other ways, as in a handshake.
            _ => {
                let chosen = check.purpose.path().and_then(|path| peer.paths.take_path(path));
                let Opportunity { path, via, .. } =
                    chosen.unwrap_or_else(|| peer.paths.take_any_opportunity(1));
                (path, via, before.try_into().unwrap_or(u8::MAX))
            }
        };
        let key = self.identity.hello_key();
        Hello::write_padded(len, path, count, id.nonce, Some(&mut session.sealer), key, buffer);
        Some(via)
    }
}
