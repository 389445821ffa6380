//! Sessions: answering a HELLO, adopting what the sender half opened, making room.

use super::Receiver;
use super::session::Session;
use super::{HALF_OPEN_FOR, MAX_HALF_OPEN, SWEEP_EVERY};
use crate::path::Via;
use crate::proto::identity::Peering;
use crate::time::Instant;
use crate::wire::{Hello, HelloAck};

impl Receiver {
    /// Takes up the backward direction of a session that the sender half opened.
    pub fn adopt(&mut self, now: Instant, peering: Peering) {
        if !self.make_room(now) {
            return self.counters.peers_refused += 1;
        }
        let Peering { peer, incarnation, flow } = peering;
        let name = flow.symbols.session;
        self.sessions.insert(name, Session::new(now, peer, incarnation, flow));
        self.next_sweep.get_or_insert(now + SWEEP_EVERY);
    }

    pub(super) fn handle_hello(&mut self, now: Instant, via: Via, packet: &[u8]) {
        let hello = match Hello::parse(&self.identity.hello_key, packet) {
            Ok(Some(hello)) => hello,
            Ok(None) => return self.counters.refused_hellos += 1,
            Err(_) => return self.counters.malformed += 1,
        };
        let mut ack = HelloAck {
            path: hello.path,
            initiator: hello.initiator,
            nonce: hello.nonce,
            responder: self.identity.incarnation,
            session_nonce: [0; 16],
            current_alive: self
                .sessions
                .get(&hello.current)
                .is_some_and(|session| session.incarnation == hello.initiator),
        };
        if !ack.current_alive {
            let known = self.by_hello.get(&(hello.initiator, hello.nonce));
            if let Some(session) = known.and_then(|name| self.sessions.get(name)) {
                ack.session_nonce = session.session_nonce;
            } else if self.make_room(now) {
                self.opened += 1;
                ack.session_nonce = self.identity.seed.derive("session nonce", self.opened);
                self.open_session(now, via, &hello, &ack);
            } else {
                return self.counters.peers_refused += 1;
            }
        }
        if self.acks.len() < MAX_HALF_OPEN {
            self.acks.push_back((via, ack));
        }
    }

    pub(super) fn open_session(&mut self, now: Instant, via: Via, hello: &Hello, ack: &HelloAck) {
        let keys = self.identity.key.session(ack);
        let mut peer = via.remote;
        if hello.port != 0 {
            peer.set_port(hello.port);
        }
        let name = keys.forward.symbols.session;
        let mut session = Session::new(now, peer, hello.initiator, keys.forward);
        session.nonce = Some(hello.nonce);
        session.session_nonce = ack.session_nonce;
        session.backward = Some(keys.backward);
        self.sessions.insert(name, session);
        self.by_hello.insert((hello.initiator, hello.nonce), name);
        self.half_open.push_back(name);
        self.next_sweep.get_or_insert(now + SWEEP_EVERY);
    }

    /// Makes room for one more session: strangers give way to strangers, and known peers only
    /// when they have been idle.
    pub(super) fn make_room(&mut self, now: Instant) -> bool {
        if self.half_open.len() >= MAX_HALF_OPEN
            && let Some(oldest) = self.half_open.pop_front()
            && self.sessions.get(&oldest).is_some_and(|session| session.backward.is_some())
        {
            self.forget(oldest);
        }
        if self.sessions.len() < self.config.max_peers + MAX_HALF_OPEN {
            return true;
        }
        let idle = self.sessions.iter().filter(|(_, session)| {
            session.incoming.is_empty() && now.saturating_since(session.last_heard) >= HALF_OPEN_FOR
        });
        let Some((&name, _)) = idle.min_by_key(|(_, session)| session.last_heard) else {
            return false;
        };
        self.forget(name);
        true
    }
}
