//! Path maps: peers with several ports, and paths that appear and disappear while messages are
//! under way.

use crate::common::peer::Liar;
use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::{Config, ListenPorts};
use cloudburst_core::error::StartError;
use cloudburst_core::naming::Naming;
use cloudburst_core::path::{Order, OrderError, PathResolver, Via};
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::Kind;
use core::time::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// Egresses, each combined with `ports` ports of the peer.
#[derive(Clone, Default)]
struct Pool {
    egresses: Vec<u16>,
    ports: u16,
    /// The largest number of ports that a peer has announced.
    told: Arc<AtomicU16>,
}

impl PathResolver for Pool {
    fn paths(&self, peer: SocketAddr, ports: u16) -> Vec<Via> {
        self.told.fetch_max(ports, Ordering::SeqCst);
        let via = |port, &egress| {
            let mut remote = peer;
            remote.set_port(peer.port() + port);
            Via { egress, local: None, remote }
        };
        let ports = 0..ports.min(self.ports);
        ports.flat_map(|port| self.egresses.iter().map(move |egress| via(port, egress))).collect()
    }

    fn naming(&self, _address: SocketAddr) -> Naming {
        Naming::Own
    }
}

fn pool(egresses: impl IntoIterator<Item = u16>, ports: u16) -> Arc<Pool> {
    Arc::new(Pool { egresses: egresses.into_iter().collect(), ports, told: Arc::default() })
}

/// A pair of endpoints that both receive at four ports.
fn pair_of_ports() -> Pair {
    let ports = ListenPorts { count: 4, ..ListenPorts::one(7000) };
    let mut pair = Pair::new(Setup { ports_a: ports, ports_b: ports, ..Setup::default() });
    for host in [&mut pair.a, &mut pair.b] {
        host.endpoint.set_path_resolver(pool(0..2, 4)).unwrap();
    }
    pair
}

/// The destinations of the packets of one kind that `side` has sent since the tap was opened.
fn vias(pair: &Pair, side: Side, kind: Kind) -> BTreeSet<(u16, u16)> {
    let seen = pair
        .tap
        .iter()
        .flatten()
        .filter(|(from, _, packet)| *from == side && Kind::of(packet) == Ok(kind));
    seen.map(|(_, via, _)| (via.egress, via.remote.port() - 7000)).collect()
}

#[test]
fn symbols_go_to_all_ports_that_the_peer_has_said_it_has() {
    let mut pair = pair_of_ports();
    pair.tap = Some(Vec::new());
    pair.deliver(message(93_000, 1));
    let all: BTreeSet<(u16, u16)> =
        (0..2).flat_map(|egress| (0..4).map(move |p| (egress, p))).collect();
    assert_eq!(vias(&pair, Side::A, Kind::Symbol), all);
    assert_eq!(pair.a.endpoint.paths(Side::B.address(0)).len(), 8);
    assert!(vias(&pair, Side::A, Kind::Hello).iter().all(|&(_, port)| port == 0));
    // The other direction needs no handshake: OPEN has said all of it.
    pair.send_from(Side::B, message(93_000, 2), SendOptions::default());
    pair.settle();
    assert_eq!(pair.b.counters().sender.handshakes_sent, 0);
    assert_eq!(vias(&pair, Side::B, Kind::Symbol), all);
}

#[test]
fn a_peer_with_one_port_gets_all_there() {
    let mut pair = Pair::new(Setup::default());
    pair.a.endpoint.set_path_resolver(pool(0..2, 4)).unwrap();
    pair.tap = Some(Vec::new());
    pair.deliver(message(93_000, 1));
    assert_eq!(vias(&pair, Side::A, Kind::Symbol), [(0, 0), (1, 0)].into());
}

#[test]
fn a_peer_that_claims_more_ports_than_any_has_is_believed_the_most_there_are() {
    let map = pool(0..1, 1);
    let told = map.told.clone();
    let mut pair = Pair::new(Setup::default());
    pair.b.endpoint.set_path_resolver(map).unwrap();
    let mut liar = Liar::join_with_ports(pair.b.endpoint, 9, u8::MAX);
    liar.say_message(0, b"hello", 21);
    assert_eq!(liar.messages().len(), 1);
    assert_eq!(told.load(Ordering::SeqCst), 64);
}

#[test]
fn paths_that_are_removed_carry_nothing_more_and_new_ones_do_while_a_message_is_under_way() {
    let mut pair = Pair::new(Setup { paths: 8, ..Setup::default() });
    pair.a.endpoint.set_path_resolver(pool(0..4, 1)).unwrap();
    let id = pair.send(message(4_000_000, 1));
    for egresses in [vec![0, 1], vec![0, 1, 2, 3], vec![1, 6, 7], vec![5]] {
        pair.run_for(Duration::from_millis(3));
        pair.drain();
        pair.a.endpoint.set_path_resolver(pool(egresses.clone(), 1)).unwrap();
        pair.tap = Some(Vec::new());
        pair.run_for(Duration::from_millis(3));
        let used = vias(&pair, Side::A, Kind::Symbol).into_iter().map(|(egress, _)| egress);
        assert_eq!(used.collect::<Vec<_>>(), egresses);
        assert_eq!(pair.a.endpoint.unfinished(), 1, "the message is under way all the time");
    }
    pair.settle();
    assert!(pair.a.outcomes.contains_key(&id) && pair.a.delivered() == 1);
    let stats = pair.a.endpoint.paths(Side::B.address(0));
    let in_use = stats.iter().filter(|path| !path.removed).map(|path| path.via.egress);
    assert_eq!(in_use.collect::<Vec<_>>(), [5]);
    assert_eq!(stats.len(), 7, "each path of all maps has kept its number");
    assert!(stats.iter().all(|path| path.arrived <= path.sent), "{stats:?}");
}

#[test]
fn paths_beyond_those_a_receiver_counts_are_not_degraded() {
    let mut pair = Pair::new(Setup { paths: 80, ..Setup::default() });
    pair.a.endpoint.set_path_resolver(pool(0..60, 1)).unwrap();
    pair.send(message(8_000_000, 1));
    pair.run_for(Duration::from_millis(5));
    pair.drain();
    pair.a.endpoint.set_path_resolver(pool(64..72, 1)).unwrap();
    while pair.a.endpoint.unfinished() > 0 {
        pair.run_for(Duration::from_millis(1));
        let paths = pair.a.endpoint.paths(Side::B.address(0));
        assert!(!paths.iter().any(|path| path.degraded && !path.removed), "{paths:?}");
    }
    assert_eq!(pair.a.delivered(), 1);
}

#[test]
fn a_peer_that_returns_gets_handshakes_at_the_port_that_it_is_known_by() {
    let mut pair = pair_of_ports();
    pair.deliver(message(20_000, 1));
    pair.restart(Side::B);
    pair.run_for(Duration::from_secs(40));
    pair.tap = Some(Vec::new());
    pair.deliver(message(20_000, 2));
    assert!(vias(&pair, Side::A, Kind::Hello).iter().all(|&(_, port)| port == 0));
    assert!(!vias(&pair, Side::A, Kind::Hello).is_empty());
}

#[test]
fn whoever_claims_the_address_of_a_peer_changes_nothing_about_its_ports() {
    let mut pair = Pair::new(Setup::default());
    pair.b.endpoint.set_path_resolver(pool(0..1, 64)).unwrap();
    let mut honest = Liar::join_with_ports(pair.b.endpoint, 9, 1);
    honest.say_message(0, b"hello", 21);
    assert_eq!(honest.messages().len(), 1);
    let peer = honest.via.remote;
    assert_eq!(honest.endpoint.paths(peer).len(), 2);
    let mut liar = Liar::join_with_ports(honest.endpoint, 8, 63);
    liar.via.remote = peer;
    liar.say_message(0, b"hello", 21);
    assert_eq!(liar.messages().len(), 1);
    assert_eq!(liar.endpoint.paths(peer).len(), 2);
}

#[test]
fn a_peer_that_has_no_path_any_more_is_refused_but_what_is_under_way_arrives() {
    let mut pair = Pair::new(Setup::default());
    pair.send(message(1_000_000, 1));
    pair.run_for(Duration::from_millis(1));
    pair.a.endpoint.set_path_resolver(pool([], 1)).unwrap();
    let to = Side::B.address(0);
    let send = |pair: &mut Pair| {
        pair.a.endpoint.send(pair.now, to, message(1, 2), &SendOptions::default())
    };
    assert_eq!(send(&mut pair), Err(StartError::NoPath(to)));
    pair.settle();
    assert_eq!(pair.a.delivered(), 1);
    pair.a.endpoint.set_path_resolver(pool(0..1, 1)).unwrap();
    assert!(send(&mut pair).is_ok());
}

#[test]
fn paths_that_do_not_fit_the_order_change_nothing() {
    let order: Order = "drb:2x2".parse().unwrap();
    let a = Config { order, ..Config::default() };
    let mut pair = Pair::new(Setup { a, paths: 5, ..Setup::default() });
    pair.a.endpoint.set_path_resolver(pool(0..4, 1)).unwrap();
    pair.deliver(message(20_000, 1));
    for egresses in [vec![0, 1, 2, 3, 4], vec![0, 1, 3]] {
        let refused = pair.a.endpoint.set_path_resolver(pool(egresses, 1));
        assert!(matches!(refused, Err(OrderError::Paths { expected: 4, .. })), "{refused:?}");
    }
    pair.tap = Some(Vec::new());
    pair.deliver(message(20_000, 2));
    assert_eq!(vias(&pair, Side::A, Kind::Symbol).len(), 4);
}

#[test]
fn a_handshake_that_nobody_answers_takes_more_and_more_paths_at_once() {
    let mut pair = Pair::new(Setup { paths: 64, ..Setup::default() });
    (0..64).for_each(|path| pair.set_down(path, true));
    pair.tap = Some(Vec::new());
    pair.send(message(1, 1));
    pair.drain();
    let mut before = pair.tap.iter().flatten().count();
    let mut attempts = vec![before];
    for _ in 0..3_000 {
        pair.run_for(Duration::from_millis(1));
        let hellos = pair.tap.iter().flatten().count();
        if hellos > before {
            attempts.push(hellos - before);
        }
        before = hellos;
    }
    assert_eq!(attempts[..3], [2, 2, 2]);
    assert!(attempts.is_sorted(), "{attempts:?}");
    assert_eq!(attempts.last(), Some(&16));
}

#[test]
fn symbols_go_to_the_port_of_the_peer_where_the_order_fits_only_one() {
    let order: Order = "drb:2x2".parse().unwrap();
    let a = Config { order, ..Config::default() };
    let ports_b = ListenPorts { first: 7002, count: 2, is_shared: true };
    let mut pair = Pair::new(Setup { a, ports_b, ..Setup::default() });
    pair.a.endpoint.set_path_resolver(pool(0..4, 2)).unwrap();
    pair.tap = Some(Vec::new());
    pair.deliver(message(20_000, 1));
    let all: BTreeSet<(u16, u16)> = (0..4).map(|egress| (egress, 2)).collect();
    assert_eq!(vias(&pair, Side::A, Kind::Symbol), all);
}

/// Sixteen ports, eight of which are used at a time.
struct Spares;

impl PathResolver for Spares {
    fn paths(&self, peer: SocketAddr, ports: u16) -> Vec<Via> {
        self.regenerate(peer, ports, 0)
    }

    fn regenerate(&self, peer: SocketAddr, _ports: u16, generation: u32) -> Vec<Via> {
        let first = (generation % 2) as u16 * 8;
        (first..first + 8).map(|egress| Via { egress, local: None, remote: peer }).collect()
    }

    fn naming(&self, _address: SocketAddr) -> Naming {
        Naming::Own
    }
}

/// Both ends use ports 0 to 7, which all lead through dead switches. Of the others, 11 does not.
fn pair_with_spares() -> Pair {
    let mut pair = Pair::new(Setup { paths: 16, ..Setup::default() });
    for host in [&mut pair.a, &mut pair.b] {
        host.endpoint.set_path_resolver(Arc::new(Spares)).unwrap();
    }
    pair
}

fn all_but_one_die(pair: &mut Pair) {
    (0..16).filter(|&path| path != 11).for_each(|path| pair.set_down(path, true));
}

#[test]
fn a_pair_whose_ports_are_all_dead_meets_by_others() {
    let mut pair = pair_with_spares();
    all_but_one_die(&mut pair);
    let receipt = pair.deliver(message(20_000, 1));
    assert!(receipt.completed_in < Duration::from_secs(2), "{receipt:?}");
    let receipt = pair.deliver(message(20_000, 2));
    assert!(receipt.completed_in < Duration::from_millis(20), "{receipt:?}");
}

#[test]
fn a_pair_that_talks_when_all_its_ports_die_goes_on_by_others() {
    let mut pair = pair_with_spares();
    pair.deliver(message(20_000, 1));
    let used = |pair: &Pair| {
        let paths = pair.a.endpoint.paths(Side::B.address(0)).iter();
        paths.filter(|path| !path.removed).map(|path| path.via.egress).collect::<Vec<_>>()
    };
    assert_eq!(used(&pair), (0..8).collect::<Vec<_>>());
    all_but_one_die(&mut pair);
    let receipt = pair.deliver(message(20_000, 2));
    assert!(receipt.completed_in < Duration::from_secs(2), "{receipt:?}");
    assert_eq!(used(&pair), (8..16).collect::<Vec<_>>());
}
