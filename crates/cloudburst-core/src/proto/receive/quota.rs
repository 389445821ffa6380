//! Quotas: their holders, and the sums of state that count against them.

use crate::id::Incarnation;
use crate::wire::Role;
use std::net::{IpAddr, Ipv6Addr};

/// A host, as far as addresses tell: an IPv4 address, or a /64 of IPv6, all of which one host may own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HostKey(Ipv6Addr);

impl HostKey {
    pub(super) const fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self(ip.to_ipv6_mapped()),
            IpAddr::V6(ip) => Self(Ipv6Addr::from_bits(ip.to_bits() & !(u64::MAX as u128))),
        }
    }
}

/// The holder of a quota: one incarnation of an endpoint, at one IP address.
///
/// The incarnation alone is not enough, because a third party could claim it and use up the quota.
/// Ports are ignored, because one endpoint has many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PeerKey {
    pub(super) incarnation: Incarnation,
    // Not by session: a peer may open any number, and three of them once held 96,592 bytes of a
    // quota of 40,000.
    pub(super) ip: IpAddr,
}

impl PeerKey {
    pub(super) const fn host(&self) -> HostKey {
        HostKey::of(self.ip)
    }
}

/// State that is held for a session, for a peer, for a host, or for all peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Bytes that messages being received may take.
    pub(super) memory: usize,
    /// The part of `memory` that belongs to messages that wait for the application, by role.
    pub(super) backlog: [usize; Role::COUNT],
    /// Endings of messages.
    pub(super) endings: usize,
}

impl Usage {
    /// Adjusts the sums after one part of them has changed from `before` to `after`.
    pub(super) fn replace(&mut self, before: Self, after: Self) {
        self.memory = self.memory - before.memory + after.memory;
        for (role, backlog) in self.backlog.iter_mut().enumerate() {
            *backlog = *backlog - before.backlog[role] + after.backlog[role];
        }
        self.endings = self.endings - before.endings + after.endings;
    }
}
