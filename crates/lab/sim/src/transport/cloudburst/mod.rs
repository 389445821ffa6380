//! Cloudburst itself: each host drives a [`cloudburst_core::proto::Transceiver`], unchanged, with sealed
//! packets of real bytes.
//!
//! | file | role |
//! |---|---|
//! | `paths` | the path map: explicit paths, or source ports hashed by ECMP |
//! | `host` | one host: its endpoint, port and timers |
//! | `recording` | inputs and outputs of one endpoint, for replay by another driver |
//! | `codec` | encoding and decoding times, which the simulation does not model |
//!
//! The driver follows the contract of [`cloudburst_core::proto`] in the same way as
//! [`cloudburst_core::burst::Engine`]: after each input it polls events and then datagrams. If there is something to
//! read, answers wait until the application has read it, which it does at once. Datagrams polled together queue in
//! the host's port and leave back to back.
//!
//! # Time
//!
//! The clock of an endpoint counts nanoseconds, rounded down, and its timers expire at whole nanoseconds. So nothing
//! happens early, and reactions to an arrival happen at the exact picosecond of the arrival. Processing takes no
//! time: see [`codec_time`].

mod codec;
mod host;
mod paths;
mod recipe;
mod recording;

pub use codec::codec_time;
pub use paths::Paths;
pub use recording::{Recording, Step};

use super::Transport;
use crate::engine::{Ecn, Handle, Kind, Packet, Time};
use crate::fabric::Shape;
use crate::flow::NewFlow;
use crate::network::Network;
use crate::wire;
use bytes::Bytes;
use cloudburst_core::code::{Code, Degree};
use cloudburst_core::config::{BurstPolicy, Config, ConfigError, Tuning};
use cloudburst_core::error::{Outcome, StartError};
use cloudburst_core::path::{OrderError, Via};
use cloudburst_core::proto::{self, Contents, Event, Transmit};
use cloudburst_core::wire::symbol::SymbolView;
use host::{Host, LinkBacklog};
use paths::{HostPaths, MAX_PATHS, PORT};
use recipe::Recipe;

/// Bytes that Ethernet adds to an IP packet on the wire: preamble, header, frame check sequence and inter-frame gap.
pub const ETHERNET_FRAMING: u16 = 8 + 14 + 4 + 12;

/// The tokens of timers: those of endpoints, and the one that opens sessions.
const ENDPOINT: u32 = 0;
const SESSIONS: u32 = 1;

/// The settings of all hosts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The configuration of every endpoint.
    pub config: Config,
    /// How packets are mapped to paths.
    pub paths: Paths,
    /// Which sessions are opened at the beginning.
    pub sessions: Sessions,
    /// The class of control packets and of the most urgent symbols. Further classes of
    /// `Fabric::classes` follow.
    pub class: u8,
    /// Whether control packets (handshakes, answers and probes) have that class to themselves, so
    /// that all symbols are in the classes that follow.
    pub control_apart: bool,
    /// Bytes that may wait in the port of a host before its endpoint is blocked, as by a socket buffer. `None`:
    /// unlimited.
    ///
    /// After an idle period the pacer releases 500 us worth of its rate at once. Without this limit, the port then
    /// holds most of the packets that a STOP would have prevented.
    pub send_buffer: Option<u32>,
    /// Bytes of framing per IP packet on the wire, such as [`ETHERNET_FRAMING`]. With 0, link rates count IP bytes
    /// only.
    pub framing: u16,
}

/// Which sessions are opened at time 0, through the network. A message to any other peer begins with a
/// handshake, which takes two round trips.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// None: sessions are opened by the first message.
    OnDemand,
    /// From every host to every other. Messages should start some milliseconds later, or more if handshakes are
    /// lost. A session takes about 12 KB of memory at either end.
    All,
    /// Between these hosts: source and destination.
    Between(Vec<(u16, u16)>),
}

impl Settings {
    /// Explicit paths and all sessions.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            paths: Paths::Explicit,
            sessions: Sessions::All,
            class: 0,
            control_apart: false,
            send_buffer: None,
            framing: 0,
        }
    }

    /// The paper's Cloudburst on links of `link` bits per second: LT with d = 5, symbols at the rate until STOP,
    /// and packet trains of one packet (III-B, Algorithm 1).
    pub fn paper(link: u64) -> Self {
        Self::new(Config {
            capacity: link.into(),
            code: Code::Lt(Degree::Fixed(5)),
            policy: BurstPolicy::UntilStop,
            tuning: Tuning { train: 1, ..Tuning::default() },
            ..Config::default()
        })
    }

    /// Cloudburst with this project's defaults, on links of `link` bits per second.
    pub fn ours(link: u64) -> Self {
        Self::new(Config { capacity: link.into(), ..Config::default() })
    }
}

/// Invalid settings: an error of the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The configuration of endpoints is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The order of paths does not fit the fabric.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// There are more paths than packets can name.
    #[error("paths of a host: got {paths}, expected {MAX_PATHS} or fewer")]
    Paths {
        /// The number of paths.
        paths: u16,
    },
}

/// Cloudburst on all hosts.
#[derive(Debug)]
pub struct Cloudburst {
    settings: Settings,
    shape: Shape,
    number: u8,
    hosts: Vec<Host>,
    /// The hosts whose endpoints are recorded.
    recordings: Vec<(u16, Recording)>,
    /// The content of which every message is a prefix.
    content: Bytes,
    /// Buffers for a batch of datagrams, and for one datagram with headers.
    buffer: Vec<u8>,
    datagram: Vec<u8>,
}

impl Cloudburst {
    /// Creates the transport for a fabric of this shape.
    ///
    /// # Errors
    ///
    /// The first setting that is out of range or does not fit the fabric.
    pub fn new(settings: Settings, shape: &Shape) -> Result<Self, SettingsError> {
        settings.config.check()?;
        let paths = settings.paths.egresses(shape);
        if paths > MAX_PATHS {
            return Err(SettingsError::Paths { paths });
        }
        settings.config.order.check_paths(paths.into())?;
        Ok(Self {
            settings,
            shape: *shape,
            number: 0,
            hosts: Vec::new(),
            recordings: Vec::new(),
            content: Bytes::new(),
            buffer: Vec::new(),
            datagram: Vec::new(),
        })
    }

    /// Records the endpoint of a host. Must be called before the simulation starts.
    pub fn record(&mut self, host: u16) -> Recording {
        let recording = Recording::default();
        self.recordings.push((host, recording.clone()));
        recording
    }

    /// Message content of this length. All messages share their bytes.
    fn content(&mut self, length: usize) -> Bytes {
        if self.content.len() < length {
            let bytes = |k| (k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0];
            self.content = (0..length.next_power_of_two()).map(bytes).collect();
        }
        self.content.slice(..length)
    }

    /// Hands the message of a flow to the endpoint of its source.
    fn send(&mut self, now: Time, flow: u32, spec: &NewFlow) -> Result<(), StartError> {
        let len = spec.bytes as usize;
        let max = self.settings.config.max_message;
        if len > max {
            // Refuse it before its content is allocated.
            return Err(StartError::TooLarge { len, max });
        }
        let bytes = self.content(len);
        let host = &mut self.hosts[usize::from(spec.source)];
        host.send(now, wire::socket(spec.destination, PORT), bytes, flow)
    }

    /// Polls all outputs of a host after an input.
    fn serve(&mut self, network: &mut Network, host: u16) {
        while self.take_events(network, host) {
            self.transmit(network, host, true);
            self.take_messages(network, host);
        }
        self.transmit(network, host, false);
        if let Some(at) = self.hosts[usize::from(host)].arm(network.now()) {
            network.set_timer(self.number, at, host.into(), ENDPOINT);
        }
    }

    /// Polls the events of a host. Returns whether messages are ready to be read.
    fn take_events(&mut self, network: &mut Network, host: u16) -> bool {
        let mut readable = false;
        let host = &mut self.hosts[usize::from(host)];
        while let Some(event) = host.poll_event() {
            match event {
                Event::Readable(_) => readable = true,
                Event::Ended(id, Outcome::Delivered(receipt)) => {
                    let flow = host.flows[id.0 as usize];
                    let record = network.flow_mut(flow);
                    record.sent = receipt.packets as u32;
                    record.needed = receipt.source_symbols as u32;
                    network.acknowledge(flow);
                }
                // An undelivered flow stays undelivered. A failed session is opened again by the next message.
                _ => {}
            }
        }
        readable
    }

    /// Reads the delivered messages of a host, as its application does.
    fn take_messages(&mut self, network: &mut Network, host: u16) {
        while let Some(message) = self.hosts[usize::from(host)].recv(network.now()) {
            let sender = wire::host(message.peer.ip()).map_or(usize::MAX, usize::from);
            let flow =
                self.hosts.get(sender).and_then(|peer| peer.flows.get(message.id.0 as usize));
            if let Some(&flow) = flow
                && message.bytes == self.content.slice(..message.bytes.len())
                && message.bytes.len() as u64 == network.flows()[flow].spec.bytes
            {
                network.deliver(flow);
            }
        }
    }

    /// Polls the datagrams of a host, and sends them. With `symbols`, answers leave only together with symbols.
    fn transmit(&mut self, network: &mut Network, host: u16, symbols: bool) {
        let mut buffer = core::mem::take(&mut self.buffer);
        let now = network.now();
        loop {
            buffer.clear();
            let endpoint = &mut self.hosts[usize::from(host)];
            if endpoint.is_blocked(now) {
                break;
            }
            let Some(transmit) = endpoint.poll_transmit(now, symbols, &mut buffer) else {
                break;
            };
            for packet in buffer.chunks(transmit.segment_size) {
                self.put_on_wire(network, host, &transmit, packet);
            }
        }
        self.buffer = buffer;
    }

    fn put_on_wire(
        &mut self,
        network: &mut Network,
        source: u16,
        transmit: &Transmit,
        payload: &[u8],
    ) {
        let Via { egress, remote, .. } = transmit.via;
        let Some(destination) = wire::host(remote.ip()).filter(|&to| to != source) else {
            return;
        };
        let host = &mut self.hosts[usize::from(source)];
        // Only the session knows whether there is a header tag. `parse` takes the tag for a part of the index set,
        // unless that makes the index set too long.
        let symbol = SymbolView::parse(payload).or_else(|_| SymbolView::parse_tagged(payload));
        let flow = match symbol {
            Ok(symbol) => host.flows.get(symbol.header.message.0 as usize).copied(),
            Err(_) => None,
        };
        let ecn = match transmit.marking.ecn {
            proto::Ecn::NotEct => Ecn::NotCapable,
            proto::Ecn::Ect0 => Ecn::Capable,
        };
        let class = match self.settings.control_apart {
            true => transmit.marking.class.0,
            false => transmit.marking.class.0.saturating_sub(proto::Class::DATA.0),
        };
        let from = (source, host.paths.port(egress));
        let to = (destination, remote.port());
        self.datagram.clear();
        wire::write(from, to, ecn, payload, &mut self.datagram);
        let packet = Packet {
            flow: flow.unwrap_or(Packet::NO_FLOW),
            source,
            destination,
            path: host.paths.path(egress, destination, remote.port()),
            size: self.datagram.len() as u16 + self.settings.framing,
            transport: self.number,
            class: self.settings.class + class,
            kind: if transmit.contents == Contents::Answers { Kind::Ack } else { Kind::Data },
            ecn,
            droppable: ecn == Ecn::NotCapable,
            sequence: host.packets,
            sent: network.now(),
            ..Packet::default()
        };
        host.packets = host.packets.wrapping_add(1);
        host.on_sent(network.now(), packet.size);
        network.send_bytes(packet, &self.datagram);
    }

    fn open_sessions(&mut self, network: &mut Network) {
        let hosts = self.shape.hosts() as u16;
        let pairs = match core::mem::replace(&mut self.settings.sessions, Sessions::OnDemand) {
            Sessions::OnDemand => return,
            Sessions::Between(pairs) => pairs,
            // Each host begins with its successor, to avoid an incast of handshakes.
            Sessions::All => (1..hosts)
                .flat_map(|step| (0..hosts).map(move |host| (host, (host + step) % hosts)))
                .collect(),
        };
        for (from, to) in pairs {
            let peer = wire::socket(to, PORT);
            if let Err(error) = self.hosts[usize::from(from)].connect(network.now(), peer) {
                network.refuse(from, to, &error);
            }
        }
        (0..hosts).for_each(|host| self.serve(network, host));
    }
}

impl Transport for Cloudburst {
    /// # Panics
    ///
    /// If the network has another shape than that given to [`new`](Self::new).
    fn attach(&mut self, number: u8, network: &mut Network) {
        assert_eq!(*network.fabric().shape(), self.shape, "the shape must be that given to `new`");
        self.number = number;
        let salt = network.rng().next_u64();
        for host in 0..self.shape.hosts() as u16 {
            let mut seed = [0; 32];
            for part in seed.chunks_exact_mut(8) {
                part.copy_from_slice(&network.rng().next_u64().to_be_bytes());
            }
            let paths = HostPaths::new(self.settings.paths, self.shape, host, salt);
            let recipe = Recipe { config: self.settings.config.clone(), seed, paths };
            let recording = self.recordings.iter().find(|(of, _)| *of == host);
            let recording = recording.map(|(_, recording)| recording.clone());
            let rate = network.fabric().ports()[usize::from(host)].rate();
            let port = LinkBacklog::new(rate, self.settings.send_buffer);
            self.hosts.push(Host::new(&recipe, port, recording).expect("`new` checked the config"));
        }
        // By a timer, because the tap is not yet set.
        network.set_timer(number, network.now(), 0, SESSIONS);
    }

    fn begin(&mut self, network: &mut Network, flow: u32) {
        let spec = network.flows()[flow].spec;
        match self.send(network.now(), flow, &spec) {
            Ok(()) => self.serve(network, spec.source),
            Err(error) => network.refuse(spec.source, spec.destination, &error),
        }
    }

    fn receive(&mut self, network: &mut Network, handle: Handle) {
        let now = network.now();
        let packet = *network.packet(handle);
        let ce = packet.ecn == Ecn::Marked;
        let Some((source, destination, payload)) = wire::split(network.bytes_mut(handle)) else {
            return;
        };
        let host = &mut self.hosts[usize::from(packet.destination)];
        let egress = host.paths.arrival(&packet, destination);
        let via = Via { egress, local: None, remote: wire::socket(packet.source, source) };
        // Switches that trim adjust the lengths in the headers.
        let headers = wire::HEADERS + usize::from(self.settings.framing);
        let left = usize::from(packet.size).saturating_sub(headers).min(payload.len());
        host.handle_datagram(now, via, ce, &mut payload[..left]);
        self.serve(network, packet.destination);
    }

    fn expire(&mut self, network: &mut Network, host: u32, token: u32) {
        if token == SESSIONS {
            return self.open_sessions(network);
        }
        let number = host as u16;
        if self.hosts[usize::from(number)].handle_timer(network.now()) {
            self.serve(network, number);
        } else if let Some(at) = self.hosts[usize::from(number)].arm(network.now()) {
            network.set_timer(self.number, at, host, ENDPOINT);
        }
    }
}
