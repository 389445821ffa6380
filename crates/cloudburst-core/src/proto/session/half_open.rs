//! Handshakes without a first symbol: a few bytes each, and no keys until one comes.

use crate::id::{Incarnation, SessionId};
use crate::proto::limits::{HALF_OPEN_FOR, MAX_HALF_OPEN};
use crate::time::Instant;
use crate::wire::HelloAck;
use foldhash::HashMap;
use std::collections::VecDeque;
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
    since: Instant,
}

#[derive(Debug, Default)]
pub(in crate::proto) struct HalfOpen {
    pending: HashMap<SessionId, Pending>,
    /// By initiator and nonce, so that a repeated HELLO gets the same answer.
    by_hello: HashMap<(Incarnation, u64), SessionId>,
    /// In order of arrival.
    order: VecDeque<SessionId>,
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
        self.pending.insert(name, Pending { peer, more_ports, ack, answered: 1, since: now });
        self.order.push_back(name);
    }

    /// The handshake that gave `initiator` a session of this name, which it has not used yet.
    pub(in crate::proto) fn of(
        &mut self,
        name: SessionId,
        initiator: Incarnation,
    ) -> Option<&mut Pending> {
        self.pending.get_mut(&name).filter(|pending| pending.ack.initiator == initiator)
    }

    pub(in crate::proto) fn get(&self, name: SessionId) -> Option<&Pending> {
        self.pending.get(&name)
    }

    /// The first symbol came.
    pub(in crate::proto) fn remove(&mut self, name: SessionId) {
        if let Some(pending) = self.pending.remove(&name) {
            self.by_hello.remove(&(pending.ack.initiator, pending.ack.nonce));
            self.order.retain(|other| *other != name);
        }
    }

    pub(in crate::proto) fn expire(&mut self, now: Instant) {
        while let Some(name) = self.order.front()
            && let Some(pending) = self.pending.get(name)
            && now.saturating_since(pending.since) >= HALF_OPEN_FOR
        {
            self.pop();
        }
    }

    pub(in crate::proto) fn len(&self) -> usize {
        self.pending.len()
    }

    fn pop(&mut self) {
        if let Some(oldest) = self.order.front().copied() {
            self.remove(oldest);
        }
    }
}
