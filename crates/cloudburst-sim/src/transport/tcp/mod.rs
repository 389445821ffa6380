//! TCP and what is made of it: DCTCP, PIAS, replicated DCTCP, QJump.
//!
//! | scheme | is | source |
//! |---|---|---|
//! | TCP | [`Config::default`]: SACK, NewReno's window, RFC 6298 timeouts | RFC 5681, 6675, 6298 |
//! | DCTCP | [`Config::dctcp`] and queues that mark | SIGCOMM 2010; RFC 8257 |
//! | PIAS | [`Config::pias`] and [`Strict`](crate::queue::Strict) queues that mark | NSDI 2015 |
//! | replicated DCTCP | [`Config::copies`] | RepFlow; INFOCOM 2022, V-B |
//! | QJump | [`Config::throttle`], one transport for each level, [`Strict`](crate::queue::Strict) queues | NSDI 2015 |
//! | MPTCP | [`Mptcp`], with LIA | RFC 6356, 8684 |
//! | RB, RRB, DRB | [`LoadBalancing::PerPacket`] and [`Config::resequencing`] | CoNEXT 2013 |
//!
//! # Simplifications
//!
//! Flows begin with their initial window: there is no handshake, and none at the end. Every data packet is
//! acknowledged by itself, with the time at which it was sent, its mark, and one SACK block of at most eight
//! packets. Windows are counted in packets. The receiver's application reads at once. A loss that three later
//! packets do not reveal, and that of a retransmission, is left to the timeout: there is no early retransmit,
//! no tail loss probe, and nothing undoes a retransmission that was not needed.
//!
//! Hosts put what the window allows into the queue of their port at once. A long flow that the network does
//! not slow down fills that queue with its window; so let the ports of hosts mark as switches do, or keep the
//! window small, where other flows of the same host are to be measured.
//!
//! Copies of a message share nothing but the host's port. The message is delivered when one copy is whole,
//! and when the sender knows it, the other copies stop: what they have in the network is ignored.

mod config;
mod congestion;
mod mptcp;
mod paths;
mod receiver;
mod resequence;
mod rto;
mod sender;
mod subflow;
mod throttle;
mod wire;

pub use config::{Config, LoadBalancing, Reaction, Tagging};
pub use mptcp::Mptcp;
pub use throttle::Throttle;

use super::Transport;
use crate::engine::{Handle, Kind};
use crate::network::Network;
use subflow::{Stack, Subflow, timer};
use throttle::Host;

/// TCP on all hosts.
#[derive(Debug)]
pub struct Tcp {
    stack: Stack,
    /// The copies of each flow's message; none once it is acknowledged.
    flows: Vec<Box<[Subflow]>>,
    /// What each host throttles.
    hosts: Vec<Host>,
}

impl Tcp {
    /// Hosts that behave as `config` says.
    pub fn new(config: Config) -> Self {
        Self { stack: Stack::new(config), flows: Vec::new(), hosts: Vec::new() }
    }

    /// Sends what a copy may send.
    fn send(&mut self, network: &mut Network, flow: u32, index: u8) {
        let subflow = &mut self.flows[flow as usize][usize::from(index)];
        let record = &network.flows()[flow];
        if self.stack.config.throttle.is_some() {
            let source = record.spec.source;
            if !subflow.is_queued {
                subflow.is_queued = true;
                self.hosts[usize::from(source)].turns.push_back((flow, index));
            }
            self.serve(network, source);
            return;
        }
        let end = record.needed;
        while let Some(packet) = subflow.sender.poll(end) {
            self.stack.send(network, (flow, index), subflow, (packet, packet));
        }
        self.stack.watch(network, flow, index, subflow);
    }

    /// Lets a host that is throttled send what it may: a packet of each copy in turn.
    fn serve(&mut self, network: &mut Network, source: u16) {
        let Some(throttle) = self.stack.config.throttle else {
            return;
        };
        let host = &mut self.hosts[usize::from(source)];
        while let Some(&(flow, index)) = host.turns.front() {
            let record = &network.flows()[flow];
            let Some(subflow) = self.flows[flow as usize].get_mut(usize::from(index)) else {
                host.turns.pop_front();
                continue;
            };
            let Some(packet) = subflow.sender.poll(record.needed) else {
                host.turns.pop_front();
                subflow.is_queued = false;
                self.stack.watch(network, flow, index, subflow);
                continue;
            };
            let size = self.stack.config.size_of(packet, record.spec.bytes);
            if !host.admit(&throttle, network.now(), size) {
                break;
            }
            host.turns.rotate_left(1);
            self.stack.send(network, (flow, index), subflow, (packet, packet));
            self.stack.watch(network, flow, index, subflow);
        }
        if let Some(at) = host.poll_timer() {
            let token = timer::token(timer::EPOCH, 0);
            network.set_timer(self.stack.number, at, source.into(), token);
        }
    }
}

impl Transport for Tcp {
    fn attach(&mut self, number: u8, network: &mut Network) {
        self.stack.number = number;
        self.hosts.resize_with(network.fabric().shape().hosts(), Host::default);
    }

    fn begin(&mut self, network: &mut Network, flow: u32) {
        let copies = self.stack.config.copies.max(1);
        let subflows = self.stack.open(network, flow, copies);
        self.flows.resize_with(flow as usize + 1, Box::default);
        self.flows[flow as usize] = subflows;
        for index in 0..copies {
            self.send(network, flow, index);
        }
    }

    fn receive(&mut self, network: &mut Network, packet: Handle) {
        let packet = *network.packet(packet);
        if packet.trimmed {
            return;
        }
        let (flow, index) = (packet.flow, wire::subflow(&packet));
        let Some(subflow) = self.flows[flow as usize].get_mut(usize::from(index)) else {
            return;
        };
        let end = network.flows()[flow].needed;
        if packet.kind == Kind::Data {
            self.stack.take(network, subflow, &packet);
            let record = network.flow_mut(flow);
            record.received = record.received.max(subflow.received);
            if subflow.receiver.next() == end {
                network.deliver(flow);
            }
            return;
        }
        subflow::record_round_trip(network, packet.sent);
        subflow.sender.on_ack(network.now(), &wire::Ack::of(&packet), None);
        if subflow.sender.first() == end {
            network.acknowledge(flow);
            self.flows[flow as usize] = Box::default();
        } else {
            self.send(network, flow, index);
        }
    }

    fn expire(&mut self, network: &mut Network, flow: u32, token: u32) {
        let [kind, index, ..] = token.to_be_bytes();
        if kind == timer::EPOCH {
            self.hosts[flow as usize].on_timer();
            self.serve(network, flow as u16);
            return;
        }
        let Some(subflow) = self.flows[flow as usize].get_mut(usize::from(index)) else {
            return;
        };
        if kind == timer::GAP {
            self.stack.on_gap(network, (flow, index), subflow);
            let record = network.flow_mut(flow);
            record.received = record.received.max(subflow.received);
            return;
        }
        if subflow.sender.rto.on_timer(network.now(), token as u16) {
            subflow.sender.on_timeout();
            self.send(network, flow, index);
        } else {
            self.stack.watch(network, flow, index, subflow);
        }
    }
}
