//! An attacker on the path who redirects, reflects, spoofs the source of and repeats packets. All hosts hold the
//! key; the attacker does not.

use crate::common::{KEY, message};
use cloudburst_core::config::{Config, Security};
use cloudburst_core::error::{Indeterminate, Outcome, SendError};
use cloudburst_core::id::MessageId;
use cloudburst_core::path::{Egresses, Via, is_alias};
use cloudburst_core::proto::SendOptions;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::{Kind, Prefix};
use cloudburst_netem::LinkConfig;
use cloudburst_world::drive::{self, Watch};
use cloudburst_world::{Departure, Hop, Host, Network, Recipe};
use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

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
    /// RETRYs that B sends to the victim.
    retries: Vec<Vec<u8>>,
    /// What B sends to anywhere but C's address arrives at A: a translator is between.
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
            attacker: Attacker {
                divert,
                seen: Vec::new(),
                aimed: 0,
                retries: Vec::new(),
                translates: false,
            },
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

/// C is another process at A's IP address, with ports of its own, which says that A's port is its own.
fn neighbours(divert: Divert) -> Triangle {
    let mut triangle = Triangle::new(divert);
    let recipe = Recipe {
        config: Config { port: 7000, ..Config::default() },
        security: Security::pre_shared(KEY),
        secret: [3; 32],
        egresses: 4,
        addr: SocketAddr::from(([10, 0, 0, 1], 8000)),
        ports: 4,
        shared: None,
    };
    triangle.hosts[C] = Host::new(triangle.now, recipe);
    triangle
}

#[test]
fn a_neighbour_that_claims_the_port_of_a_living_peer_gets_nothing_that_is_sent_there() {
    let mut triangle = neighbours(HONEST);
    assert!(matches!(triangle.outcome(C, address(B), 1_000), Outcome::Delivered(_)));
    assert_eq!(triangle.hosts[B].inbox[0].peer, address(A));
    let outcome = triangle.outcome(B, address(A), 3_000);
    assert_eq!(triangle.hosts[C].inbox.len(), 0, "{outcome:?}");
    assert_eq!(triangle.hosts[A].inbox.len(), 1);
}

/// ACCEPTs get lost, and once a HELLO or OPEN seems to come from elsewhere.
#[test]
fn a_handshake_goes_on_after_a_retry_that_observed_another_address() {
    let lose_accepts: Divert = |hop, packet| {
        if is_of(Kind::Accept, packet) { Hop { to: C, ..hop } } else { hop }
    };
    let mut triangle = Triangle::new(lose_accepts);
    let id = triangle.send(A, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_micros(800));
    assert_eq!(triangle.hosts[B].endpoint.counters().receiver.sessions_confirmed, 0);
    // One HELLO or OPEN seems to come from the victim's address, and the answer is brought back.
    triangle.attacker.divert = |hop, packet| {
        if hop.from == A && (is_of(Kind::Open, packet) || is_of(Kind::Hello, packet)) {
            return Hop { source: SocketAddr::new(VICTIM, hop.source.port()), ..hop };
        }
        if is_of(Kind::Accept, packet) { Hop { to: C, ..hop } } else { hop }
    };
    while triangle.attacker.retries.is_empty() {
        triangle.run_for(Duration::from_micros(100));
    }
    // The RETRY to the victim, which the attacker saw, arrives at A.
    let packet = triangle.attacker.retries.remove(0);
    let via = Via { egress: 0, local: None, remote: address(B) };
    let (hosts, network) = (&mut triangle.hosts, &mut triangle.network);
    drive::hand_in(hosts, network, triangle.now, (A, via, packet), &mut triangle.attacker);
    // The attacker leaves.
    triangle.attacker.divert = HONEST;
    let left = triangle.now;
    while !triangle.hosts[A].outcomes.contains_key(&id) {
        triangle.run_for(Duration::from_millis(1));
    }
    let took = triangle.now.saturating_since(left);
    assert!(took < Duration::from_millis(500), "{took:?}");
}

const PUBLIC: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2))];

/// A is behind a translator with two public addresses; handshakes leave by the first.
fn translated(hop: Hop, public: usize) -> Hop {
    Hop { source: SocketAddr::new(PUBLIC[public], hop.source.port()), ..hop }
}

#[test]
fn a_translated_peer_whose_first_symbol_comes_from_another_public_address_can_be_answered() {
    for first in [0, 1] {
        let divert: Divert = if first == 0 {
            |hop, _| if hop.from == A { translated(hop, 0) } else { hop }
        } else {
            |hop, packet| match hop.from {
                A => translated(hop, usize::from(is_symbol(packet, |number| number == 0))),
                _ => hop,
            }
        };
        let mut triangle = Triangle::new(divert);
        triangle.attacker.translates = true;
        let outcome = triangle.outcome(A, address(B), 1_000);
        assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
        // Everything that follows comes from the first address.
        triangle.attacker.divert = |hop, _| if hop.from == A { translated(hop, 0) } else { hop };
        let outcome = triangle.outcome(A, address(B), 20_000);
        assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
        let name = triangle.hosts[B].inbox[1].peer;
        assert!(is_alias(&name));
        let sent = triangle.send(B, name, 500);
        assert!(sent.is_ok(), "first symbol from {first}: {sent:?}");
        triangle.run_for(DEADLINE);
        assert_eq!(triangle.hosts[A].inbox.len(), 1);
    }
}

/// Where there are more than `max_peers` of them.
#[test]
fn newcomers_take_the_names_of_translated_peers_that_nothing_is_sent_to() {
    let mut triangle = Triangle::new(|hop, _| if hop.from == A { translated(hop, 0) } else { hop });
    triangle.attacker.translates = true;
    let recipe = Recipe {
        config: Config { port: 7000, max_peers: 2, ..Config::default() },
        ..triangle.hosts[B].recipe().clone()
    };
    triangle.hosts[B] = Host::new(triangle.now, recipe);
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    let name = triangle.hosts[B].inbox[0].peer;
    // Two lives of C come and go, both within 5 s of each other.
    triangle.outcome(C, address(B), 1_000);
    let recipe = Recipe {
        config: Config { port: 7001, ..Config::default() },
        ..triangle.hosts[C].recipe().clone()
    };
    let now = triangle.now;
    triangle.hosts[C] = Host::new(now, Recipe { secret: [9; 32], ..recipe });
    triangle.outcome(C, address(B), 1_000);
    // A goes on in its session, which B holds.
    assert!(matches!(triangle.outcome(A, address(B), 2_000), Outcome::Delivered(_)));
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.sessions_opened, 1);
    let last = triangle.hosts[B].inbox.last().unwrap().peer;
    assert_eq!(last, name);
    assert!(matches!(triangle.send(B, name, 500), Err(SendError::Gone(_))));
}

#[test]
fn a_standby_that_takes_an_address_over_delivers_again() {
    // C is a standby of B, and as old as it is. It is not told that peers know it by that address.
    let mut triangle = Triangle::new(HONEST);
    let recipe = Recipe { addr: address(B), ..triangle.hosts[C].recipe().clone() };
    triangle.hosts[C] = Host::new(triangle.now, recipe);
    // What goes to B's address reaches B. Its STOPs get lost: its uplink is dying.
    triangle.attacker.divert = |hop, packet| match (hop.from, hop.to) {
        (A, C | B) => Hop { to: B, ..hop },
        (B, A) if is_of(Kind::Answer, packet) => Hop { to: 1, ..hop },
        _ => hop,
    };
    let id = triangle.send(A, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_millis(30));
    assert_eq!(triangle.hosts[B].inbox.len(), 1);
    // The address moves.
    triangle.attacker.divert = |hop, _| match (hop.from, hop.to) {
        (A, C | B) => Hop { to: C, ..hop },
        (B, _) => Hop { to: 1, ..hop },
        _ => hop,
    };
    triangle.run_for(DEADLINE);
    let outcome = &triangle.hosts[A].outcomes[&id];
    assert!(matches!(outcome, Outcome::Delivered(_)), "{outcome:?}");
    assert_eq!([B, C].map(|host| triangle.hosts[host].inbox.len()), [1, 1]);
}

/// The attacker has A's packets come from ports that A does not have, and later loses what B sends for
/// a moment. Then it leaves.
#[test]
fn ports_that_were_made_up_wedge_no_peer_that_has_an_address() {
    let mut triangle = Triangle::new(|hop, packet| match (hop.from, Kind::of(packet)) {
        (A, Ok(kind))
            if kind == Kind::Symbol || kind == Kind::Hello && packet[12..16] != [0; 4] =>
        {
            let source = SocketAddr::new(hop.source.ip(), hop.source.port() + 2_000);
            Hop { source, ..hop }
        }
        _ => hop,
    });
    // Its STOP never arrives.
    triangle.outcome(A, address(B), 1_000);
    assert_eq!(triangle.hosts[B].inbox.len(), 1);
    assert_eq!(triangle.hosts[B].inbox[0].peer, address(A));
    triangle.attacker.divert = |hop, _| if hop.from == B { Hop { to: C, ..hop } } else { hop };
    triangle.send(B, address(A), 2_000).unwrap();
    triangle.run_for(Duration::from_millis(100));
    triangle.attacker.divert = HONEST;
    triangle.run_for(DEADLINE);
    let outcome = triangle.outcome(B, address(A), 3_000);
    assert!(matches!(outcome, Outcome::Delivered(_)), "the attacker left 5 s before: {outcome:?}");
}

/// C shows the routes of its own session for A's, and A's process sleeps for a moment.
#[test]
fn routes_of_one_session_are_not_used_in_another() {
    let mut triangle = neighbours(HONEST);
    let anything = Arc::new(Egresses(4));
    triangle.hosts[C].endpoint.set_path_map(anything).unwrap();
    triangle.send(C, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_millis(10));
    triangle.send(A, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_millis(10));
    let heard = triangle.hosts[B].inbox.len();
    assert_eq!(heard, 2);
    // B's session for A's address is with A now. C says more, by other ways.
    triangle.send(C, address(B), 50_000).unwrap();
    triangle.run_for(Duration::from_millis(10));
    triangle.hosts[A].pause();
    triangle.send(B, address(A), 3_000).unwrap();
    triangle.run_for(Duration::from_millis(80));
    let opened = triangle.hosts[B].endpoint.counters().sender.sessions_opened;
    assert_eq!(opened, 2, "C answered a handshake with A");
}

#[test]
fn an_address_that_moves_there_and_back_has_nothing_delivered_twice() {
    // C is a standby of B, and as old as it is.
    let mut triangle = Triangle::new(HONEST);
    let recipe = Recipe { addr: address(B), ..triangle.hosts[C].recipe().clone() };
    triangle.hosts[C] = Host::new(triangle.now, recipe);
    // What goes to B's address reaches B. Its STOPs get lost.
    triangle.attacker.divert = |hop, packet| match (hop.from, hop.to) {
        (A, C | B) => Hop { to: B, ..hop },
        (B, A) if is_of(Kind::Answer, packet) => Hop { to: B, ..hop },
        _ => hop,
    };
    let id = triangle.send(A, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_millis(30));
    assert_eq!(triangle.hosts[B].inbox.len(), 1);
    // The address moves to C, which symbols do not reach, and back to B.
    triangle.attacker.divert = |hop, packet| match (hop.from, hop.to) {
        (A, C | B) if is_of(Kind::Symbol, packet) => Hop { to: A, ..hop },
        (A, C | B) => Hop { to: C, ..hop },
        (B, _) => Hop { to: B, ..hop },
        _ => hop,
    };
    triangle.run_for(Duration::from_millis(40));
    triangle.attacker.divert = |hop, _| match (hop.from, hop.to) {
        (A, C | B) => Hop { to: B, ..hop },
        (C, _) => Hop { to: C, ..hop },
        _ => hop,
    };
    triangle.run_for(DEADLINE);
    assert!(triangle.hosts[A].outcomes.contains_key(&id));
    assert_eq!(triangle.hosts[B].inbox.len(), 1, "one incarnation, one message");
}

/// Nobody is on the path. A's answers get lost for 60 ms.
#[test]
fn a_neighbour_has_nothing_delivered_twice() {
    let mut triangle = neighbours(HONEST);
    let anything = Arc::new(Egresses(4));
    triangle.hosts[C].endpoint.set_path_map(anything).unwrap();
    triangle.send(C, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_millis(10));
    triangle.send(A, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_millis(10));
    triangle.send(C, address(B), 50_000).unwrap();
    triangle.run_for(Duration::from_millis(10));
    triangle.attacker.divert = |hop, packet| match hop.from {
        A if is_of(Kind::Answer, packet) => Hop { to: A, ..hop },
        _ => hop,
    };
    triangle.send(B, address(A), 3_000).unwrap();
    triangle.run_for(Duration::from_millis(60));
    triangle.attacker.divert = HONEST;
    triangle.run_for(DEADLINE);
    assert!(triangle.hosts[A].inbox.len() <= 1, "one incarnation, one message");
}
