//! Background flows (INFOCOM 2022, V): some hosts send long flows back to back, to random destinations.

use super::Workload;
use crate::engine::Time;
use crate::fabric::Shape;
use crate::flow::{Flow, NewFlow};
use cloudburst_core::rng::SplitMix64;
use cloudburst_workload::{Peers, Racks, WorkloadError, draw};
use core::ops::Range;

/// Back-to-back flows: each starts when the previous one of its host has been delivered. The tag of a flow is the
/// index of its host among the senders.
#[derive(Clone, Debug)]
pub struct Background {
    racks: Racks,
    senders: Range<u16>,
    peers: Peers,
    bytes: u64,
    transport: u8,
    /// The generator of each sender.
    rngs: Vec<SplitMix64>,
    begun: u16,
    from: Time,
}

impl Background {
    /// Flows of `bytes` from each of `senders`, starting at `from`. The paper has flows of 10 MB from the hosts of one
    /// rack to [`Peers::OtherRacks`].
    ///
    /// # Errors
    ///
    /// [`WorkloadError`]: there are no destinations.
    pub fn new(
        shape: &Shape,
        senders: Range<u16>,
        peers: Peers,
        bytes: u64,
        transport: u8,
        from: Time,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let racks = shape.racks();
        peers.check(racks)?;
        let rngs = senders.clone().map(|host| draw::stream(seed, "background", host.into()));
        let rngs = rngs.collect();
        Ok(Self { racks, senders, peers, bytes, transport, rngs, begun: 0, from })
    }

    fn flow(&mut self, number: u32) -> NewFlow {
        let source = self.senders.start + number as u16;
        let drawn = self.rngs[number as usize].below(self.peers.count(self.racks) as u64);
        NewFlow {
            source,
            destination: self.peers.nth(self.racks, source, drawn),
            transport: self.transport,
            bytes: self.bytes,
            tag: number,
        }
    }
}

impl Workload for Background {
    fn next(&mut self) -> Option<(Time, NewFlow)> {
        let number = self.begun;
        if usize::from(number) == self.rngs.len() {
            return None;
        }
        self.begun += 1;
        Some((self.from, self.flow(number.into())))
    }

    fn on_delivered(&mut self, _now: Time, flow: &Flow) -> Option<NewFlow> {
        Some(self.flow(flow.spec.tag))
    }
}
