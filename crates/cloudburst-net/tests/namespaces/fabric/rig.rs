//! Pairs of endpoints on a fabric, and which way their packets go.

use crate::common::{KEY, bytes};
use cloudburst_net::{Builder, Config, Endpoint, PathMap, PathStats, Receipt, Security};
use cloudburst_testbed::{Fabric, Node, Topology};
use core::time::Duration;
use libtest_mimic::Failed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The host that sends.
pub(crate) const FROM: u16 = 1;
/// The host that receives, of the other leaf.
pub(crate) const TO: u16 = 3;
pub(crate) const LARGE: usize = 93_000;

pub(crate) const SPINES: u16 = 4;
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Bits per second of a link.
pub(crate) const RATE: u64 = 100_000_000;

/// Two hosts per leaf, and the paper's spines.
pub(crate) fn small() -> Topology {
    Topology { hosts: 4, spines: SPINES, ..Topology::default() }
}

/// An endpoint that sends, and one that receives.
pub(crate) struct Pair {
    pub(crate) sender: Endpoint,
    pub(crate) receiver: Endpoint,
    to: SocketAddr,
}

/// Settings of an endpoint; any port.
pub(crate) fn builder(bind: impl Into<IpAddr>) -> Builder {
    // A port of the fabric reports a much higher speed.
    let builder = Endpoint::builder()
        .bind(SocketAddr::new(bind.into(), 0))
        .config(Config { capacity: RATE.into(), ..Config::default() });
    builder.security(Security::pre_shared(KEY))
}

impl Pair {
    /// The sender as `sender` says; messages go to `to`, an address of host 3. Answers have the
    /// maximum number of reverse paths: of 16 hashed ones, none would lead over the one living
    /// spine once in a hundred times.
    pub(crate) fn new(fabric: &Fabric, sender: Builder, to: IpAddr) -> Result<Self, Failed> {
        Self::with_paths_back(fabric, sender, to, PathMap::ecmp(PathMap::MAX))
    }

    pub(crate) fn with_paths_back(
        fabric: &Fabric,
        sender: Builder,
        to: IpAddr,
        back: PathMap,
    ) -> Result<Self, Failed> {
        let any: IpAddr = match to {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let receiver = builder(any).paths(back);
        let receiver = fabric.host(TO)?.run(|| receiver.build())??.clone();
        let sender = fabric.host(FROM)?.run(|| sender.build())??.clone();
        let to = SocketAddr::new(to, receiver.local_addr().port());
        Ok(Self { sender, receiver, to })
    }

    /// Sends a message, which must arrive as it is.
    pub(crate) fn deliver(&self, len: usize, seed: u64) -> Result<Receipt, Failed> {
        let message = bytes(len, seed);
        let receipt = self.sender.send(self.to, message.clone()).wait();
        let receipt = receipt.map_err(|error| format!("{len} bytes, message {seed}: {error}"))?;
        let arrived =
            self.receiver.recv().wait_for(TIMEOUT).ok_or("delivered, and not there")??;
        assert_eq!(arrived.bytes, message);
        Ok(receipt)
    }

    /// The sender's paths.
    pub(crate) fn paths(&self) -> Vec<PathStats> {
        self.sender.paths(self.to)
    }
}

/// Packets with the DSCP that each spine has forwarded to leaf 2.
pub(crate) fn by_spine(fabric: &Fabric) -> Result<Vec<u64>, Failed> {
    let sent = |spine| Ok(fabric.port(Node::Spine(spine), Node::Leaf(2))?.tiny.sent);
    (1..=SPINES).map(sent).collect()
}

/// The difference to an earlier count.
pub(crate) fn since(before: &[u64], after: &[u64]) -> Vec<u64> {
    after.iter().zip(before).map(|(after, before)| after - before).collect()
}
