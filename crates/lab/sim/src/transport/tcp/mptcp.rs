//! MPTCP: one message over several subflows, with coupled congestion windows (LIA, RFC 6356).
//!
//! A packet of the message is given to a subflow whose window permits it, and stays there: there is no
//! reinjection. All subflows start at once, and take the first packets in turn. They share one window,
//! [`Config::window`], from the first unacknowledged packet of the message on, so a subflow that waits for a timeout
//! stops the others once that window is full. In simulations of MPTCP, each subflow often has its own window:
//! [`Mptcp::with_windows_apart`].

use super::subflow::{self, Stack, Subflow, timer};
use super::{Config, wire};
use crate::engine::{Handle, Kind};
use crate::network::Network;
use crate::transport::{Transport, store};
use std::collections::VecDeque;

/// MPTCP on all hosts.
#[derive(Debug)]
pub struct Mptcp {
    stack: Stack,
    subflows: u8,
    /// The number of the message's packets that may be outstanding.
    window: u32,
    /// By flow; `None` once the message is acknowledged.
    flows: Vec<Option<Box<Connection>>>,
}

/// The subflows of a message.
#[derive(Debug)]
struct Connection {
    subflows: Box<[Subflow]>,
    /// The packets of the message that each subflow has outstanding, in the order of its own packets.
    parts: Box<[VecDeque<u32>]>,
    /// The first packet of the message that has not been acknowledged.
    first: u32,
    /// Whether that packet and those after it have been acknowledged.
    acknowledged: VecDeque<bool>,
    /// The first packet of the message that has not been given to a subflow.
    next: u32,
    /// Whether the shared window has stopped a subflow.
    is_blocked: bool,
    /// LIA's alpha over the sum of all windows.
    increase: f64,
}

impl Mptcp {
    /// MPTCP on all hosts, with this many subflows per message, on different paths as far as there are enough.
    /// [`Config::copies`] and [`Config::throttle`] are ignored.
    pub fn new(config: Config, subflows: u8) -> Self {
        let window = config.window_packets();
        let stack = Stack::new(config);
        let subflows = subflows.max(1);
        Self { stack, subflows, window, flows: Vec::new() }
    }

    /// Gives each subflow its own window of [`Config::window`], and the message none.
    #[must_use]
    pub fn with_windows_apart(self) -> Self {
        Self { window: u32::MAX, ..self }
    }

    /// Sends a packet of a subflow if the windows allow it. Returns whether it did.
    fn send_one(&mut self, network: &mut Network, flow: u32, index: u8) -> bool {
        let Some(connection) = &mut self.flows[flow as usize] else {
            return false;
        };
        let subflow = &mut connection.subflows[usize::from(index)];
        let parts = &mut connection.parts[usize::from(index)];
        let has_room = connection.next - connection.first < self.window;
        let has_more = connection.next < network.flows()[flow].needed;
        connection.is_blocked |= has_more && !has_room;
        let end = subflow.sender.next() + u32::from(has_more && has_room);
        let Some(packet) = subflow.sender.poll(end) else {
            return false;
        };
        let place = (packet - subflow.sender.first()) as usize;
        if place == parts.len() {
            parts.push_back(connection.next);
            connection.next += 1;
        }
        self.stack.send(network, (flow, index), subflow, packet, parts[place]);
        self.stack.watch(network, flow, index, subflow);
        true
    }

    fn on_ack(&mut self, network: &mut Network, flow: u32, index: u8, ack: &wire::Ack) {
        let Some(connection) = &mut self.flows[flow as usize] else {
            return;
        };
        connection.on_ack(network, index, ack);
        if connection.first == network.flows()[flow].needed {
            network.acknowledge(flow);
            self.flows[flow as usize] = None;
            return;
        }
        let was_blocked = core::mem::take(&mut connection.is_blocked);
        while self.send_one(network, flow, index) {}
        if was_blocked {
            for index in 0..self.subflows {
                while self.send_one(network, flow, index) {}
            }
        }
    }

    /// Counts the bytes that a subflow has received since it had `before` bytes.
    fn count(&self, network: &mut Network, flow: u32, index: u8, before: u64) {
        let Some(connection) = &self.flows[flow as usize] else {
            return;
        };
        let record = network.flow_mut(flow);
        record.received += connection.subflows[usize::from(index)].received - before;
        if record.received == record.spec.bytes {
            network.deliver(flow);
        }
    }
}

impl Connection {
    fn on_ack(&mut self, network: &Network, index: u8, ack: &wire::Ack) {
        let sender = &mut self.subflows[usize::from(index)].sender;
        let before = sender.first();
        let window = sender.congestion.window();
        sender.on_ack(network.now(), ack, Some(self.increase.min(1.0 / window)));
        let first = sender.first();
        let changed = sender.congestion.window();
        for part in self.parts[usize::from(index)].drain(..(first - before) as usize) {
            let place = (part - self.first) as usize;
            if place >= self.acknowledged.len() {
                self.acknowledged.resize(place + 1, false);
            }
            self.acknowledged[place] = true;
        }
        while self.acknowledged.front() == Some(&true) {
            self.acknowledged.pop_front();
            self.first += 1;
        }
        // RFC 6356, 4.1: it is enough to do this when a window has changed by a packet.
        if window as u32 != changed as u32 {
            self.couple();
        }
    }

    /// Computes alpha / sum(w) = max(w / rtt^2) / sum(w / rtt)^2 (RFC 6356, section 3).
    fn couple(&mut self) {
        let mut fastest = 0.0_f64;
        let mut rate = 0.0;
        for Subflow { sender, .. } in &self.subflows {
            if let Some(round_trip) = sender.rto.smoothed() {
                let pace = sender.congestion.window() / round_trip as f64;
                fastest = fastest.max(pace / round_trip as f64);
                rate += pace;
            }
        }
        self.increase = fastest / (rate * rate);
    }
}

impl Transport for Mptcp {
    fn attach(&mut self, number: u8, _network: &mut Network) {
        self.stack.number = number;
    }

    fn begin(&mut self, network: &mut Network, flow: u32) {
        let subflows = self.stack.open(network, flow, self.subflows);
        let connection = Connection {
            parts: subflows.iter().map(|_| VecDeque::new()).collect(),
            subflows,
            first: 0,
            acknowledged: VecDeque::new(),
            next: 0,
            is_blocked: false,
            increase: 1.0,
        };
        store(&mut self.flows, flow, Box::new(connection));
        let mut has_sent = true;
        while has_sent {
            has_sent = false;
            for index in 0..self.subflows {
                has_sent |= self.send_one(network, flow, index);
            }
        }
    }

    fn receive(&mut self, network: &mut Network, packet: Handle) {
        let packet = *network.packet(packet);
        let flow = packet.flow;
        let index = wire::subflow(&packet);
        if packet.kind != Kind::Data {
            subflow::record_round_trip(network, packet.sent);
            self.on_ack(network, flow, index, &wire::Ack::of(&packet));
            return;
        }
        let Some(connection) = &mut self.flows[flow as usize] else {
            return;
        };
        let subflow = &mut connection.subflows[usize::from(index)];
        let before = subflow.received;
        self.stack.take(network, subflow, &packet);
        self.count(network, flow, index, before);
    }

    fn expire(&mut self, network: &mut Network, flow: u32, token: u32) {
        let [kind, index, ..] = token.to_be_bytes();
        let Some(connection) = &mut self.flows[flow as usize] else {
            return;
        };
        let subflow = &mut connection.subflows[usize::from(index)];
        if kind == timer::GAP {
            let before = subflow.received;
            self.stack.on_gap(network, (flow, index), subflow);
            self.count(network, flow, index, before);
        } else if subflow.sender.rto.on_timer(network.now(), token as u16) {
            subflow.sender.on_timeout();
            connection.couple();
            while self.send_one(network, flow, index) {}
        } else {
            self.stack.watch(network, flow, index, subflow);
        }
    }
}
