//! What a host is made of, and where it is.

use cloudburst_core::config::{Config, Security};
use std::net::SocketAddr;

/// What a host is made of, each time that it starts.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// What its endpoint is told.
    pub config: Config,
    /// What tells its peers from strangers.
    pub security: Security,
    /// What its incarnations are drawn from. The second byte is the number of restarts.
    pub secret: [u8; 32],
    /// Egresses that it sends by.
    pub egresses: u16,
    /// The address of egress 0; that of egress `k` has a port that is `k` higher.
    pub addr: SocketAddr,
    /// Ports that packets get to, that one and those right after it.
    pub ports: u16,
    /// An egress and an address that other hosts may share. Packets to a shared address are dealt
    /// out by the port that they come from.
    pub shared: Option<(u16, SocketAddr)>,
}

impl Recipe {
    /// The address that packets leave from by `egress`.
    pub fn address(&self, egress: u16) -> SocketAddr {
        match self.shared {
            Some((shared, address)) if shared == egress => address,
            _ => SocketAddr::new(self.addr.ip(), self.addr.port() + egress),
        }
    }

    /// The egress that packets to `address` come in on.
    pub fn egress_at(&self, address: SocketAddr) -> Option<u16> {
        if let Some((egress, _)) = self.shared.filter(|(_, shared)| *shared == address) {
            return Some(egress);
        }
        let egress = address.port().checked_sub(self.addr.port())?;
        (address.ip() == self.addr.ip() && egress < self.ports).then_some(egress)
    }
}
