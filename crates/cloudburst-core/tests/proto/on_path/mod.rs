//! Three hosts that hold the key, and an attacker on the path between them that does not.

mod addresses;
mod attacker;

use crate::common::{KEY, message};
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::{Indeterminate, Outcome, StartError};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::SendOptions;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::{Kind, Prefix};
use cloudburst_netem::LinkConfig;
use cloudburst_world::drive::{self, Watch};
use cloudburst_world::{Departure, Hop, Host, Network, Recipe};
use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

const DEADLINE: Duration = Duration::from_secs(5);
/// The victim's address, where no host has asked for packets.
const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 7000))
}

/// Decides where a packet goes, and where it seems to come from.
type Divert = fn(Hop, &[u8]) -> Hop;

const HONEST: Divert = |hop, _| hop;

/// Packets of host A to B reach C, whose packets to A seem to come from B.
const C_INSTEAD_OF_B: Divert = |hop, _| match (hop.from, hop.to) {
    (A, B) => Hop { to: C, ..hop },
    (C, A) => Hop { source: SocketAddr::new(address(B).ip(), hop.source.port()), ..hop },
    _ => hop,
};

/// Packets of host A to B are reflected to A, as if from B.
const MIRROR: Divert = |hop, _| match (hop.from, hop.to) {
    (A, B) => Hop {
        to: A,
        source: SocketAddr::new(address(B).ip(), 7000 + hop.egress),
        egress: hop.source.port() - 7000,
        ..hop
    },
    _ => hop,
};

/// Answers to A get lost.
const NO_ANSWERS_TO_A: Divert = |hop, packet| match (hop.to, Kind::of(packet)) {
    (A, Ok(Kind::Answer)) => Hop { to: C, ..hop },
    _ => hop,
};

/// C is asked about A's session with B, and the symbols of that session get lost.
const QUESTIONS_TO_C: Divert = |hop, packet| match (hop.from, hop.to, Kind::of(packet)) {
    (A, B, Ok(Kind::Hello | Kind::Symbol)) => Hop { to: C, ..hop },
    _ => hop,
};

/// Makes a packet of A seem to come from the victim if `is_so`.
fn spoofed_if(is_so: bool, hop: Hop) -> Hop {
    let source = SocketAddr::new(VICTIM, hop.source.port());
    if is_so && hop.from == A { Hop { source, ..hop } } else { hop }
}

fn is_of(kind: Kind, packet: &[u8]) -> bool {
    Kind::of(packet) == Ok(kind)
}

fn is_symbol(packet: &[u8], numbered: fn(u64) -> bool) -> bool {
    let number = Prefix::parse(packet).map(|prefix| prefix.number);
    is_of(Kind::Symbol, packet) && number.is_ok_and(numbered)
}

/// The packets of A that seem to come from the victim, and the number of A's messages that arrive at B.
const SPOOFED: [(Divert, usize); 8] = [
    (|hop, packet| spoofed_if(is_of(Kind::Hello, packet) && packet[1] == 0, hop), 2),
    (|hop, packet| spoofed_if(is_of(Kind::Hello, packet), hop), 0),
    (|hop, packet| spoofed_if(is_of(Kind::Open, packet), hop), 0),
    (|hop, packet| spoofed_if(is_symbol(packet, |number| number == 0), hop), 2),
    (|hop, packet| spoofed_if(is_symbol(packet, |number| number % 2 == 0), hop), 2),
    (|hop, packet| spoofed_if(is_symbol(packet, |_| true), hop), 2),
    (|hop, packet| spoofed_if(is_of(Kind::Answer, packet), hop), 2),
    (|hop, _| spoofed_if(true, hop), 0),
];

struct Attacker {
    divert: Divert,
    seen: Vec<(Hop, Vec<u8>)>,
    /// The bytes that B has sent to the victim.
    aimed: usize,
    /// The RETRYs that B has sent to the victim.
    retries: Vec<Vec<u8>>,
    /// Packets of B to any address but C's arrive at A, through a translator.
    translates: bool,
}

impl Watch for Attacker {
    fn on_departure(&mut self, departure: &Departure, hop: Option<Hop>) -> Option<Hop> {
        if departure.from == B && departure.transmit.via.remote.ip() == VICTIM {
            self.aimed += departure.packet.len();
            if is_of(Kind::Retry, &departure.packet) {
                self.retries.push(departure.packet.clone());
            }
        }
        let back = departure.transmit.via.remote;
        let to_a = Hop {
            from: B,
            to: A,
            egress: back.port().saturating_sub(7000) % 4,
            source: departure.source,
        };
        let is_translated = self.translates && departure.from == B && back.ip() != address(C).ip();
        let hop = if is_translated { Some(to_a) } else { hop };
        let hop = (self.divert)(hop?, &departure.packet);
        self.seen.push((hop, departure.packet.clone()));
        Some(hop)
    }
}

struct Triangle {
    now: Instant,
    hosts: Vec<Host>,
    network: Network,
    attacker: Attacker,
}

impl Triangle {
    fn new(divert: Divert) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let host = |number: usize| {
            let recipe = Recipe {
                config: Config::default(),
                listen: ListenPorts::one(7000),
                security: Security::pre_shared(KEY),
                secret: [number as u8 + 1; 32],
                egresses: 4,
                addr: address(number),
                ports: 4,
                shared: None,
                interface_mtu: 1_500,
            };
            Host::new(recipe)
        };
        let link = LinkConfig { delay: Duration::from_micros(50), ..LinkConfig::default() };
        Self {
            now,
            hosts: (0..3).map(host).collect(),
            network: Network::new(1, link),
            attacker: Attacker {
                divert,
                seen: Vec::new(),
                aimed: 0,
                retries: Vec::new(),
                translates: false,
            },
        }
    }

    fn send(&mut self, from: usize, to: SocketAddr, len: usize) -> Result<MessageId, StartError> {
        let bytes = message(len, len as u64);
        let options = SendOptions::default().deadline(DEADLINE);
        self.hosts[from].endpoint.send(self.now, to, bytes, &options)
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            for number in 0..self.hosts.len() {
                let hosts = &mut self.hosts;
                let network = &mut self.network;
                drive::drain(hosts, network, self.now, number, &mut self.attacker);
            }
            if self.now >= until {
                return;
            }
            let next = drive::next_at(&self.hosts, &self.network);
            self.now = next.unwrap_or(until).clamp(self.now, until);
            let hosts = &mut self.hosts;
            let network = &mut self.network;
            drive::run_moment(hosts, network, self.now, &mut self.attacker);
        }
    }

    /// Sends and runs until the deadline has passed.
    fn outcome(&mut self, from: usize, to: SocketAddr, len: usize) -> Outcome {
        let id = self.send(from, to, len).unwrap();
        self.run_for(DEADLINE);
        self.hosts[from].outcomes[&id].clone()
    }

    fn misdirected(&self, host: usize) -> u64 {
        self.hosts[host].endpoint.counters().receiver.misdirected
    }
}
