//! Who this endpoint is, and whom it has met.

use crate::config::Security;
use crate::id::Incarnation;
use crate::proto::limits::MAX_PORTS;
use crate::rng::Seed;
use crate::wire::hello::HelloKey;
use crate::wire::keys::{FlowKeys, PresharedKey};
use std::net::SocketAddr;

/// One life of an endpoint: its incarnation and its secrets, shared by both its halves.
#[derive(Clone, Debug)]
pub(in crate::proto) struct Identity {
    pub(in crate::proto) incarnation: Incarnation,
    pub(in crate::proto) seed: Seed,
    pub(in crate::proto) key: PresharedKey,
    pub(in crate::proto) hello_key: HelloKey,
}

impl Identity {
    /// A new life. `seed` must never have been used by another.
    pub(in crate::proto) fn new(security: &Security, seed: Seed) -> Self {
        let key = security.key();
        let incarnation = Incarnation(seed.derive("incarnation", 0));
        let hello_key = key.hello_key();
        Self { incarnation, seed, key, hello_key }
    }
}

/// A peer that one half of an endpoint met, for the other half to talk to without a handshake.
#[derive(Clone, Debug)]
pub(in crate::proto) struct Peering {
    /// The address that the peer is known by.
    pub(in crate::proto) peer: SocketAddr,
    /// The peer's life.
    pub(in crate::proto) incarnation: Incarnation,
    /// The keys of the direction that the other half takes up.
    pub(in crate::proto) flow: FlowKeys,
    /// The port at which it takes messages.
    pub(in crate::proto) port: u16,
    /// At how many ports it does: that one and those right after it.
    pub(in crate::proto) ports: u16,
}

/// What an endpoint that takes messages at `ports` ports says of that: how many more than one.
pub(in crate::proto) fn more_ports(ports: u16) -> u8 {
    u8::try_from(ports.saturating_sub(1)).unwrap_or(u8::MAX)
}

/// At how many ports a peer takes messages that says that it has `more` than one.
pub(in crate::proto) fn ports(more: u8) -> u16 {
    (u16::from(more) + 1).min(MAX_PORTS)
}
