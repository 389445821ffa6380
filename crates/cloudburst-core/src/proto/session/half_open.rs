//! Handshakes without a first symbol: a few bytes each, and no keys until one comes.

use crate::id::{Incarnation, SessionId};
use crate::proto::limits::{HALF_OPEN_ALIVE_FOR, HALF_OPEN_FOR, MAX_HALF_OPEN};
use crate::proto::timers::Timers;
use crate::time::Instant;
use crate::wire::HelloAck;
use foldhash::HashMap;
use std::net::SocketAddr;

/// A HELLO that was answered.
#[derive(Debug)]
pub(in crate::proto) struct Pending {
    /// Where the initiator says that it takes messages.
    pub(in crate::proto) peer: SocketAddr,
    /// At how many ports more.
    pub(in crate::proto) more_ports: u8,
    pub(in crate::proto) ack: HelloAck,
    /// How often it was answered, or asked after.
    pub(in crate::proto) answered: usize,
    /// The newest symbol that was authentic, and for which there was no room.
    pub(in crate::proto) refused: Option<u64>,
    /// Where the order has it: when it began, or when the newest symbol was refused.
    since: Option<Instant>,
}

#[derive(Debug, Default)]
pub(in crate::proto) struct HalfOpen {
    pending: HashMap<SessionId, Pending>,
    /// By initiator and nonce, so that a repeated HELLO gets the same answer.
    by_hello: HashMap<(Incarnation, u64), SessionId>,
    /// The oldest first.
    order: Timers<SessionId>,
}

impl HalfOpen {
    /// The same HELLO that came before.
    pub(in crate::proto) fn known(
        &mut self,
        initiator: Incarnation,
        nonce: u64,
    ) -> Option<&mut Pending> {
        let name = self.by_hello.get(&(initiator, nonce))?;
        self.pending.get_mut(name)
    }

    pub(in crate::proto) fn insert(
        &mut self,
        now: Instant,
        name: SessionId,
        peer: SocketAddr,
        more_ports: u8,
        ack: HelloAck,
    ) {
        if self.pending.len() >= MAX_HALF_OPEN {
            self.pop();
        }
        self.by_hello.insert((ack.initiator, ack.nonce), name);
        let mut pending =
            Pending { peer, more_ports, ack, answered: 1, refused: None, since: None };
        self.order.set(&mut pending.since, Some(now), name);
        self.pending.insert(name, pending);
    }

    /// The handshake that gave `initiator` a session of this name, which it has not used yet, if
    /// there is time left to use it.
    pub(in crate::proto) fn alive(
        &mut self,
        now: Instant,
        name: SessionId,
        initiator: Incarnation,
    ) -> Option<&mut Pending> {
        self.pending.get_mut(&name).filter(|pending| {
            let age = pending.since.map(|since| now.saturating_since(since));
            pending.ack.initiator == initiator && age.is_some_and(|age| age <= HALF_OPEN_ALIVE_FOR)
        })
    }

    /// A handshake that can still be confirmed: a process that slept may be late to forget it.
    pub(in crate::proto) fn get(&self, now: Instant, name: SessionId) -> Option<&Pending> {
        let lives = |since: Instant| now < since + HALF_OPEN_FOR;
        self.pending.get(&name).filter(|pending| pending.since.is_some_and(lives))
    }

    /// A symbol newer than all before was authentic, but there was no room for its session: the
    /// handshake is as good as new.
    pub(in crate::proto) fn refuse(&mut self, now: Instant, name: SessionId, number: u64) {
        if let Some(pending) = self.pending.get_mut(&name) {
            pending.refused = Some(number);
            self.order.set(&mut pending.since, Some(now), name);
        }
    }

    /// The first symbol came.
    pub(in crate::proto) fn remove(&mut self, name: SessionId) {
        if let Some(mut pending) = self.pending.remove(&name) {
            self.by_hello.remove(&(pending.ack.initiator, pending.ack.nonce));
            self.order.set(&mut pending.since, None, name);
        }
    }

    /// When the oldest handshake is forgotten.
    pub(in crate::proto) fn next_expiry(&self) -> Option<Instant> {
        self.order.next().map(|since| since + HALF_OPEN_FOR)
    }

    pub(in crate::proto) fn expire(&mut self, now: Instant) {
        while self.next_expiry().is_some_and(|at| at <= now) {
            self.pop();
        }
    }

    pub(in crate::proto) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Panics unless each handshake is found by its HELLO, and is in order.
    pub(in crate::proto) fn check_invariants(&self) {
        let handshakes = self.pending.len();
        assert!(handshakes <= MAX_HALF_OPEN, "{handshakes} handshakes");
        assert_eq!((self.by_hello.len(), self.order.len()), (handshakes, handshakes));
        for (name, pending) in &self.pending {
            let hello = (pending.ack.initiator, pending.ack.nonce);
            assert_eq!(self.by_hello.get(&hello), Some(name), "found by its HELLO");
            assert!(self.order.is_set(pending.since, *name), "{name:?} is in order");
        }
    }

    fn pop(&mut self) {
        if let Some(oldest) = self.order.pop_first() {
            self.remove(oldest);
        }
    }
}
