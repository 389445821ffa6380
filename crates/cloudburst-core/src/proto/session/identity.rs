//! The identity of an endpoint, and the peers that it has met.

use crate::config::Security;
use crate::error::Indeterminate;
use crate::id::{Incarnation, SessionId};
use crate::path::Via;
use crate::proto::limits::MAX_PORTS;
use crate::rng::Seed;
use crate::wire::Capabilities;
use crate::wire::handshake::{HelloKey, TokenKey};
use crate::wire::keys::{FlowKeys, PresharedKey};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The identity of one incarnation of an endpoint and its secrets, shared by both halves.
#[derive(Clone, Debug)]
pub(in crate::proto) struct Identity {
    pub(in crate::proto) incarnation: Incarnation,
    pub(in crate::proto) seed: Seed,
    pub(in crate::proto) token_key: TokenKey,
    /// One for each pre-shared key; the first is for handshakes that this endpoint begins.
    pub(in crate::proto) hello_keys: Arc<[HelloKey]>,
    preshared: Arc<[PresharedKey]>,
}

/// Which half of an endpoint chose a session id. Ids of different halves differ.
#[derive(Clone, Copy, Debug)]
pub(in crate::proto) enum Chooser {
    Initiator,
    Responder,
}

impl Identity {
    /// A new incarnation. `seed` must never have been used by another and
    /// must not be kept, because ephemeral keys are derived from it.
    pub(in crate::proto) fn new(security: &Security, seed: &Seed) -> Self {
        let seed = Seed::new(seed.derive("identity", 0));
        let preshared: Arc<[PresharedKey]> = security.keys().into();
        Self {
            incarnation: Incarnation(seed.derive("incarnation", 0)),
            token_key: TokenKey::new(seed.derive("token key", 0)),
            hello_keys: preshared.iter().map(|key| HelloKey::new(key.bytes())).collect(),
            preshared,
            seed,
        }
    }

    /// Uses other keys in handshakes that begin from now on. Returns whether those that this endpoint
    /// begins have another one.
    pub(in crate::proto) fn set_security(&mut self, security: &Security) -> bool {
        let before = *self.preshared(0);
        self.preshared = security.keys().into();
        self.hello_keys = self.preshared.iter().map(|key| HelloKey::new(key.bytes())).collect();
        before != *self.preshared(0)
    }

    /// The key of handshakes that this endpoint begins.
    pub(in crate::proto) fn hello_key(&self) -> &HelloKey {
        &self.hello_keys[0]
    }

    /// The pre-shared key that [`hello_keys`](Self::hello_keys) has at `key`.
    pub(in crate::proto) fn preshared(&self, key: usize) -> &[u8; 32] {
        self.preshared[key].bytes()
    }

    /// A session id that is not 0 and not `taken`. `count` must differ in each choice by the same
    /// half.
    pub(in crate::proto) fn choose_session(
        &self,
        chooser: Chooser,
        count: u64,
        taken: impl Fn(SessionId) -> bool,
    ) -> SessionId {
        // The low bit differs, so that neither half needs to know the ids that the other has
        // chosen. The rest is drawn at random, so that packets for an earlier incarnation mostly
        // name no session, and are dropped before any cipher runs.
        let (purpose, low_bit) = match chooser {
            Chooser::Initiator => ("initiator's session id", 0),
            Chooser::Responder => ("responder's session id", 1),
        };
        let mut drawn = u32::from_be_bytes(self.seed.derive(purpose, count)) & !1 | low_bit;
        while drawn == 0 || taken(SessionId(drawn)) {
            drawn = drawn.wrapping_add(2);
        }
        SessionId(drawn)
    }
}

/// The other end of a session.
#[derive(Clone, Copy, Debug)]
pub(in crate::proto) struct Remote {
    /// The incarnation of the peer.
    pub(in crate::proto) incarnation: Incarnation,
    /// Its capabilities beyond this version.
    pub(in crate::proto) capabilities: Capabilities,
}

/// A peer that one half of an endpoint has met, to which the other half needs no handshake.
#[derive(Clone, Debug)]
pub(in crate::proto) struct Peering {
    /// The address or alias that the peer is known by.
    pub(in crate::proto) peer: SocketAddr,
    /// The peer's incarnation.
    pub(in crate::proto) incarnation: Incarnation,
    /// The keys of the other half's direction.
    pub(in crate::proto) flow: FlowKeys,
    /// The peer's capabilities beyond this version.
    pub(in crate::proto) capabilities: Capabilities,
    /// The port at which it accepts messages.
    pub(in crate::proto) port: u16,
    /// The number of ports at which it does: `port` and those right after it.
    pub(in crate::proto) ports: u16,
    /// The address by which it knows this end, if this end has several.
    pub(in crate::proto) local: Option<IpAddr>,
    /// The routes by which its packets have arrived.
    pub(in crate::proto) routes: Vec<Via>,
}

/// A discovery by one half of an endpoint that the other must learn.
#[derive(Clone, Debug)]
pub(in crate::proto) enum Discovery {
    /// A peer, in a new session. Boxed, because most packets bring no discovery and should not bear
    /// its size.
    Peer(Box<Peering>),
    /// The routes by which packets of an incarnation of a peer arrive, one of which is new.
    Routes(SocketAddr, Incarnation, Vec<Via>),
    /// A packet has arrived from another address than that at which the peer is. Boxed, because it is
    /// as rare.
    Elsewhere(Box<Sighting>),
}

/// An authentic packet from another address than that at which its peer is.
#[derive(Clone, Copy, Debug)]
pub(in crate::proto) struct Sighting {
    /// The name of the peer.
    pub(in crate::proto) peer: SocketAddr,
    pub(in crate::proto) incarnation: Incarnation,
    /// How it arrived.
    pub(in crate::proto) via: Via,
    /// Its bytes: as many may be sent there before it is known that the peer receives there.
    pub(in crate::proto) len: usize,
}

/// What the sending half has found out about the address of a peer, and the other must learn.
#[derive(Clone, Copy, Debug)]
pub(in crate::proto) struct Located {
    /// The name of the peer.
    pub(in crate::proto) peer: SocketAddr,
    pub(in crate::proto) incarnation: Incarnation,
    /// An address at which it receives.
    pub(in crate::proto) ip: IpAddr,
    /// Whether it is to be reached there from now on.
    pub(in crate::proto) is_there: bool,
}

/// A peer that is certain not to answer, or not known to be there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proto) struct Departure {
    pub(in crate::proto) peer: SocketAddr,
    /// The one that is gone, if it is known: another may have its name by now.
    pub(in crate::proto) incarnation: Option<Incarnation>,
    pub(in crate::proto) why: Indeterminate,
    /// Whether the incarnation may still be there, and answer what it has.
    pub(in crate::proto) may_answer: bool,
}

/// What the sending half has found out about a peer, and the rest of the endpoint must act on.
#[derive(Clone, Copy, Debug)]
pub(in crate::proto) enum Finding {
    /// Calls that depend on it end.
    Departed(Departure),
    /// The receiving half must learn its address.
    Located(Located),
    /// It may be at another of its addresses, which the receiving half knows.
    Unresponsive(SocketAddr),
}

/// The wire encoding of the number of ports at which an endpoint accepts messages: how many more
/// than one.
pub(in crate::proto) fn more_ports(ports: u16) -> u8 {
    u8::try_from(ports.saturating_sub(1)).unwrap_or(u8::MAX)
}

/// The number of ports at which a peer accepts messages that announces `more` than one.
pub(in crate::proto) fn ports(more: u8) -> u16 {
    (u16::from(more) + 1).min(MAX_PORTS)
}
