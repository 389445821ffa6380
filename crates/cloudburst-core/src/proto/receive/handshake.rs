//! Sessions: answering a HELLO, confirming it by the first symbol, making room, forgetting.

use super::Receiver;
use super::session::Session;
use crate::id::SessionId;
use crate::path::Via;
use crate::proto::limits::ALIVE_FOR;
use crate::proto::session::{Peering, more_ports, ports};
use crate::time::Instant;
use crate::wire::packet::Prefix;
use crate::wire::seal::OpenError;
use crate::wire::{Hello, HelloAck};

/// Of so many HELLO_ACKs of a handshake, the first goes back the way of its HELLO.
const RETURN_EVERY: usize = 4;

impl Receiver {
    /// Takes up the backward direction of a session that the sender half opened.
    pub(in crate::proto) fn adopt(&mut self, now: Instant, peering: Peering) {
        let Peering { peer, incarnation, flow, port, .. } = peering;
        let name = flow.symbols.session;
        let mut session = Session::new(now, peer, incarnation, flow);
        session.own.set_port(port);
        self.enter(now, name, session);
    }

    /// Takes a HELLO that arrived by `via`.
    pub(in crate::proto) fn handle_hello(&mut self, now: Instant, via: Via, packet: &[u8]) {
        let hello = match Hello::parse(&self.identity.hello_key, packet) {
            Ok(Some(hello)) => hello,
            Ok(None) => return self.counters.refused_hellos += 1,
            Err(_) => return self.counters.malformed += 1,
        };
        // The process may have slept since the timer was due.
        self.half_open.expire(now);
        let Some((answered, ack)) = self.acknowledge(now, via, &hello) else { return };
        if ack.current_alive {
            self.keep(now, hello.current, hello.nonce);
        }
        let via = self.way_of_ack(via, answered);
        self.acks.push(hello.initiator, (via, ack));
    }

    /// The answer to a HELLO, and how many its handshake has had. A new handshake is half-open from
    /// now on; `None` if another endpoint at this port may take it.
    fn acknowledge(&mut self, now: Instant, via: Via, hello: &Hello) -> Option<(usize, HelloAck)> {
        let current = self.sessions.get_mut(&hello.current);
        // A stranger can say the same again: what a HELLO asks after is not refreshed by it, but
        // by the symbol that follows. So it is alive only as long as there is time for that.
        let current = current.filter(|session| {
            session.incarnation == hello.initiator
                && now.saturating_since(session.last_heard) <= ALIVE_FOR
        });
        let unused = self.half_open.alive(now, hello.current, hello.initiator);
        let mut ack = HelloAck {
            path: hello.path,
            initiator: hello.initiator,
            nonce: hello.nonce,
            responder: self.identity.incarnation,
            session_nonce: [0; 16],
            current_alive: current.is_some() || unused.is_some(),
            more_ports: more_ports(self.config.ports),
            // Where nobody shares the port, the one that the peer uses is the one that works: it
            // may be another than ours, behind a translator.
            port: if self.config.reuse_port { self.config.port } else { 0 },
        };
        let count = |answered: &mut usize| core::mem::replace(answered, *answered + 1);
        let answered = if let Some(session) = current {
            count(&mut session.hellos)
        } else if let Some(unused) = unused {
            // Its first symbols were lost: they are on their way again.
            count(&mut unused.answered)
        } else if let Some(known) = self.half_open.known(hello.initiator, hello.nonce) {
            ack.session_nonce = known.ack.session_nonce;
            count(&mut known.answered)
        } else if self.closing && self.config.reuse_port {
            // Another HELLO of the same handshake may meet somebody who takes messages.
            return None;
        } else {
            self.opened += 1;
            ack.session_nonce = self.identity.seed.derive("session nonce", self.opened);
            let name = self.identity.key.session(&ack).forward.symbols.session;
            let mut peer = via.remote;
            if hello.port != 0 {
                peer.set_port(hello.port);
            }
            self.half_open.insert(now, name, peer, hello.more_ports, ack);
            0
        };
        Some((answered, ack))
    }

    /// The way of a HELLO_ACK, after so many of the same handshake. Some go back the way of the
    /// HELLO, which firewalls expect. It may be dead, so the others take all paths of our own in
    /// turn, of which few may be alive: if each were drawn, some would be missed for long.
    fn way_of_ack(&self, arrived: Via, answered: usize) -> Via {
        if answered.is_multiple_of(RETURN_EVERY) {
            return arrived;
        }
        let turn = answered - answered / RETURN_EVERY;
        let ways = self.path_map.paths(arrived.remote, 1);
        let Some(round) = turn.checked_div(ways.len()) else { return arrived };
        // HELLOs come from several addresses in a rhythm of their own: so that every path meets
        // every address, each round but the first begins anywhere.
        let start = (round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        ways[(turn + start as usize) % ways.len()]
    }

    /// Opens the packet of a session that has had none so far: whoever sealed it has got our
    /// HELLO_ACK, so the peer is there, and the session begins. Returns the length of the payload,
    /// and the peer if there is room for the session; `None` if there is no such handshake.
    pub(super) fn confirm(
        &mut self,
        now: Instant,
        via: Via,
        prefix: &Prefix,
        packet: &mut [u8],
        payload_at: usize,
    ) -> Option<Result<(usize, Option<Peering>), OpenError>> {
        let name = prefix.session;
        let pending = self.half_open.get(now, name)?;
        // What was refused for want of room must not begin a session when it is replayed.
        if pending.refused.is_some_and(|newest| prefix.number <= newest) {
            return Some(Err(OpenError::Replayed));
        }
        let keys = self.identity.key.session(&pending.ack);
        let incarnation = pending.ack.initiator;
        // The address is the symbol's, which was sealed; the HELLO's could have been anybody's.
        let mut peer = via.remote;
        peer.set_port(pending.peer.port());
        let ports = ports(pending.more_ports);
        let mut session = Session::new(now, peer, incarnation, keys.forward);
        let payload_len = match session.opener.open(prefix.number, packet, payload_at) {
            Ok(payload) => payload.len(),
            Err(error) => return Some(Err(error)),
        };
        if !self.enter(now, name, session) {
            // The peer is there and tries again: it must not take us for another incarnation.
            self.half_open.refuse(now, name, prefix.number);
            return Some(Ok((payload_len, None)));
        }
        self.half_open.remove(name);
        self.counters.sessions_confirmed += 1;
        let (flow, port) = (keys.backward, peer.port());
        let peering = Peering { peer, incarnation, flow, port, ports };
        Some(Ok((payload_len, Some(peering))))
    }

    /// Adds a session. Where there are too many, one must have idled for so long that its peer
    /// asks before it uses it again; else the new one is refused.
    fn enter(&mut self, now: Instant, name: SessionId, session: Session) -> bool {
        // Sessions that were accepted, and as many that were adopted.
        let full = self.sessions.len() >= self.config.max_peers.saturating_mul(2);
        if full && !self.make_room(now) {
            self.counters.peers_refused += 1;
            return false;
        }
        self.insert_session(name, session);
        true
    }
}
