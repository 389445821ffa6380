//! An abstract model of Cloudburst: a host bursts symbols of a message until STOP, and any `n` symbols complete it.
//!
//! There are no codes, sessions or loss detection: the receiver counts symbols and answers STOP. A host sends at a
//! share `r` of its link's rate, round robin over its messages and paths, one packet at a time. The model is for
//! fabrics of thousands of hosts; the protocol itself is [`cloudburst`](super::cloudburst).

use super::{Transport, open, store};
use crate::engine::{Handle, Kind, Packet, Time};
use crate::network::Network;
use cloudburst_core::path::{Order, Sequence};
use std::collections::VecDeque;

/// The parameters of the model.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of a symbol on the wire.
    pub packet: u16,
    /// Bytes of the message in each symbol.
    pub payload: u16,
    /// Bytes of a STOP on the wire.
    pub stop: u16,
    /// The share of its link's rate at which a host sends: r in Algorithm 1.
    pub rate: f64,
    /// The rate of a host's link, in bits per second.
    pub link: u64,
    /// The order in which the symbols of a message visit the paths.
    pub order: Order,
    /// The class of symbols and STOPs.
    pub class: u8,
    /// Symbols needed in addition to those of the message: the reception overhead of the code.
    pub extra: u32,
}

impl Default for Config {
    /// Packets of 1,500 bytes that carry 1,460 of the message, at the full rate of 10 Gb/s.
    fn default() -> Self {
        Self {
            packet: 1_500,
            payload: 1_460,
            stop: 40,
            rate: 1.0,
            link: 10_000_000_000,
            order: Order::RoundRobin,
            class: 0,
            extra: 0,
        }
    }
}

/// The model on all hosts.
#[derive(Debug)]
pub struct Burst {
    config: Config,
    number: u8,
    hosts: Vec<HostQueue>,
    messages: Vec<Option<Message>>,
}

#[derive(Debug, Default)]
struct HostQueue {
    /// Messages being sent, the next one at the front.
    queue: VecDeque<u32>,
    /// When it may send again.
    free_at: Time,
    is_timed: bool,
}

#[derive(Debug)]
struct Message {
    paths: Sequence,
    needed: u32,
    arrived: u32,
    stopped: bool,
    sent: u32,
}

impl Burst {
    /// Creates the model.
    pub const fn new(config: Config) -> Self {
        Self { config, number: 0, hosts: Vec::new(), messages: Vec::new() }
    }

    /// Sends a symbol of the next message.
    fn send(&mut self, network: &mut Network, source: u16) {
        let host = &mut self.hosts[usize::from(source)];
        host.is_timed = false;
        let now = network.now();
        let Some(flow) = host.queue.pop_front() else {
            return;
        };
        let Some(message) =
            self.messages[flow as usize].as_mut().filter(|message| !message.stopped)
        else {
            return self.send(network, source);
        };
        host.queue.push_back(flow);
        let path = message.paths.next_path() as u16;
        let sequence = message.sent;
        message.sent += 1;
        let service = 8.0e12 * f64::from(self.config.packet) / self.config.link as f64;
        host.free_at = now + (service / self.config.rate) as Time;
        host.is_timed = true;
        network.set_timer(self.number, host.free_at, u32::from(source), 0);
        network.flow_mut(flow).sent += 1;
        let destination = network.flows()[flow].spec.destination;
        network.send(Packet {
            flow,
            source,
            destination,
            path,
            size: self.config.packet,
            transport: self.number,
            class: self.config.class,
            sequence,
            sent: now,
            ..Packet::default()
        });
    }
}

impl Transport for Burst {
    fn attach(&mut self, number: u8, network: &mut Network) {
        self.number = number;
        self.hosts.resize_with(network.fabric().shape().hosts(), HostQueue::default);
    }

    fn begin(&mut self, network: &mut Network, flow: u32) {
        let (spec, symbols) = open(network, flow, self.config.payload);
        let needed = symbols + self.config.extra;
        let paths = network.draw_sequence(self.config.order, spec.source, spec.destination);
        let message = Message { paths, needed, arrived: 0, stopped: false, sent: 0 };
        store(&mut self.messages, flow, message);
        let host = &mut self.hosts[usize::from(spec.source)];
        host.queue.push_back(flow);
        if !host.is_timed && host.free_at <= network.now() {
            self.send(network, spec.source);
        } else if !host.is_timed {
            host.is_timed = true;
            network.set_timer(self.number, host.free_at, u32::from(spec.source), 0);
        }
    }

    fn receive(&mut self, network: &mut Network, packet: Handle) {
        let packet = *network.packet(packet);
        let Some(message) = self.messages[packet.flow as usize].as_mut() else {
            return;
        };
        if packet.kind == Kind::Ack {
            message.stopped = true;
            network.acknowledge(packet.flow);
            return;
        }
        if packet.trimmed {
            return;
        }
        message.arrived += 1;
        if message.arrived < message.needed {
            return;
        }
        network.deliver(packet.flow);
        // A STOP for the completing symbol and for every surplus one, because STOPs may be lost (III-B).
        network.send(Packet {
            source: packet.destination,
            destination: packet.source,
            size: self.config.stop,
            kind: Kind::Ack,
            ..packet
        });
    }

    fn expire(&mut self, network: &mut Network, host: u32, _token: u32) {
        self.send(network, host as u16);
    }
}
