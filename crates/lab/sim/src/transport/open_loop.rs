//! Open-loop sources, without congestion control or loss recovery.
//!
//! They validate queues against theory: Poisson arrivals (M/D/1), and Bernoulli arrivals in slots (Appendix B of the
//! DRB paper).

use super::{Transport, open, store};
use crate::engine::{Handle, Packet, Time};
use crate::network::Network;
use cloudburst_core::path::{Order, Sequence};
use cloudburst_workload::draw::{chance, exponential};

/// The arrival process of a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrivalProcess {
    /// One packet at the beginning of each slot, with some probability.
    Bernoulli {
        /// The length of a slot.
        slot: Time,
        /// The probability, above 0.
        load: f64,
    },
    /// A Poisson process.
    Poisson {
        /// The mean time between packets.
        mean: Time,
    },
}

/// The parameters of the sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Bytes of a packet, all of which are payload.
    pub packet: u16,
    /// The arrival process of packets.
    pub arrivals: ArrivalProcess,
    /// The order in which packets visit the paths; round robin if it does not fit the number of paths.
    pub order: Order,
}

/// The sources on all hosts.
#[derive(Debug)]
pub struct OpenLoop {
    config: Config,
    number: u8,
    flows: Vec<Option<Source>>,
}

#[derive(Debug)]
struct Source {
    paths: Sequence,
    to_send: u32,
    to_arrive: u32,
}

impl OpenLoop {
    /// Creates the sources.
    pub const fn new(config: Config) -> Self {
        Self { config, number: 0, flows: Vec::new() }
    }

    /// Sets the timer of the next packet, drawn from `at` on.
    fn schedule(&self, network: &mut Network, flow: u32, mut at: Time) {
        match self.config.arrivals {
            ArrivalProcess::Bernoulli { slot, load } => {
                while !chance(network.rng(), load) {
                    at += slot;
                }
            }
            ArrivalProcess::Poisson { mean } => at += exponential(network.rng(), mean),
        }
        network.set_timer(self.number, at, flow, 0);
    }
}

impl Transport for OpenLoop {
    fn attach(&mut self, number: u8, _network: &mut Network) {
        self.number = number;
    }

    fn begin(&mut self, network: &mut Network, flow: u32) {
        let (spec, packets) = open(network, flow, self.config.packet);
        let paths = network.draw_sequence(self.config.order, spec.source, spec.destination);
        let to_send = packets;
        let to_arrive = packets;
        store(&mut self.flows, flow, Source { paths, to_send, to_arrive });
        self.schedule(network, flow, network.now());
    }

    fn receive(&mut self, network: &mut Network, packet: Handle) {
        let flow = network.packet(packet).flow;
        if let Some(state) = self.flows[flow as usize].as_mut() {
            state.to_arrive -= 1;
            if state.to_arrive == 0 {
                network.deliver(flow);
            }
        }
    }

    fn expire(&mut self, network: &mut Network, flow: u32, _token: u32) {
        let Some(state) = self.flows[flow as usize].as_mut() else {
            return;
        };
        state.to_send -= 1;
        let path = state.paths.next_path() as u16;
        let is_last = state.to_send == 0;
        let now = network.now();
        let record = network.flow_mut(flow);
        let sequence = record.sent;
        record.sent += 1;
        let spec = record.spec;
        network.send(Packet {
            flow,
            source: spec.source,
            destination: spec.destination,
            path,
            size: self.config.packet,
            transport: self.number,
            sequence,
            sent: now,
            ..Packet::default()
        });
        if !is_last {
            let next = match self.config.arrivals {
                ArrivalProcess::Bernoulli { slot, .. } => now + slot,
                ArrivalProcess::Poisson { .. } => now,
            };
            self.schedule(network, flow, next);
        }
    }
}
