//! Several endpoints answer at one port: packets after a handshake go to the endpoint that answered
//! it.

mod world;

use crate::common::peer::{accept_fields, open_fields};
use bytes::Bytes;
use cloudburst_core::config::{Config, ListenPorts};
use cloudburst_core::error::{CallFailure, Indeterminate, Outcome, Rejection};
use cloudburst_core::id::{Incarnation, PathId};
use cloudburst_core::path::Via;
use cloudburst_core::proto::{Event, SendOptions, Transceiver};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Kind;
use cloudburst_core::wire::handshake::{AcceptFields, answer_by_hand, shake_hands};
use core::time::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use world::{KEY, PORT, World, client, endpoint, own_port, service};

fn message(length: usize, seed: usize) -> Bytes {
    (0..length).map(|at| ((at * (2 * seed + 1)) >> 3) as u8).collect::<Vec<u8>>().into()
}

fn is_delivered(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Delivered(_))
}

/// The destinations of the packets of one kind.
fn ports(world: &World, kind: Kind) -> Vec<u16> {
    let sent = world.tap.iter().filter(|(sent, ..)| *sent == kind);
    sent.map(|(.., to)| to.port()).collect()
}

#[test]
fn all_but_handshakes_goes_to_the_port_of_whoever_answered() {
    let mut world = World::new(3);
    for (seed, length) in [1_500, 93_000, 0].into_iter().enumerate() {
        let bytes = message(length, seed);
        assert!(is_delivered(&world.ask(bytes.clone())));
        assert_eq!(world.hosts[world.taker()].inbox[seed].bytes, bytes);
    }
    let taker = world.taker();
    assert!(ports(&world, Kind::Hello).iter().all(|&port| port == PORT));
    assert!(ports(&world, Kind::Symbol).iter().all(|&port| port == own_port(taker)));
    let stops = world.tap.iter().filter(|(kind, ..)| *kind == Kind::Answer);
    assert!(stops.clone().count() > 0 && stops.clone().all(|(_, from, _)| *from != PORT));
    // The application does not notice.
    let client = &world.hosts[0].endpoint;
    assert_eq!(client.peers().iter().map(|peer| peer.peer).collect::<Vec<_>>(), [service()]);
    let paths = client.paths(service()).iter().filter(|path| !path.removed);
    let to: Vec<SocketAddr> = paths.map(|path| path.via.remote).collect();
    assert_eq!(to, [SocketAddr::from(([10, 0, 0, 2], own_port(taker))); 4]);
}

#[test]
fn a_shard_replies_without_a_handshake_and_is_known_by_the_shared_address() {
    let mut world = World::new(3);
    world.ask(message(10, 1));
    let taker = world.taker();
    let peer = world.hosts[taker].inbox[0].peer;
    world.send(taker, peer, message(20_000, 2));
    world.run_until(|world| world.hosts[0].inbox.len() == 1);
    let reply = &world.hosts[0].inbox[0];
    assert_eq!((reply.peer, &reply.bytes), (service(), &message(20_000, 2)));
    assert_eq!(world.hosts[taker].endpoint.counters().sender.handshakes_sent, 0);
}

#[test]
fn a_shard_that_begins_itself_is_answered_at_its_own_port() {
    let mut world = World::new(3);
    let to = SocketAddr::from(([10, 0, 0, 1], 5000));
    world.send(2, to, message(10, 1));
    world.run_until(|world| world.hosts[0].inbox.len() == 1);
    let peer = world.hosts[0].inbox[0].peer;
    assert_eq!(peer.port(), own_port(2));
    world.send(0, peer, message(10, 2));
    world.run_until(|world| world.hosts[2].inbox.len() == 1);
    assert_eq!(world.hosts[0].endpoint.counters().sender.handshakes_sent, 0);
}

#[test]
fn the_first_of_two_shards_that_answer_a_handshake_gets_the_session() {
    let mut world = World::new(2);
    assert!(is_delivered(&world.ask(message(5_000, 1))));
    let taker = world.taker();
    let sender = world.hosts[0].endpoint.counters().sender;
    // Two HELLOs on two paths: the ports are neighbours, so each shard has received one.
    assert_eq!(world.tap.iter().filter(|(kind, ..)| *kind == Kind::Retry).count(), 2);
    assert_eq!((sender.sessions_opened, sender.late_answers), (1, 1));
    let other = 3 - taker;
    assert_eq!(world.hosts[other].endpoint.counters().receiver.sessions_confirmed, 0);
    assert_eq!(world.hosts[other].endpoint.poll_timeout(), None, "it keeps nothing");
}

#[test]
fn after_an_idle_shard_died_another_takes_the_message_and_it_is_certainly_delivered() {
    let mut world = World::new(3);
    world.ask(message(10, 1));
    let dead = world.taker();
    world.kill(dead);
    world.hosts[dead].inbox.clear();
    world.run_for(Duration::from_secs(60));
    world.tap.clear();
    let start = world.now;
    assert!(is_delivered(&world.ask(message(10, 2))));
    assert!(world.now.saturating_since(start) < Duration::from_millis(300));
    assert_ne!(world.taker(), dead);
    let hellos = ports(&world, Kind::Hello);
    let asked = hellos.iter().take_while(|&&port| port == own_port(dead)).count();
    assert!(asked >= 16 && hellos[asked..].iter().all(|&port| port == PORT), "{hellos:?}");
}

#[test]
fn messages_under_way_to_a_dead_shard_are_indeterminate_and_later_ones_are_not() {
    let mut world = World::new(3);
    world.ask(message(10, 1));
    let dead = world.taker();
    let under_way = world.send(0, service(), message(93_000, 2));
    world.run_for(Duration::from_millis(1));
    world.kill(dead);
    let waiting = world.send(0, service(), message(10, 3));
    let start = world.now;
    assert_eq!(world.outcome(under_way), Outcome::Unknown(Indeterminate::PeerRestarted));
    assert!(world.now.saturating_since(start) < Duration::from_millis(400));
    let rejected = matches!(world.outcome(waiting), Outcome::Rejected(_));
    assert!(!rejected, "one shard accepts messages");
    assert!(is_delivered(&world.ask(message(93_000, 4))));
    world.hosts[dead].inbox.clear();
    assert_eq!(world.hosts[world.taker()].inbox.last().unwrap().bytes, message(93_000, 4));
}

#[test]
fn a_shard_that_closes_leaves_new_clients_to_others() {
    // If two are asked at once, one answers first.
    for closing in [1, 2] {
        let mut world = World::new(2);
        let now = world.now;
        world.hosts[closing].endpoint.close(now);
        assert!(is_delivered(&world.ask(message(10, 1))));
        assert_eq!(world.taker(), 3 - closing);
    }
}

#[test]
fn a_shard_that_was_out_of_reach_for_a_moment_keeps_its_clients() {
    let mut world = World::new(3);
    world.ask(message(10, 1));
    let taker = world.taker();
    for length in [10, 93_000] {
        let id = world.send(0, service(), message(length, 2));
        world.dark = |_| true;
        world.run_for(Duration::from_millis(200));
        world.dark = |_| false;
        assert!(is_delivered(&world.outcome(id)), "it is not indeterminate");
    }
    assert_eq!(world.taker(), taker);
}

#[test]
fn a_shard_that_is_heard_again_is_not_given_up() {
    let mut world = World::new(3);
    world.ask(message(10, 1));
    let taker = world.taker();
    let id = world.send(0, service(), message(4_000_000, 2));
    world.run_for(Duration::from_millis(1));
    world.dark = |_| true;
    world.run_for(Duration::from_secs(1));
    assert_eq!(ports(&world, Kind::Hello).last(), Some(&PORT), "others are asked by now");
    // The path to the shard heals first, so its answer comes before any other.
    world.dark = |port| port == PORT;
    world.run_for(Duration::from_millis(150));
    world.dark = |_| false;
    let hellos = world.hosts[0].endpoint.counters().sender.handshakes_sent;
    assert!(is_delivered(&world.outcome(id)));
    assert_eq!(world.hosts[0].endpoint.counters().sender.handshakes_sent, hellos);
    assert_eq!(world.taker(), taker);
}

#[test]
fn a_stranger_who_got_the_port_of_a_dead_shard_gets_none_of_its_messages() {
    for idle in [0, 60] {
        let mut world = World::new(3);
        world.ask(message(10, 1));
        let dead = world.taker();
        world.kill(dead);
        world.hosts[dead].inbox.clear();
        world.add_at(own_port(dead), false);
        world.run_for(Duration::from_secs(idle));
        let before = world.ask(message(10, 2));
        assert_eq!(is_delivered(&before), idle > 0, "{before:?}");
        assert!(is_delivered(&world.ask(message(10, 3))));
        assert!(world.shards.contains(&world.taker()));
        assert!(world.hosts[4].endpoint.counters().receiver.symbols_received == 0);
    }
}

/// The client's handshake packets that are due.
fn asked(client: &mut Transceiver, now: Instant) -> Vec<(Via, Vec<u8>)> {
    let mut asked = Vec::new();
    let mut packet = Vec::new();
    while let Some(transmit) = client.poll_transmit(now, &mut packet) {
        let packet = core::mem::take(&mut packet);
        if let Ok(Kind::Hello | Kind::Open) = Kind::of(&packet) {
            asked.push((transmit.via, packet));
        }
    }
    asked
}

/// Answers a handshake of the client until it ends, or no more packets come.
fn answer(client: &mut Transceiver, now: Instant, first: &(Via, Vec<u8>), fields: &AcceptFields) {
    let mut next = Some(first.clone());
    while let Some((via, packet)) = next {
        let observed = ([10, 0, 0, 1], 5000).into();
        let (mut answer, keys) =
            answer_by_hand(&KEY, &packet, observed, PathId(0), fields).unwrap();
        client.handle_datagram(now, via, &mut answer);
        next = if keys.is_some() { None } else { asked(client, now).pop() };
    }
}

fn accept(responder: u8, port: u16) -> AcceptFields {
    AcceptFields { port, ..accept_fields(Incarnation([responder; 16])) }
}

#[test]
fn symbols_go_only_to_the_peers_host_whatever_port_it_announces() {
    for (port, more_ports, expected) in
        [(0, 0, PORT), (1, 0, 1), (65_535, 255, 65_535), (PORT, 3, PORT), (5000, 63, 5000)]
    {
        let mut client = client();
        let now = Instant::from_nanos(1_000_000_000);
        let options = SendOptions::default();
        client.send(now, service(), message(93_000, 1), &options).unwrap();
        let hello = asked(&mut client, now).remove(0);
        answer(&mut client, now, &hello, &AcceptFields { more_ports, ..accept(9, port) });
        let mut to = BTreeSet::new();
        let mut buffer = Vec::new();
        while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
            to.insert(transmit.via.remote);
            buffer.clear();
        }
        assert_eq!(to, [SocketAddr::new(service().ip(), expected)].into());
    }
}

#[test]
fn only_the_peer_of_a_session_can_move_it_to_another_address() {
    let mut client = client();
    let mut now = Instant::from_nanos(1_000_000_000);
    let options = SendOptions::default();
    client.send(now, service(), message(10, 1), &options).unwrap();
    let hello = asked(&mut client, now).remove(0);
    answer(&mut client, now, &hello, &accept(9, 40_000));
    let mut next_asked = |client: &mut Transceiver| loop {
        now = client.poll_timeout().unwrap().max(now);
        client.handle_timeout(now);
        let asked = asked(client, now);
        if !asked.is_empty() {
            return (now, asked);
        }
    };
    let (now, again) = next_asked(&mut client);
    assert_eq!(again[0].0.remote.port(), 40_000);
    let late = client.counters().sender.late_answers;
    answer(&mut client, now, &again[0], &accept(8, 666));
    let counters = client.counters().sender;
    assert_eq!((counters.late_answers, counters.sessions_opened), (late + 1, 1));
    let in_use = client.paths(service()).iter().filter(|path| !path.removed);
    assert!(in_use.clone().count() == 4 && in_use.clone().all(|p| p.via.remote.port() == 40_000));
    // The owner may say that it has moved, and that it has forgotten.
    let (now, again) = next_asked(&mut client);
    answer(&mut client, now, &again[0], &accept(9, 40_001));
    assert_eq!(client.counters().sender.sessions_opened, 2);
    let in_use = client.paths(service()).iter().filter(|path| !path.removed);
    assert!(in_use.clone().all(|path| path.via.remote.port() == 40_001));
}

/// The host of the dead one reports that nothing listens at its port, nor at the one that they shared.
#[test]
fn at_the_closed_port_of_a_dead_shard_another_is_asked_within_milliseconds() {
    let mut client = client();
    let mut now = Instant::from_nanos(1_000_000_000);
    let options = SendOptions::default();
    let connect = client.connect(now, service(), &options).unwrap();
    let hello = asked(&mut client, now).remove(0);
    answer(&mut client, now, &hello, &accept(9, 40_000));
    client.cancel_connect(connect);
    now += Duration::from_secs(60);
    client.handle_timeout(now);
    let call = client.prepare(None, b"a request");
    client.call(now, service(), &call, &options).unwrap();
    let began_at = now;
    let mut ports = Vec::new();
    let ended = loop {
        for (via, packet) in asked(&mut client, now) {
            ports.push(via.remote.port());
            client.handle_refused(now, via.remote, &packet[..12]);
            client.check_invariants();
        }
        let mut events = core::iter::from_fn(|| client.poll_event());
        if let Some(Event::Answered(_, ended)) = events.find(|e| matches!(e, Event::Answered(..))) {
            break ended;
        }
        now = client.poll_timeout().unwrap().max(now);
        client.handle_timeout(now);
    };
    let closed = Rejection::PortClosed(service());
    assert_eq!(ended, Err(CallFailure::Rejected(closed)));
    assert!(now.saturating_since(began_at) < Duration::from_millis(20));
    assert!((3..=6).contains(&ports.iter().filter(|port| **port == 40_000).count()), "{ports:?}");
    assert!(ports.is_sorted_by_key(|port| *port == PORT), "{ports:?}");
}

#[test]
fn without_shared_ports_no_port_is_announced() {
    for (is_shared, expected) in [(false, 0), (true, 9000)] {
        let ports = ListenPorts { is_shared, ..ListenPorts::one(9000) };
        let mut responder = endpoint(1, 1, Config::default(), ports);
        let now = Instant::from_nanos(1_000_000_000);
        let via = Via { egress: 0, local: None, remote: ([10, 0, 0, 1], 5000).into() };
        let (accepted, _) =
            shake_hands(&KEY, 1, &open_fields(Incarnation([1; 16])), |mut packet| {
                responder.handle_datagram(now, via, &mut packet);
                packet.clear();
                responder.poll_transmit(now, &mut packet).unwrap();
                packet
            });
        assert_eq!(accepted.port, expected);
    }
}

#[test]
fn a_shard_that_closes_hands_its_clients_over_once_it_has_finished() {
    for rounds in 0..10 {
        let mut world = World::new(2);
        world.ask(message(10, 1));
        let old = world.taker();
        let new = 3 - old;
        let under_way = world.send(0, service(), message(300_000, 2));
        world.run_for(Duration::from_micros(500));
        let now = world.now;
        world.hosts[old].endpoint.close(now);
        let start = world.now;
        // What is refused, and what waits for the end of the first message.
        let moved: Vec<_> = (0..5 * rounds + 1)
            .map(|seed| {
                world.run_for(Duration::from_micros(300));
                world.send(0, service(), message(100, 10 + seed))
            })
            .collect();
        assert!(is_delivered(&world.outcome(under_way)));
        for id in &moved {
            assert!(is_delivered(&world.outcome(*id)), "{id}");
        }
        assert!(world.now.saturating_since(start) < Duration::from_millis(60));
        let taken = |host: usize| world.hosts[host].inbox.len();
        assert_eq!((taken(old), taken(new)), (2, moved.len()));
        let asked = ports(&world, Kind::Hello);
        assert!(asked.iter().all(|&port| port == PORT), "nobody looks for the old one: {asked:?}");
    }
}

#[test]
fn a_closing_shard_without_a_successor_costs_certainly_undelivered_messages() {
    let mut world = World::new(1);
    world.ask(message(10, 1));
    let now = world.now;
    world.hosts[1].endpoint.close(now);
    for seed in 2..4 {
        let outcome = world.ask(message(10, seed));
        assert!(matches!(outcome, Outcome::Rejected(Rejection::NoAnswer)), "{outcome:?}");
    }
}

#[test]
fn clients_of_a_shard_that_has_stopped_ask_the_others_at_once() {
    let mut world = World::new(2);
    world.ask(message(10, 1));
    let old = world.taker();
    let now = world.now;
    world.hosts[old].endpoint.stop(now);
    world.run_for(Duration::from_millis(1));
    let start = world.now;
    assert!(is_delivered(&world.ask(message(10, 2))));
    assert!(world.now.saturating_since(start) < Duration::from_millis(2));
    assert_eq!(world.hosts[3 - old].inbox.len(), 1);
}
