//! TCP and the transports based on it: DCTCP, PIAS, replicated DCTCP, QJump, MPTCP, and TCP over packet spraying.
//!
//! | scheme | settings | source |
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
//! Flows start with their initial window, and connections are neither opened nor closed. Every data packet is
//! acknowledged separately: the ACK has the packet's sending time, its mark, and one SACK block of at most eight
//! packets. Windows are counted in packets. The receiver's application reads at once. A loss that three later packets
//! do not reveal, and the loss of a retransmission, are left to the timeout. There is no early retransmit and no tail
//! loss probe, and spurious retransmissions are not undone.
//!
//! Hosts put all packets that the window allows into the queue of their port at once. A long flow that the network
//! does not slow down fills that queue with its window. To measure other flows of the same host, let the ports of
//! hosts mark as switches do, or keep the window small.
//!
//! Copies of a message share only the host's port. The message is delivered when one copy is complete. When the sender
//! learns of it, the other copies stop, and their packets in the network are ignored.

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
use throttle::HostThrottle;

/// TCP on all hosts.
#[derive(Debug)]
pub struct Tcp {
    stack: Stack,
    /// The copies of each flow's message; empty once it is acknowledged.
    flows: Vec<Box<[Subflow]>>,
    /// The throttle of each host.
    hosts: Vec<HostThrottle>,
}

impl Tcp {
    /// TCP with these settings on all hosts.
    pub fn new(config: Config) -> Self {
        Self { stack: Stack::new(config), flows: Vec::new(), hosts: Vec::new() }
    }

    /// Sends the packets that a copy may send.
    fn send(&mut self, network: &mut Network, flow: u32, index: u8) {
        let subflow = &mut self.flows[flow as usize][usize::from(index)];
        let record = &network.flows()[flow];
        if self.stack.config.throttle.is_some() {
            let source = record.spec.source;
            if !subflow.is_queued {
                subflow.is_queued = true;
                self.hosts[usize::from(source)].waiting.push_back((flow, index));
            }
            self.serve(network, source);
            return;
        }
        let end = record.needed;
        while let Some(packet) = subflow.sender.poll(end) {
            self.stack.send(network, (flow, index), subflow, packet, packet);
        }
        self.stack.watch(network, flow, index, subflow);
    }

    /// Sends the packets that a throttled host may send, one of each copy in turn.
    fn serve(&mut self, network: &mut Network, source: u16) {
        let Some(throttle) = self.stack.config.throttle else {
            return;
        };
        let host = &mut self.hosts[usize::from(source)];
        while let Some(&(flow, index)) = host.waiting.front() {
            let record = &network.flows()[flow];
            let Some(subflow) = self.flows[flow as usize].get_mut(usize::from(index)) else {
                host.waiting.pop_front();
                continue;
            };
            let Some(packet) = subflow.sender.poll(record.needed) else {
                host.waiting.pop_front();
                subflow.is_queued = false;
                self.stack.watch(network, flow, index, subflow);
                continue;
            };
            let size = self.stack.config.size_of(packet, record.spec.bytes);
            if !host.admit(&throttle, network.now(), size) {
                break;
            }
            host.waiting.rotate_left(1);
            self.stack.send(network, (flow, index), subflow, packet, packet);
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
        self.hosts.resize_with(network.fabric().shape().hosts(), HostThrottle::default);
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
        let flow = packet.flow;
        let index = wire::subflow(&packet);
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
