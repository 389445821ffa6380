//! A sequence of packets from one host to another with its sender and its receiver, and the stack with which hosts send
//! and receive them.

use super::Config;
use super::config::Reaction;
use super::paths::{Route, Selectors};
use super::receiver::Receiver;
use super::resequence::{Arrival, Resequencer};
use super::sender::Sender;
use super::wire;
use crate::engine::{Ecn, Kind, NS, Packet, Time};
use crate::measure::Measures;
use crate::network::Network;
use crate::transport;

/// The kinds of timers: the high byte of a token. The next byte is the number of a subflow.
pub(super) mod timer {
    /// A retransmission timer.
    pub(in super::super) const TIMEOUT: u8 = 0;
    /// A gap in a re-sequencing buffer.
    pub(in super::super) const GAP: u8 = 1;
    /// An epoch of a host's throttle.
    pub(in super::super) const EPOCH: u8 = 2;

    /// The token of a timer without its low 16 bits.
    pub(in super::super) const fn token(kind: u8, subflow: u8) -> u32 {
        (kind as u32) << 24 | (subflow as u32) << 16
    }
}

/// One sequence of packets.
#[derive(Debug)]
pub(super) struct Subflow {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    resequencer: Option<Resequencer>,
    /// Bytes of the message that have arrived, each counted once.
    pub(super) received: u64,
    data: Route,
    acks: Route,
    /// Whether it is queued at a throttle.
    pub(super) is_queued: bool,
}

/// The settings and paths that all hosts share.
#[derive(Debug)]
pub(super) struct Stack {
    pub(super) config: Config,
    pub(super) number: u8,
    selectors: Selectors,
}

impl Stack {
    pub(super) fn new(config: Config) -> Self {
        Self { config, number: 0, selectors: Selectors::default() }
    }

    /// The subflows of a new flow.
    pub(super) fn open(&mut self, network: &mut Network, flow: u32, count: u8) -> Box<[Subflow]> {
        let (spec, _) = transport::open(network, flow, self.config.payload);
        let balancing = self.config.balancing;
        let routes =
            self.selectors.routes(network, balancing, spec.source, spec.destination, count);
        let subflow = |(data, acks)| Subflow {
            sender: Sender::new(&self.config),
            receiver: Receiver::default(),
            resequencer: self.config.resequencing.map(Resequencer::new),
            received: 0,
            data,
            acks,
            is_queued: false,
        };
        routes.into_iter().map(subflow).collect()
    }

    /// Sends packet `sequence` of a subflow, which is packet `part` of the message.
    pub(super) fn send(
        &mut self,
        network: &mut Network,
        (flow, index): (u32, u8),
        subflow: &mut Subflow,
        sequence: u32,
        part: u32,
    ) {
        let now = network.now();
        subflow.sender.on_sent(now, sequence);
        let record = network.flow_mut(flow);
        record.sent += 1;
        let spec = record.spec;
        let ecn =
            if self.config.reaction == Reaction::None { Ecn::NotCapable } else { Ecn::Capable };
        network.send(Packet {
            flow,
            source: spec.source,
            destination: spec.destination,
            path: self.selectors.next(subflow.data),
            size: self.config.size_of(part, spec.bytes),
            transport: self.number,
            class: self.config.class_of(part),
            kind: Kind::Data,
            ecn,
            sequence,
            remaining: wire::remaining(index, 0),
            sent: now,
            ..Packet::default()
        });
    }

    /// Sets the retransmission timer of a subflow, unless it is pending.
    pub(super) fn watch(&self, network: &mut Network, flow: u32, index: u8, subflow: &mut Subflow) {
        let token = timer::token(timer::TIMEOUT, index);
        subflow.sender.rto.schedule(network, self.number, flow, token);
    }

    /// Handles a data packet that has arrived.
    pub(super) fn take(&mut self, network: &mut Network, subflow: &mut Subflow, packet: &Packet) {
        Measures::record(&mut network.measures.queueing, packet.waited_ns.into());
        let arrival = Arrival {
            sequence: packet.sequence,
            sent: packet.sent,
            arrived: network.now(),
            size: packet.size,
            is_marked: packet.ecn == Ecn::Marked,
        };
        let id = (packet.flow, wire::subflow(packet));
        let Some(resequencer) = &mut subflow.resequencer else {
            self.receive(network, id, subflow, &arrival);
            return;
        };
        if let Some(arrival) = resequencer.take(arrival) {
            self.resequenced(network, id, subflow, &arrival);
        }
        self.release(network, id, subflow);
    }

    /// Hands packets that need not be held any longer from the re-sequencing buffer to TCP.
    pub(super) fn release(&mut self, network: &mut Network, id: (u32, u8), subflow: &mut Subflow) {
        let now = network.now();
        while let Some(arrival) = subflow.resequencer.as_mut().and_then(|held| held.pop(now)) {
            self.resequenced(network, id, subflow, &arrival);
        }
        if let Some(at) = subflow.resequencer.as_mut().and_then(Resequencer::poll_timer) {
            network.set_timer(self.number, at, id.0, timer::token(timer::GAP, id.1));
        }
    }

    /// Handles the timer of a gap.
    pub(super) fn on_gap(&mut self, network: &mut Network, id: (u32, u8), subflow: &mut Subflow) {
        if let Some(resequencer) = &mut subflow.resequencer {
            resequencer.on_timer();
            self.release(network, id, subflow);
        }
    }

    fn resequenced(
        &mut self,
        network: &mut Network,
        id: (u32, u8),
        subflow: &mut Subflow,
        arrival: &Arrival,
    ) {
        let held = (network.now() - arrival.arrived) / NS;
        Measures::record(&mut network.measures.resequencing, held);
        self.receive(network, id, subflow, arrival);
    }

    /// Hands a packet to TCP, which acknowledges it.
    fn receive(
        &mut self,
        network: &mut Network,
        (flow, index): (u32, u8),
        subflow: &mut Subflow,
        arrival: &Arrival,
    ) {
        if subflow.receiver.take(arrival.sequence) {
            subflow.received += u64::from(arrival.size - self.config.header());
        }
        let spec = network.flows()[flow].spec;
        network.send(Packet {
            flow,
            source: spec.destination,
            destination: spec.source,
            path: self.selectors.next(subflow.acks),
            size: self.config.ack,
            transport: self.number,
            class: self.config.ack_class(),
            kind: Kind::Ack,
            ecn: if arrival.is_marked { Ecn::Marked } else { Ecn::NotCapable },
            sequence: arrival.sequence,
            acknowledged: subflow.receiver.next(),
            remaining: wire::remaining(index, subflow.receiver.block(arrival.sequence)),
            sent: arrival.sent,
            ..Packet::default()
        });
    }
}

/// Records the round-trip time of an acknowledged packet.
pub(super) fn record_round_trip(network: &mut Network, sent: Time) {
    let round_trip = (network.now() - sent) / NS;
    Measures::record(&mut network.measures.round_trips, round_trip);
}
