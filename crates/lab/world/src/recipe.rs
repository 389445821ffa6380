//! The recipe of a host: its configuration and its addresses.

use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::naming::Naming;
use cloudburst_core::path::{Egresses, PathResolver, Via};
use std::net::SocketAddr;

/// The paths of a host that knows its own addresses. They differ only in the egress.
#[derive(Clone, Debug)]
pub struct HostPaths {
    egresses: u16,
    own: Vec<SocketAddr>,
    mtu: usize,
}

impl PathResolver for HostPaths {
    fn paths(&self, peer: SocketAddr, ports: u16) -> Vec<Via> {
        Egresses(self.egresses).paths(peer, ports)
    }

    fn mtu(&self, _via: Via) -> Option<usize> {
        Some(self.mtu)
    }

    fn naming(&self, address: SocketAddr) -> Naming {
        if self.own.contains(&address) { Naming::Own } else { Naming::Foreign }
    }
}

/// The recipe of a host, used each time that it starts.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The configuration of its endpoint.
    pub config: Config,
    /// The ports that its peers are told.
    pub listen: ListenPorts,
    /// The keys that distinguish its peers from strangers.
    pub security: Security,
    /// The secret that its incarnations are drawn from. The second byte is the number of restarts.
    pub secret: [u8; 32],
    /// The number of egresses that it sends by.
    pub egresses: u16,
    /// The address of egress 0; that of egress `k` has a port that is `k` higher.
    pub addr: SocketAddr,
    /// The number of ports that receive packets: that of `addr` and those directly after it.
    pub ports: u16,
    /// An egress and an address that other hosts may share. The source port decides which of the
    /// hosts gets a packet to a shared address.
    pub shared: Option<(u16, SocketAddr)>,
    /// The MTU of its interface, as its system reports it. No packet is refused for its length.
    pub interface_mtu: usize,
}

impl Recipe {
    /// The source address of packets that leave by `egress`.
    pub fn address(&self, egress: u16) -> SocketAddr {
        match self.shared {
            Some((shared, address)) if shared == egress => address,
            _ => SocketAddr::new(self.addr.ip(), self.addr.port() + egress),
        }
    }

    /// The paths of the host, and the addresses that it knows to be its own.
    pub fn paths(&self) -> HostPaths {
        let egresses = (0..self.egresses).map(|egress| self.address(egress));
        let ports =
            (0..self.ports).map(|port| SocketAddr::new(self.addr.ip(), self.addr.port() + port));
        let shared = self.shared.map(|(_, address)| address);
        HostPaths {
            egresses: self.egresses,
            own: egresses.chain(ports).chain(shared).collect(),
            mtu: self.interface_mtu,
        }
    }

    /// The egress that packets to `address` arrive on.
    pub fn egress_at(&self, address: SocketAddr) -> Option<u16> {
        if let Some((egress, _)) = self.shared.filter(|(_, shared)| *shared == address) {
            return Some(egress);
        }
        let egress = address.port().checked_sub(self.addr.port())?;
        (address.ip() == self.addr.ip() && egress < self.ports).then_some(egress)
    }
}
