//! Addresses that several hosts share, that translators assign, or that move.

use super::*;
use cloudburst_core::config::Tuning;
use cloudburst_core::naming::is_alias;
use cloudburst_core::path::Egresses;
use std::sync::Arc;

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
    triangle.hosts[C].restart();
    assert!(matches!(triangle.outcome(C, address(A), 1_000), Outcome::Delivered(_)));
    assert!(matches!(triangle.outcome(A, address(C), 20_000), Outcome::Delivered(_)));
    let paths = triangle.hosts[A].endpoint.paths(address(C));
    assert_eq!(paths.iter().filter(|path| !path.removed).count(), 4);
}

/// C is another process at A's IP address, with ports of its own, which says that A's port is its own.
fn neighbours(divert: Divert) -> Triangle {
    let mut triangle = Triangle::new(divert);
    let recipe = Recipe {
        config: Config::default(),
        listen: ListenPorts::one(7000),
        security: Security::pre_shared(KEY),
        secret: [3; 32],
        egresses: 4,
        addr: SocketAddr::from(([10, 0, 0, 1], 8000)),
        ports: 4,
        shared: None,
        interface_mtu: 1_500,
    };
    triangle.hosts[C] = Host::new(recipe);
    triangle
}

#[test]
fn a_neighbour_that_claims_the_port_of_a_living_peer_gets_nothing_that_is_sent_there() {
    let mut triangle = neighbours(HONEST);
    assert!(matches!(triangle.outcome(C, address(B), 1_000), Outcome::Delivered(_)));
    assert_eq!(triangle.hosts[B].inbox[0].peer, address(A));
    // B finds out by its first message that C is not there.
    let outcome = triangle.outcome(B, address(A), 3_000);
    assert_eq!(outcome, Outcome::Unknown(Indeterminate::PeerRestarted));
    assert!(matches!(triangle.outcome(B, address(A), 3_000), Outcome::Delivered(_)));
    assert_eq!([A, C].map(|host| triangle.hosts[host].inbox.len()), [1, 0]);
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

/// With more than `max_peers` sessions.
#[test]
fn newcomers_take_the_names_of_translated_peers_that_nothing_is_sent_to() {
    let mut triangle = Triangle::new(|hop, _| if hop.from == A { translated(hop, 0) } else { hop });
    triangle.attacker.translates = true;
    let recipe = Recipe {
        config: Config {
            tuning: Tuning { max_peers: Some(2), ..Tuning::default() },
            ..Config::default()
        },
        ..triangle.hosts[B].recipe().clone()
    };
    triangle.hosts[B] = Host::new(recipe);
    assert!(matches!(triangle.outcome(A, address(B), 1_000), Outcome::Delivered(_)));
    let name = triangle.hosts[B].inbox[0].peer;
    // Two incarnations of C come and go, both within 5 s of each other.
    triangle.outcome(C, address(B), 1_000);
    let recipe = Recipe {
        config: Config::default(),
        listen: ListenPorts::one(7001),
        ..triangle.hosts[C].recipe().clone()
    };
    triangle.hosts[C] = Host::new(Recipe { secret: [9; 32], ..recipe });
    triangle.outcome(C, address(B), 1_000);
    // A continues in its session, which B holds.
    assert!(matches!(triangle.outcome(A, address(B), 2_000), Outcome::Delivered(_)));
    assert_eq!(triangle.hosts[A].endpoint.counters().sender.sessions_opened, 1);
    let last = triangle.hosts[B].inbox.last().unwrap().peer;
    assert_eq!(last, name);
    assert!(matches!(triangle.send(B, name, 500), Err(StartError::Gone(_))));
}

#[test]
fn a_standby_that_takes_over_an_address_does_not_deliver_again() {
    // C is a standby of B, and as old as B. It does not know that peers know it by that address.
    let mut triangle = Triangle::new(HONEST);
    let recipe = Recipe { addr: address(B), ..triangle.hosts[C].recipe().clone() };
    triangle.hosts[C] = Host::new(recipe);
    // Packets to B's address reach B. Its STOPs get lost, because its uplink is failing.
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
    assert_eq!(*outcome, Outcome::Unknown(Indeterminate::PeerRestarted));
    assert_eq!([B, C].map(|host| triangle.hosts[host].inbox.len()), [1, 0]);
}

/// C shows the routes of its own session for A's, and A's process sleeps for a moment.
#[test]
fn routes_of_one_session_are_not_used_in_another() {
    let mut triangle = neighbours(HONEST);
    let anything = Arc::new(Egresses(4));
    triangle.hosts[C].endpoint.set_path_resolver(anything).unwrap();
    triangle.send(C, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_millis(10));
    triangle.send(A, address(B), 1_000).unwrap();
    triangle.run_for(Duration::from_millis(10));
    let heard = triangle.hosts[B].inbox.len();
    assert_eq!(heard, 2);
    // B's session for A's address is with A now. C announces more, on other paths.
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
    // C is a standby of B, and as old as B.
    let mut triangle = Triangle::new(HONEST);
    let recipe = Recipe { addr: address(B), ..triangle.hosts[C].recipe().clone() };
    triangle.hosts[C] = Host::new(recipe);
    // Packets to B's address reach B. Its STOPs get lost.
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

/// Without an attacker on the path. A's answers get lost for 60 ms.
#[test]
fn a_peer_at_a_neighbouring_port_gets_nothing_delivered_twice() {
    let mut triangle = neighbours(HONEST);
    let anything = Arc::new(Egresses(4));
    triangle.hosts[C].endpoint.set_path_resolver(anything).unwrap();
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
