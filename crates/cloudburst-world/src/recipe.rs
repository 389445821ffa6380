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
    /// Lanes that it sends by.
    pub lanes: u16,
    /// The address of lane 0; that of lane `k` has a port that is `k` higher.
    pub addr: SocketAddr,
    /// Ports that packets get to, that one and those right after it.
    pub ports: u16,
    /// A lane and an address that other hosts may share. Packets to a shared address are dealt out
    /// by the port that they come from.
    pub shared: Option<(u16, SocketAddr)>,
}

impl Recipe {
    /// The address that packets leave from by `lane`.
    pub fn address(&self, lane: u16) -> SocketAddr {
        match self.shared {
            Some((shared, address)) if shared == lane => address,
            _ => SocketAddr::new(self.addr.ip(), self.addr.port() + lane),
        }
    }

    /// The lane that packets to `address` come in on.
    pub fn lane_at(&self, address: SocketAddr) -> Option<u16> {
        if let Some((lane, _)) = self.shared.filter(|(_, shared)| *shared == address) {
            return Some(lane);
        }
        let lane = address.port().checked_sub(self.addr.port())?;
        (address.ip() == self.addr.ip() && lane < self.ports).then_some(lane)
    }
}
