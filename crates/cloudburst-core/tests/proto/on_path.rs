//! An attacker on the path who redirects, reflects, spoofs the source of and repeats packets. All hosts hold the
//! key; the attacker does not.

use crate::common::{KEY, message};
use cloudburst_core::config::{Config, Security};
use cloudburst_core::error::{Indeterminate, Outcome, SendError};
use cloudburst_core::id::MessageId;
use cloudburst_core::path::is_alias;
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
/// An address where nobody asked for anything.
const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 7000))
}

/// Decides where a packet goes, and where it seems to come from.
type Divert = fn(Hop, &[u8]) -> Hop;

const HONEST: Divert = |hop, _| hop;

/// What host A sends to B reaches C, whose packets to A seem to be B's.
const C_INSTEAD_OF_B: Divert = |hop, _| match (hop.from, hop.to) {
    (A, B) => Hop { to: C, ..hop },
    (C, A) => Hop { source: SocketAddr::new(address(B).ip(), hop.source.port()), ..hop },
    _ => hop,
};

/// What host A sends to B comes back to it from there.
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

/// C is asked about A's session with B, whose symbols get lost.
const QUESTIONS_TO_C: Divert = |hop, packet| match (hop.from, hop.to, Kind::of(packet)) {
    (A, B, Ok(Kind::Hello | Kind::Symbol)) => Hop { to: C, ..hop },
    _ => hop,
};

/// Has a packet of A seem to come from the victim, if it is so.
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

/// Which packets of A seem to come from the victim; how many of its messages arrive at B.
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
    /// Bytes that B sends to the victim.
    aimed: usize,
}

impl Watch for Attacker {
    fn on_departure(&mut self, departure: &Departure, hop: Option<Hop>) -> Option<Hop> {
        if departure.from == B && departure.transmit.via.remote.ip() == VICTIM {
            self.aimed += departure.packet.len();
        }
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
                config: Config { port: 7000, ..Config::default() },
                security: Security::pre_shared(KEY),
                secret: [number as u8 + 1; 32],
                egresses: 4,
                addr: address(number),
                ports: 4,
                shared: None,
            };
            Host::new(now, recipe)
        };
        let link = LinkConfig { delay: Duration::from_micros(50), ..LinkConfig::default() };
        Self {
            now,
            hosts: (0..3).map(host).collect(),
            network: Network::new(1, link),
            attacker: Attacker { divert, seen: Vec::new(), aimed: 0 },
        }
    }

    fn send(&mut self, from: usize, to: SocketAddr, len: usize) -> Result<MessageId, SendError> {
        let bytes = message(len, len as u64);
        let options = SendOptions { deadline: Some(DEADLINE), ..SendOptions::default() };
        self.hosts[from].endpoint.send(self.now, to, bytes, &options)
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            for number in 0..self.hosts.len() {
                let (hosts, network) = (&mut self.hosts, &mut self.network);
                drive::drain(hosts, network, self.now, number, &mut self.attacker);
            }
            if self.now >= until {
                return;
            }
            let next = drive::next_at(&self.hosts, &self.network);
            self.now = next.unwrap_or(until).clamp(self.now, until);
            let (hosts, network) = (&mut self.hosts, &mut self.network);
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

#[test]
fn a_message_to_b_that_is_redirected_to_c_is_not_started() {
    let mut triangle = Triangle::new(C_INSTEAD_OF_B);
    let outcome = triangle.outcome(A, address(B), 1_000);
    assert!(matches!(outcome, Outcome::Rejected(_)), "{outcome:?}");
    assert!(triangle.hosts[C].inbox.is_empty() && triangle.misdirected(C) > 0);
    assert_eq!(triangle.hosts[C].endpoint.counters().receiver.messages_delivered, 0);
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.symbols_sent, 0);
}

#[test]
fn a_session_that_is_redirected_delivers_nothing_and_says_so() {
    let mut triangle = Triangle::new(HONEST);
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    triangle.attacker.divert = C_INSTEAD_OF_B;
    let outcome = triangle.outcome(A, address(B), 2_000);
    assert_eq!(outcome, Outcome::Unknown(Indeterminate::Deadline));
    assert!(triangle.hosts[C].inbox.is_empty());
    assert!(triangle.misdirected(C) > 0);
}

#[test]
fn packets_that_come_back_deliver_nothing() {
    let mut triangle = Triangle::new(MIRROR);
    for len in [0, 1_000, 100_000] {
        let outcome = triangle.outcome(A, address(B), len);
        assert!(matches!(outcome, Outcome::Rejected(_)), "{len} bytes: {outcome:?}");
    }
    assert!(triangle.hosts[A].inbox.is_empty());
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.symbols_sent, 0);
    // In a session, too.
    triangle.attacker.divert = HONEST;
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    triangle.attacker.divert = MIRROR;
    let outcome = triangle.outcome(A, address(B), 2_000);
    assert_eq!(outcome, Outcome::Unknown(Indeterminate::Deadline));
    assert!(triangle.hosts[A].inbox.is_empty());
}

#[test]
fn whoever_borrows_an_address_gets_nothing_that_is_sent_there() {
    let mut triangle = Triangle::new(C_INSTEAD_OF_B);
    // C sends to A, and the attacker has it come from B.
    assert!(matches!(triangle.outcome(C, address(A), 1_000), Outcome::Delivered(_)));
    let borrower = triangle.hosts[A].inbox[0].peer;
    assert!(is_alias(&borrower), "{borrower:?}");
    // A reply goes back to whoever sent the message, and nothing that is for B.
    assert!(matches!(triangle.outcome(A, borrower, 2_000), Outcome::Delivered(_)));
    assert_eq!(triangle.hosts[C].inbox.len(), 1);
    let outcome = triangle.outcome(A, address(B), 3_000);
    assert!(matches!(outcome, Outcome::Rejected(_)), "{outcome:?}");
    assert_eq!(triangle.hosts[C].inbox.len(), 1);
    // Without the attacker, B has its address to itself, and a name that is not C's.
    triangle.attacker.divert = HONEST;
    assert!(matches!(triangle.outcome(A, address(B), 3_000), Outcome::Delivered(_)));
    assert_eq!(triangle.hosts[B].inbox.len(), 1);
    let outcome = triangle.outcome(A, borrower, 4_000);
    assert!(!matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    assert_eq!((triangle.hosts[B].inbox.len(), triangle.hosts[C].inbox.len()), (1, 1));
}

#[test]
fn whichever_packets_seem_to_come_from_a_victim_three_times_their_bytes_go_there_at_most() {
    for (case, (divert, arrive)) in SPOOFED.into_iter().enumerate() {
        let mut triangle = Triangle::new(divert);
        triangle.send(A, address(B), 10).unwrap();
        let request = triangle.hosts[A].endpoint.prepare(None, &[7; 10]);
        let (now, options) = (triangle.now, SendOptions::default());
        triangle.hosts[A].endpoint.call(now, address(B), &request, &options).unwrap();
        triangle.run_for(DEADLINE);
        // B's application says much to whoever it has heard of.
        let (now, host) = (triangle.now, &mut triangle.hosts[B]);
        assert_eq!(host.inbox.len() + host.requests.len(), arrive, "case {case}");
        for message in &host.inbox {
            host.endpoint.send(now, message.peer, message_of_a_megabyte(), &options).unwrap();
        }
        for request in &host.requests {
            let response = message_of_a_megabyte();
            host.endpoint.reply(now, request, Some(&response), &options).unwrap();
        }
        triangle.run_for(DEADLINE * 4);
        let from_victim = |(hop, _): &&(Hop, Vec<u8>)| hop.to == B && hop.source.ip() == VICTIM;
        let spoofed = triangle.attacker.seen.iter().filter(from_victim);
        let spoofed: usize = spoofed.map(|(_, packet)| packet.len()).sum();
        let aimed = triangle.attacker.aimed;
        assert!(spoofed > 0 && aimed <= 3 * spoofed, "case {case}: {aimed} bytes for {spoofed}");
        assert_eq!(triangle.hosts[A].inbox.len(), arrive / 2, "case {case}: A gets what is for it");
    }
}

fn message_of_a_megabyte() -> bytes::Bytes {
    message(1_000_000, 1)
}

#[test]
fn a_question_that_another_holder_of_the_key_answers_costs_the_session_and_leaves_doubt() {
    let mut triangle = Triangle::new(HONEST);
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    triangle.attacker.divert = QUESTIONS_TO_C;
    let outcome = triangle.outcome(A, address(B), 2_000);
    assert_eq!(outcome, Outcome::Unknown(Indeterminate::PeerRestarted));
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.sessions_opened, 2);
    // It is a session with B all the same, and what follows is in no doubt.
    triangle.attacker.divert = HONEST;
    assert!(matches!(triangle.outcome(A, address(B), 3_000), Outcome::Delivered(_)));
    assert_eq!((triangle.hosts[B].inbox.len(), triangle.hosts[C].inbox.len()), (2, 0));
}

#[test]
fn an_alias_is_gone_with_its_session() {
    let mut triangle = Triangle::new(C_INSTEAD_OF_B);
    assert!(matches!(triangle.outcome(C, address(A), 1_000), Outcome::Delivered(_)));
    let borrower = triangle.hosts[A].inbox[0].peer;
    let now = triangle.now;
    triangle.hosts[A].restart(now);
    assert_eq!(triangle.send(A, borrower, 10), Err(SendError::Gone(borrower)));
}

#[test]
fn a_peer_behind_a_firewall_is_reached_where_its_packets_come_from() {
    // Packets to C pass if C has sent one the other way round. It has not from the port that it names.
    let mut triangle = Triangle::new(|hop, _| match (hop.from, hop.to) {
        (A, C) if (hop.source.port(), hop.egress) != (7000, 3) => Hop { to: B, ..hop },
        (C, A) if hop.source.port() != 7003 => Hop { to: B, ..hop },
        _ => hop,
    });
    assert!(matches!(triangle.outcome(C, address(A), 1_000), Outcome::Delivered(_)));
    assert_eq!(triangle.hosts[A].inbox[0].peer, address(C));
    let id = triangle.send(A, address(C), 20_000).unwrap();
    triangle.run_for(Duration::from_secs(1));
    let outcome = &triangle.hosts[A].outcomes[&id];
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    let paths = triangle.hosts[A].endpoint.paths(address(C));
    assert!(paths.iter().filter(|path| !path.removed).all(|path| path.via.remote.port() == 7003));
    // When C has another session, all paths are tried again.
    triangle.attacker.divert = HONEST;
    let now = triangle.now;
    triangle.hosts[C].restart(now);
    assert!(matches!(triangle.outcome(C, address(A), 1_000), Outcome::Delivered(_)));
    assert!(matches!(triangle.outcome(A, address(C), 20_000), Outcome::Delivered(_)));
    let paths = triangle.hosts[A].endpoint.paths(address(C));
    assert_eq!(paths.iter().filter(|path| !path.removed).count(), 4);
}

#[test]
fn a_live_session_survives_handshakes_that_are_replayed_and_answers_that_are_lost() {
    let mut triangle = Triangle::new(HONEST);
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    triangle.run_for(Duration::from_secs(40));
    triangle.attacker.divert = NO_ANSWERS_TO_A;
    triangle.attacker.seen.clear();
    // A must check the session now. That it is said to be alive never arrives.
    let id = triangle.send(A, address(B), 2_000).unwrap();
    for _ in 0..100 {
        triangle.run_for(Duration::from_millis(10));
        let (hosts, network) = (&mut triangle.hosts, &mut triangle.network);
        for (hop, packet) in core::mem::take(&mut triangle.attacker.seen) {
            if hop.to == B && Kind::of(&packet) == Ok(Kind::Hello) {
                let input = (B, hop.via(), packet);
                drive::hand_in(hosts, network, triangle.now, input, &mut triangle.attacker);
            }
        }
    }
    triangle.attacker.divert = HONEST;
    triangle.run_for(DEADLINE);
    let outcome = &triangle.hosts[A].outcomes[&id];
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.sessions_opened, 1);
    assert!(triangle.hosts[B].endpoint.counters().receiver.replayed > 0);
}
