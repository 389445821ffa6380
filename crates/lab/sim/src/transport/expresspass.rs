//! ExpressPass: each data packet is sent in response to a credit of the receiver (SIGCOMM 2017, section 3).
//!
//! ```text
//!   sender                                      receiver
//!     │ request ──────────────────────────────────▶ │
//!     │ ◀────────────────────────── credit, paced   │  feedback each round trip
//!     │ data, with the number of its credit ──────▶ │
//!     │ data, STOP ───────────────────────────────▶ │  as soon as nothing is left
//!     │ ◀────────────────────────── acknowledgement │
//! ```
//!
//! Switches limit credits to the rate whose data fill the reverse direction ([`queue::CreditQueue`]), so data queues
//! stay short, and congestion drops credits instead. A data packet echoes the number of its credit. The receiver
//! detects gaps in these numbers, and adapts its credit rate to a credit loss of 10 % (Algorithm 1). Data packets take
//! the path of their credits in reverse: symmetric hashing is modelled by the same path number in both directions.
//!
//! The paper does not specify loss recovery. Here only the sender has a timer: it repeats its request until the first
//! credit, and its STOP until the acknowledgement. A receiver that gets STOP while packets are missing sends a credit
//! for each of them, by number. STOP is also repeated if credits arrive more than a round trip after it.
//!
//! All credits have the same size; the paper varies it by up to 8 bytes in addition to the jitter. STOP is sent with
//! the last data packet; the authors' code may send it a round trip earlier.
//!
//! [`queue::CreditQueue`]: crate::queue::CreditQueue

use super::received::Received;
use super::{Transport, open, payload_of, store};
use crate::engine::{Handle, Kind, NS, Packet, Time};
use crate::measure::Measures;
use crate::network::Network;
use cloudburst_workload::draw::fraction;

/// In a credit: for any packet, rather than for a certain one.
const ANY: u32 = u32::MAX;
/// The control packets of a sender, by their `sequence`.
const REQUEST: u32 = 0;
const STOP: u32 = 1;
/// The tokens of timers: the end of the flow that they belong to.
const SENDER: u32 = 0;
const RECEIVER: u32 = 1;

/// The parameters of ExpressPass. Rates are shares of the maximum credit rate.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of a full data packet on the wire.
    pub packet: u16,
    /// Bytes of the message in a full data packet.
    pub payload: u16,
    /// Bytes on the wire of a credit and of every other packet without data.
    pub control: u16,
    /// The time between credits at the maximum rate.
    pub credit_interval: Time,
    /// The initial rate of a flow: alpha. A higher rate wastes credits if flows are short or many, a lower one makes
    /// new flows slow.
    pub initial_rate: f64,
    /// The initial weight of increases towards the maximum rate: w_init.
    pub initial_step: f64,
    /// The minimum weight: w_min.
    pub min_step: f64,
    /// The maximum weight: w_max.
    pub max_step: f64,
    /// The target credit loss rate, which keeps the link full.
    pub target_loss: f64,
    /// The largest random deviation of the time between two credits, as a share of it. With little jitter, flows
    /// synchronise: the one in phase with a full credit queue takes the free places, and others need milliseconds
    /// to get their share.
    pub jitter: f64,
    /// The timeout after which the sender repeats a request or STOP.
    pub rto: Time,
}

impl Default for Config {
    /// At 10 Gb/s: credits of 84 bytes, one every 84 + 1,538 bytes (518 Mb/s; section V-D of the Cloudburst
    /// paper has 500 Mb/s), alpha and w_init of 1/16, and the timeout of the authors' simulations.
    fn default() -> Self {
        Self {
            packet: 1_538,
            payload: 1_460,
            control: 84,
            credit_interval: 1_297_600,
            initial_rate: 0.0625,
            initial_step: 0.0625,
            min_step: 0.01,
            max_step: 0.5,
            target_loss: 0.1,
            jitter: 0.5,
            rto: 100_000 * NS,
        }
    }
}

/// ExpressPass on all hosts.
#[derive(Debug)]
pub struct ExpressPass {
    config: Config,
    number: u8,
    /// By flow; `None` once the sender has the acknowledgement.
    flows: Vec<Option<Box<FlowEnds>>>,
}

/// Both ends of a flow.
#[derive(Debug)]
struct FlowEnds {
    path: u16,
    bytes: u64,
    packets: u32,
    sender: Sender,
    receiver: Receiver,
}

#[derive(Debug)]
struct Sender {
    phase: Phase,
    /// The first packet that has never been sent.
    next: u32,
    /// When it sent its last request or STOP.
    signalled_at: Time,
    /// From its request to the first credit.
    round_trip: Time,
    is_timed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for the first credit.
    Requesting,
    /// Sends data in response to credits.
    Sending,
    /// Has sent all data and STOP.
    Stopped,
}

#[derive(Debug)]
struct Receiver {
    received: Received,
    crediting: Crediting,
    /// Whether the sender has sent all its data.
    is_stopped: bool,
    is_timed: bool,
    /// The number of the next credit.
    credits: u32,
    /// The number of the credit that the next data packet should echo.
    expected: u32,
    feedback: Feedback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crediting {
    /// Sends no credits.
    No,
    /// Sends credits until STOP.
    Any,
    /// Sends a credit for each missing packet from this one on.
    Missing(u32),
}

/// Algorithm 1.
#[derive(Debug)]
struct Feedback {
    /// As a share of the maximum credit rate; it may exceed 1 by the target loss.
    rate: f64,
    /// The weight of the next increase: w.
    step: f64,
    has_increased: bool,
    /// From a credit to its data, smoothed; 0 before the first sample.
    round_trip: Time,
    updated: Time,
    /// Since the last update: credits echoed by data, and credits lost.
    echoed: u32,
    lost: u32,
}

impl ExpressPass {
    /// Creates the transport.
    pub const fn new(config: Config) -> Self {
        Self { config, number: 0, flows: Vec::new() }
    }

    /// A packet of a flow: data and probes from its sender, acknowledgements and credits to its sender.
    fn packet(&self, network: &Network, flow: u32, kind: Kind) -> Packet {
        let spec = network.flows()[flow].spec;
        let (source, destination) = match kind {
            Kind::Data | Kind::Probe => (spec.source, spec.destination),
            Kind::Ack | Kind::Credit => (spec.destination, spec.source),
        };
        let path = self.flows[flow as usize].as_ref().map_or(0, |state| state.path);
        Packet {
            flow,
            source,
            destination,
            path,
            size: self.config.control,
            transport: self.number,
            kind,
            sent: network.now(),
            ..Packet::default()
        }
    }

    /// Sends a request or STOP, and arms the timer that repeats it.
    fn signal(&mut self, network: &mut Network, flow: u32, signal: u32) {
        let packet = self.packet(network, flow, Kind::Probe);
        network.send(Packet { sequence: signal, ..packet });
        let Some(state) = self.flows[flow as usize].as_mut() else {
            return;
        };
        state.sender.signalled_at = network.now();
        if !state.sender.is_timed {
            state.sender.is_timed = true;
            network.set_timer(self.number, network.now() + self.config.rto, flow, SENDER);
        }
    }

    /// Handles a credit at the sender.
    fn receive_credit(&mut self, network: &mut Network, credit: Packet) {
        let now = network.now();
        let Some(state) = self.flows[credit.flow as usize].as_mut() else {
            return;
        };
        let packets = state.packets;
        let sender = &mut state.sender;
        if sender.phase == Phase::Requesting {
            sender.phase = Phase::Sending;
            sender.round_trip = now - sender.signalled_at;
        }
        if credit.acknowledged != ANY {
            return self.send_data(network, credit, credit.acknowledged);
        }
        match sender.phase {
            Phase::Stopped => {
                // Credits that arrive more than a round trip after STOP mean that STOP was lost.
                if now - sender.signalled_at > sender.round_trip {
                    self.signal(network, credit.flow, STOP);
                }
            }
            _ => {
                let number = sender.next;
                sender.next += 1;
                let is_last = sender.next == packets;
                if is_last {
                    sender.phase = Phase::Stopped;
                }
                self.send_data(network, credit, number);
                if is_last {
                    self.signal(network, credit.flow, STOP);
                }
            }
        }
    }

    fn send_data(&self, network: &mut Network, credit: Packet, number: u32) {
        let Some(state) = self.flows[credit.flow as usize].as_ref() else {
            return;
        };
        let headers = self.config.packet - self.config.payload;
        let payload = payload_of(number, state.bytes, self.config.payload);
        let size = (headers + payload).max(self.config.control);
        let packet = self.packet(network, credit.flow, Kind::Data);
        network.flow_mut(credit.flow).sent += 1;
        let acknowledged = credit.sequence;
        let sent = credit.sent;
        network.send(Packet { size, sequence: number, acknowledged, sent, ..packet });
    }

    /// Handles a request or STOP at the receiver.
    fn receive_signal(&mut self, network: &mut Network, packet: Packet) {
        let Some(state) = self.flows[packet.flow as usize].as_mut() else {
            return;
        };
        let receiver = &mut state.receiver;
        if packet.sequence == STOP {
            receiver.is_stopped = true;
            if receiver.received.is_complete() {
                return self.finish(network, packet.flow);
            }
            if !matches!(receiver.crediting, Crediting::Missing(_)) {
                receiver.crediting = Crediting::Missing(0);
                // Unused credits are not echoed, and must not count as lost.
                receiver.expected = receiver.credits;
            }
        } else if receiver.crediting == Crediting::No && !receiver.is_stopped {
            receiver.crediting = Crediting::Any;
            receiver.feedback.updated = network.now();
        }
        if !receiver.is_timed {
            self.send_credit(network, packet.flow);
        }
    }

    /// Handles data at the receiver.
    fn receive_data(&mut self, network: &mut Network, packet: Packet) {
        let now = network.now();
        let Some(state) = self.flows[packet.flow as usize].as_mut() else {
            return;
        };
        // A trimmed packet has lost its payload.
        if packet.trimmed {
            return;
        }
        Measures::record(&mut network.measures.queueing, packet.waited_ns.into());
        Measures::record(&mut network.measures.round_trips, (now - packet.sent) / NS);
        let bytes = payload_of(packet.sequence, state.bytes, self.config.payload);
        let receiver = &mut state.receiver;
        if let Some(lost) = packet.acknowledged.checked_sub(receiver.expected) {
            receiver.expected = packet.acknowledged + 1;
            receiver.feedback.on_echo(lost, now - packet.sent);
        }
        if !receiver.received.insert(packet.sequence) {
            return;
        }
        network.flow_mut(packet.flow).received += u64::from(bytes);
        if receiver.received.is_complete() {
            network.deliver(packet.flow);
            if receiver.is_stopped {
                self.finish(network, packet.flow);
            }
        }
    }

    /// Acknowledges the whole message.
    fn finish(&mut self, network: &mut Network, flow: u32) {
        if let Some(state) = self.flows[flow as usize].as_mut() {
            state.receiver.crediting = Crediting::No;
        }
        network.send(self.packet(network, flow, Kind::Ack));
    }

    /// Sends a credit, and arms the timer of the next one.
    fn send_credit(&mut self, network: &mut Network, flow: u32) {
        let now = network.now();
        let Some(state) = self.flows[flow as usize].as_mut() else {
            return;
        };
        let receiver = &mut state.receiver;
        let wanted = match receiver.crediting {
            Crediting::No => return,
            Crediting::Any => ANY,
            Crediting::Missing(from) => {
                let number = receiver.received.missing_from(from);
                if number == state.packets {
                    // Further losses are recovered when the sender repeats its STOP.
                    receiver.crediting = Crediting::No;
                    return;
                }
                receiver.crediting = Crediting::Missing(number + 1);
                number
            }
        };
        receiver.feedback.update(now, &self.config);
        receiver.is_timed = true;
        let sequence = receiver.credits;
        receiver.credits += 1;
        let interval = self.config.credit_interval as f64 / receiver.feedback.rate;
        let jitter = self.config.jitter * (2.0 * fraction(network.rng()) - 1.0);
        let interval = interval * (1.0 + jitter);
        network.set_timer(self.number, now + interval as Time, flow, RECEIVER);
        let packet = self.packet(network, flow, Kind::Credit);
        network.send(Packet { sequence, acknowledged: wanted, ..packet });
    }
}

impl Feedback {
    /// Handles data that echo a credit; `lost` credits before it were not echoed.
    const fn on_echo(&mut self, lost: u32, round_trip: Time) {
        self.echoed += 1;
        self.lost += lost;
        self.round_trip = match self.round_trip {
            0 => round_trip,
            smoothed => (7 * smoothed + round_trip) / 8,
        };
    }

    /// Adapts the rate once per round trip.
    fn update(&mut self, now: Time, config: &Config) {
        if self.echoed == 0 || now - self.updated < self.round_trip {
            return;
        }
        let loss = f64::from(self.lost) / f64::from(self.lost + self.echoed);
        let most = 1.0 + config.target_loss;
        if loss <= config.target_loss {
            if self.has_increased {
                self.step = (self.step + config.max_step) / 2.0;
            }
            self.rate = (1.0 - self.step) * self.rate + self.step * most;
            self.has_increased = true;
        } else {
            self.rate = self.rate * (1.0 - loss) * most;
            self.step = (self.step / 2.0).max(config.min_step);
            self.has_increased = false;
        }
        // At least one credit per round trip, so that there is feedback.
        self.rate = self.rate.max(config.credit_interval as f64 / self.round_trip as f64).min(most);
        self.updated = now;
        self.echoed = 0;
        self.lost = 0;
    }
}

impl Transport for ExpressPass {
    fn attach(&mut self, number: u8, _network: &mut Network) {
        self.number = number;
    }

    fn begin(&mut self, network: &mut Network, flow: u32) {
        let (spec, packets) = open(network, flow, self.config.payload);
        let path = network.draw_path(spec.source, spec.destination);
        let now = network.now();
        let state = FlowEnds {
            path,
            bytes: spec.bytes,
            packets,
            sender: Sender {
                phase: Phase::Requesting,
                next: 0,
                signalled_at: now,
                round_trip: 0,
                is_timed: false,
            },
            receiver: Receiver {
                received: Received::empty(packets),
                crediting: Crediting::No,
                is_stopped: false,
                is_timed: false,
                credits: 0,
                expected: 0,
                feedback: Feedback {
                    rate: self.config.initial_rate,
                    step: self.config.initial_step,
                    has_increased: false,
                    round_trip: 0,
                    updated: now,
                    echoed: 0,
                    lost: 0,
                },
            },
        };
        store(&mut self.flows, flow, Box::new(state));
        self.signal(network, flow, REQUEST);
    }

    fn receive(&mut self, network: &mut Network, packet: Handle) {
        let packet = *network.packet(packet);
        match packet.kind {
            Kind::Data => self.receive_data(network, packet),
            Kind::Credit => self.receive_credit(network, packet),
            Kind::Probe => self.receive_signal(network, packet),
            Kind::Ack => {
                network.acknowledge(packet.flow);
                self.flows[packet.flow as usize] = None;
            }
        }
    }

    fn expire(&mut self, network: &mut Network, flow: u32, token: u32) {
        let Some(state) = self.flows[flow as usize].as_mut() else {
            return;
        };
        if token == RECEIVER {
            state.receiver.is_timed = false;
            return self.send_credit(network, flow);
        }
        let sender = &mut state.sender;
        sender.is_timed = false;
        let signal = match sender.phase {
            Phase::Requesting => REQUEST,
            Phase::Stopped => STOP,
            Phase::Sending => return,
        };
        let due = sender.signalled_at + self.config.rto;
        if due <= network.now() {
            self.signal(network, flow, signal);
        } else {
            sender.is_timed = true;
            network.set_timer(self.number, due, flow, SENDER);
        }
    }
}
