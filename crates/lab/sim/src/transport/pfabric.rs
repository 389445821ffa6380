//! pFabric's minimal TCP: flows start at line rate and recover by timeouts alone (SIGCOMM 2013, section 4.2).
//!
//! The initial window is one bandwidth-delay product. Each packet is acknowledged individually (SACK), but there is no
//! fast retransmit: dropped packets are retransmitted after a short, fixed timeout without backoff. On a timeout, as in
//! TCP, all unacknowledged packets count as lost, the slow start threshold becomes half the window, and the window
//! becomes one packet. After several consecutive timeouts, only probes are sent, one per timeout, until an
//! acknowledgement arrives.
//!
//! The priority of a packet is the number of unacknowledged bytes of its flow when it is sent. Ports should have
//! [`queue::PFabricQueue`](crate::queue::PFabricQueue).

use super::received::Received;
use super::{Transport, open, payload_of, store};
use crate::engine::{Handle, Kind, NS, Packet, Time};
use crate::measure::Measures;
use crate::network::Network;
use core::ops::Range;

/// The `sequence` of a probe's acknowledgement.
const PROBE: u32 = u32::MAX;

/// The parameters of pFabric.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of a full packet on the wire.
    pub packet: u16,
    /// Bytes of the message in a full packet.
    pub payload: u16,
    /// Bytes of an acknowledgement and of a probe on the wire.
    pub control: u16,
    /// The initial window in packets: a bandwidth-delay product. A larger one fills the queues with packets that are
    /// dropped, a smaller one costs round trips.
    pub window: u32,
    /// The maximum window in packets. The authors' scripts use one less than the queue's limit.
    pub max_window: u32,
    /// The retransmission timeout, from the last advance of the cumulative acknowledgement.
    pub rto: Time,
    /// Consecutive timeouts after which only probes are sent; 1 or more.
    pub timeouts: u32,
    /// Whether the packets of a flow are sprayed over all paths round robin, as in the paper (section 5.1). Otherwise
    /// they take one path (ECMP).
    pub spray: bool,
}

impl Default for Config {
    /// Section V-D of the Cloudburst paper: a window of 17 packets, queues of 34, a timeout of 1 ms. pFabric's
    /// own timeout is three round trips, and it sends probes after 5 timeouts.
    fn default() -> Self {
        Self {
            packet: 1_500,
            payload: 1_460,
            control: 40,
            window: 17,
            max_window: 33,
            rto: 1_000_000 * NS,
            timeouts: 5,
            spray: true,
        }
    }
}

/// pFabric on all hosts.
#[derive(Debug)]
pub struct PFabric {
    config: Config,
    number: u8,
    /// By flow; `None` once the whole message is acknowledged.
    flows: Vec<Option<Box<FlowEnds>>>,
}

/// Both ends of a flow.
#[derive(Debug)]
struct FlowEnds {
    /// The number of paths, and the path of the next packet.
    paths: u16,
    path: u16,
    bytes: u64,
    packets: u32,
    /// Packets acknowledged to the sender.
    acknowledged: Received,
    /// Bytes that are not acknowledged.
    remaining: u64,
    /// The first packet that has never been sent.
    next: u32,
    /// Packets that a timeout has declared lost and that have not been sent again, unless acknowledged.
    lost: Range<u32>,
    /// Packets that are neither acknowledged nor lost.
    outstanding: u32,
    /// The congestion window, in packets.
    window: f64,
    slow_start_threshold: f64,
    /// Consecutive timeouts.
    timeouts: u32,
    /// When a timeout is due.
    deadline: Time,
    /// Packets that have arrived at the receiver.
    received: Received,
}

impl PFabric {
    /// Creates the transport.
    pub const fn new(config: Config) -> Self {
        Self { config, number: 0, flows: Vec::new() }
    }

    /// Sends the packets that the window allows.
    fn send(&mut self, network: &mut Network, flow: u32) {
        let Some(state) = self.flows[flow as usize].as_mut() else {
            return;
        };
        while f64::from(state.outstanding) + 1.0 <= state.window {
            let Some(number) = state.next_to_send() else {
                return;
            };
            state.outstanding += 1;
            let headers = self.config.packet - self.config.payload;
            let size = headers + payload_of(number, state.bytes, self.config.payload);
            let spec = network.flows()[flow].spec;
            network.flow_mut(flow).sent += 1;
            network.send(Packet {
                flow,
                source: spec.source,
                destination: spec.destination,
                path: state.next_path(self.config.spray),
                size,
                transport: self.number,
                sequence: number,
                remaining: u32::try_from(state.remaining).unwrap_or(u32::MAX),
                sent: network.now(),
                ..Packet::default()
            });
        }
    }

    /// Sends a probe.
    fn probe(&mut self, network: &mut Network, flow: u32) {
        let Some(state) = self.flows[flow as usize].as_mut() else {
            return;
        };
        let spec = network.flows()[flow].spec;
        network.send(Packet {
            flow,
            source: spec.source,
            destination: spec.destination,
            path: state.next_path(self.config.spray),
            size: self.config.control,
            transport: self.number,
            kind: Kind::Probe,
            sent: network.now(),
            ..Packet::default()
        });
    }

    /// Handles data or a probe at the receiver.
    fn receive_data(&mut self, network: &mut Network, packet: Packet) {
        let Some(state) = self.flows[packet.flow as usize].as_mut() else {
            return;
        };
        // A trimmed packet has lost its payload.
        if packet.trimmed {
            return;
        }
        let mut sequence = PROBE;
        if packet.kind == Kind::Data {
            sequence = packet.sequence;
            Measures::record(&mut network.measures.queueing, packet.waited_ns.into());
            if state.received.insert(sequence) {
                let bytes = payload_of(sequence, state.bytes, self.config.payload);
                network.flow_mut(packet.flow).received += u64::from(bytes);
            }
            if state.received.is_complete() {
                network.deliver(packet.flow);
            }
        }
        network.send(Packet {
            source: packet.destination,
            destination: packet.source,
            size: self.config.control,
            kind: Kind::Ack,
            sequence,
            acknowledged: state.received.first_missing(),
            remaining: 0,
            ..packet
        });
    }

    /// Handles an acknowledgement at the sender.
    fn receive_ack(&mut self, network: &mut Network, packet: Packet) {
        let Some(state) = self.flows[packet.flow as usize].as_mut() else {
            return;
        };
        let now = network.now();
        if packet.sequence != PROBE {
            Measures::record(&mut network.measures.round_trips, (now - packet.sent) / NS);
        }
        let before = state.acknowledged.first_missing();
        // The cumulative number makes up for lost acknowledgements.
        for number in (before..packet.acknowledged).chain([packet.sequence]) {
            state.acknowledge(number, &self.config);
        }
        if state.acknowledged.is_complete() {
            network.acknowledge(packet.flow);
            self.flows[packet.flow as usize] = None;
            return;
        }
        let was_probing = state.timeouts >= self.config.timeouts;
        state.timeouts = 0;
        if was_probing || state.acknowledged.first_missing() > before {
            state.deadline = now + self.config.rto;
        }
        self.send(network, packet.flow);
    }
}

impl FlowEnds {
    fn next_path(&mut self, spray: bool) -> u16 {
        let path = self.path;
        if spray {
            self.path = (path + 1) % self.paths;
        }
        path
    }

    /// The next packet to send, lost packets first.
    fn next_to_send(&mut self) -> Option<u32> {
        let lost = self.acknowledged.missing_from(self.lost.start);
        if lost < self.lost.end {
            self.lost.start = lost + 1;
            return Some(lost);
        }
        self.lost.start = self.lost.end;
        (self.next < self.packets).then(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn acknowledge(&mut self, number: u32, config: &Config) {
        if !self.acknowledged.insert(number) {
            return;
        }
        self.remaining -= u64::from(payload_of(number, self.bytes, config.payload));
        if !self.lost.contains(&number) {
            self.outstanding -= 1;
        }
        let is_slow_start = self.window < self.slow_start_threshold;
        let growth = if is_slow_start { 1.0 } else { 1.0 / self.window };
        self.window = (self.window + growth).min(config.max_window.into());
    }

    fn on_timeout(&mut self) {
        self.timeouts += 1;
        self.slow_start_threshold = (self.window / 2.0).max(2.0);
        self.window = 1.0;
        self.lost = self.acknowledged.first_missing()..self.next;
        self.outstanding = 0;
    }
}

impl Transport for PFabric {
    fn attach(&mut self, number: u8, _network: &mut Network) {
        self.number = number;
    }

    fn begin(&mut self, network: &mut Network, flow: u32) {
        let (spec, packets) = open(network, flow, self.config.payload);
        let paths = network.fabric().paths(spec.source, spec.destination);
        let path = network.draw_path(spec.source, spec.destination);
        let deadline = network.now() + self.config.rto;
        let state = FlowEnds {
            paths,
            path,
            bytes: spec.bytes,
            packets,
            acknowledged: Received::empty(packets),
            remaining: spec.bytes,
            next: 0,
            lost: 0..0,
            outstanding: 0,
            window: self.config.window.into(),
            slow_start_threshold: f64::MAX,
            timeouts: 0,
            deadline,
            received: Received::empty(packets),
        };
        store(&mut self.flows, flow, Box::new(state));
        self.send(network, flow);
        network.set_timer(self.number, deadline, flow, 0);
    }

    fn receive(&mut self, network: &mut Network, packet: Handle) {
        let packet = *network.packet(packet);
        match packet.kind {
            Kind::Ack => self.receive_ack(network, packet),
            _ => self.receive_data(network, packet),
        }
    }

    fn expire(&mut self, network: &mut Network, flow: u32, _token: u32) {
        let Some(state) = self.flows[flow as usize].as_mut() else {
            return;
        };
        let now = network.now();
        if state.deadline <= now {
            state.on_timeout();
            state.deadline = now + self.config.rto;
            if state.timeouts < self.config.timeouts {
                self.send(network, flow);
            } else {
                self.probe(network, flow);
            }
        }
        if let Some(state) = &self.flows[flow as usize] {
            network.set_timer(self.number, state.deadline, flow, 0);
        }
    }
}
