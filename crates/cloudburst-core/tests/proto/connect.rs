//! Connecting opens a session before the first message.

use crate::common::peer::endpoint;
use crate::common::{KEY, Pair, Setup, Side, message};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::error::{LocalError, Outcome, Rejection, StartError};
use cloudburst_core::id::ConnectId;
use cloudburst_core::path::Via;
use cloudburst_core::proto::{Event, SendOptions, Transceiver};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::handshake::{Hello, HelloKey, Versions};
use cloudburst_core::wire::packet::VERSION;
use core::time::Duration;
use std::net::SocketAddr;

const SECOND: Duration = Duration::from_secs(1);
/// The delay of the links, without transmission times.
const ROUND_TRIP: Duration = Duration::from_micros(100);

fn within(deadline: Option<Duration>) -> SendOptions {
    let options = SendOptions::default();
    deadline.map_or(options, |deadline| options.deadline(deadline))
}

fn connect(pair: &mut Pair, deadline: Option<Duration>) -> ConnectId {
    pair.a.endpoint.connect(pair.now, Side::B.address(0), &within(deadline)).unwrap()
}

/// Runs until A's connect `id` has ended, and returns how.
fn ended(pair: &mut Pair, id: ConnectId) -> Result<(), Rejection> {
    pair.run(|pair| {
        pair.a.endpoint.check_invariants();
        pair.a.connects.contains_key(&id)
    });
    pair.a.connects[&id]
}

fn hellos(pair: &Pair) -> u64 {
    pair.a.counters().sender.handshakes_sent
}

fn set_down(pair: &mut Pair, down: bool) {
    (0..4).for_each(|path| pair.set_down(path, down));
}

#[test]
fn the_first_message_after_a_connect_takes_one_round_trip_and_waits_for_nothing() {
    let mut pair = Pair::new(Setup::default());
    let start = pair.now;
    let id = connect(&mut pair, None);
    assert_eq!(ended(&mut pair, id), Ok(()));
    let took = pair.now.saturating_since(start);
    // HELLO, OPEN, and the packet that confirms the session.
    assert!(took >= 3 * ROUND_TRIP && took < 4 * ROUND_TRIP, "{took:?}");
    let sender = pair.a.counters().sender;
    assert_eq!((sender.sessions_opened, sender.symbols_sent), (1, 0));
    assert_eq!(pair.a.endpoint.unfinished(), 0);

    let receipt = pair.deliver(message(1_000, 1));
    assert_eq!(receipt.waited, Duration::ZERO);
    assert!(receipt.completed_in < 2 * ROUND_TRIP, "{receipt:?}");
    assert_eq!(hellos(&pair), sender.handshakes_sent);
}

#[test]
fn a_handshake_is_the_same_with_connects_messages_or_both() {
    let packets = |connects: usize, messages: u64| {
        let mut pair = Pair::new(Setup::default());
        pair.tap = Some(Vec::new());
        let ids: Vec<_> = (0..connects).map(|_| connect(&mut pair, None)).collect();
        for seed in 0..messages {
            pair.send(message(10, seed));
        }
        pair.settle();
        assert!(ids.iter().all(|id| pair.a.connects[id] == Ok(())));
        assert_eq!(pair.a.delivered() as u64, messages);
        assert_eq!(pair.a.counters().sender.sessions_opened, 1);
        let hellos = hellos(&pair) as usize;
        let sent = pair.tap.unwrap().into_iter().filter(|(side, ..)| *side == Side::A);
        // Both HELLOs and the OPEN. Connects confirm the session after that.
        assert!(hellos >= 3, "{hellos}");
        sent.take(3).collect::<Vec<_>>()
    };
    let expected = packets(0, 1);
    for (connects, messages) in [(1, 0), (2, 0), (1, 1), (3, 2)] {
        assert_eq!(packets(connects, messages), expected);
    }
}

#[test]
fn a_connect_joins_the_handshake_of_messages_that_wait() {
    let mut pair = Pair::new(Setup::default());
    set_down(&mut pair, true);
    let waiting = pair.send(message(10, 1));
    pair.run_for(SECOND);
    let id = connect(&mut pair, None);
    pair.run_for(SECOND);
    assert!(pair.a.connects.is_empty());
    set_down(&mut pair, false);
    assert_eq!(ended(&mut pair, id), Ok(()));
    assert!(matches!(pair.outcome(waiting), Outcome::Delivered(_)));
    assert_eq!(pair.a.counters().sender.sessions_opened, 1);
}

/// Whether A has nothing more to do than to forget the peer.
fn only_forgets(pair: &Pair) -> bool {
    pair.a.endpoint.poll_timeout().is_some_and(|at| at > pair.now + 300 * SECOND)
}

#[test]
fn a_connect_to_nobody_fails_at_its_deadline_and_leaves_no_state() {
    let mut pair = Pair::new(Setup::default());
    set_down(&mut pair, true);
    for deadline in [Some(SECOND), None] {
        let start = pair.now;
        let id = connect(&mut pair, deadline);
        assert_eq!(ended(&mut pair, id), Err(Rejection::NoAnswer));
        let took = pair.now.saturating_since(start);
        assert_eq!(took, deadline.unwrap_or(Config::default().deadline));
        assert_eq!(pair.a.endpoint.unfinished(), 0);
        let asked = hellos(&pair);
        pair.run_for(SECOND);
        assert!(hellos(&pair) <= asked + 1, "no caller needs the answer any more");
        assert!(only_forgets(&pair));
    }
    let peers = pair.a.endpoint.peers();
    assert_eq!((peers[0].sent.unfinished, peers[0].sent.rejected), (0, 0), "it is no message");
}

#[test]
fn a_connect_whose_packets_do_not_leave_this_host_blames_it() {
    let mut now = Instant::from_nanos(1);
    let mut buffer = Vec::new();
    let mut endpoint = endpoint(Config::default());
    let id = endpoint.connect(now, Side::B.address(0), &SendOptions::default()).unwrap();
    loop {
        while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
            endpoint.not_sent(&transmit, LocalError::Denied);
            buffer.clear();
        }
        if let Some(event) = endpoint.poll_event() {
            let local = Rejection::Local(LocalError::Denied);
            return assert_eq!(event, Event::Connected(id, Err(local)));
        }
        now = now.max(endpoint.poll_timeout().unwrap());
        endpoint.handle_timeout(now);
    }
}

#[test]
fn a_peer_that_speaks_another_version_is_named_to_connects_and_to_messages() {
    let mut now = Instant::from_nanos(1_000_000_000);
    let mut packet = Vec::new();
    let mut endpoint = endpoint(Config::default());
    let peer = Side::B.address(0);
    let id = endpoint.connect(now, peer, &within(Some(SECOND))).unwrap();
    let options = SendOptions::default().deadline(2 * SECOND);
    let message = endpoint.send(now, peer, message(10, 1), &options).unwrap();
    let transmit = endpoint.poll_transmit(now, &mut packet).unwrap();
    let keys = [HelloKey::new(&KEY)];
    let (_, hello) = Hello::parse(&keys, &packet).unwrap().unwrap();
    packet.clear();
    let theirs = VERSION + 1;
    let versions = [theirs].into_iter().collect();
    Versions { nonce: hello.nonce, versions }.write(&keys[0], &mut packet);
    endpoint.handle_datagram(now, transmit.via, &mut packet);
    let mut events = Vec::new();
    while endpoint.unfinished() > 0 {
        packet.clear();
        while endpoint.poll_transmit(now, &mut packet).is_some() {
            packet.clear();
        }
        now = now.max(endpoint.poll_timeout().unwrap());
        endpoint.handle_timeout(now);
        events.extend(endpoint.poll_event());
    }
    let other = Rejection::OtherVersion { ours: VERSION, theirs };
    let ended = Event::Ended(message, Outcome::Rejected(other));
    assert_eq!(events, [Event::Connected(id, Err(other)), ended]);
}

#[test]
fn a_session_that_was_heard_lately_is_there_at_once() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.run_for(29 * SECOND);
    let asked = hellos(&pair);
    let id = connect(&mut pair, None);
    assert_eq!(pair.a.endpoint.poll_event(), Some(Event::Connected(id, Ok(()))));
    pair.a.endpoint.check_invariants();
    pair.run_for(SECOND);
    assert_eq!((hellos(&pair), pair.a.endpoint.unfinished()), (asked, 0));
}

#[test]
fn a_session_that_its_peer_opened_is_there_at_once() {
    let mut pair = Pair::new(Setup::default());
    let id = pair.send_from(Side::B, message(10, 1), SendOptions::default());
    pair.run(|pair| pair.b.outcomes.contains_key(&id));
    let id = connect(&mut pair, None);
    assert_eq!(pair.a.endpoint.poll_event(), Some(Event::Connected(id, Ok(()))));
    assert_eq!(hellos(&pair), 0);
}

#[test]
fn a_handshake_that_the_peer_begins_ends_a_connect() {
    let mut pair = Pair::new(Setup::default());
    let now = pair.now;
    let mut buffer = Vec::new();
    let id = connect(&mut pair, None);
    // The first HELLOs are lost.
    while pair.a.endpoint.poll_transmit(now, &mut buffer).is_some() {
        buffer.clear();
    }
    pair.send_from(Side::B, message(10, 1), SendOptions::default());
    assert_eq!(ended(&mut pair, id), Ok(()));
    assert!(pair.now.saturating_since(now) < 3 * ROUND_TRIP, "before the next ones are due");
    pair.settle();
    assert_eq!(pair.a.inbox.len(), 1);
}

#[test]
fn a_stale_session_is_checked_before_use() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.run_for(31 * SECOND);
    let asked = hellos(&pair);
    let start = pair.now;
    let id = connect(&mut pair, None);
    assert_eq!(pair.a.endpoint.poll_event(), None);
    assert_eq!(ended(&mut pair, id), Ok(()));
    let took = pair.now.saturating_since(start);
    assert!(took >= ROUND_TRIP && took < 2 * ROUND_TRIP, "{took:?}");
    assert!(hellos(&pair) > asked);
    assert_eq!(pair.a.counters().sender.sessions_opened, 1, "it was alive");

    // The peer restarts, so no answer can confirm the session.
    pair.restart(Side::B);
    pair.run_for(31 * SECOND);
    let id = connect(&mut pair, None);
    assert_eq!(ended(&mut pair, id), Ok(()));
    assert_eq!(pair.a.counters().sender.sessions_opened, 2);
    assert_eq!(pair.deliver(message(10, 1)).waited, Duration::ZERO);
}

#[test]
fn a_session_without_a_message_lasts_as_long_as_any() {
    for (idle, hellos_more) in [(29, 0), (31, 2), (150, 2)] {
        let mut pair = Pair::new(Setup::default());
        let id = connect(&mut pair, None);
        assert_eq!(ended(&mut pair, id), Ok(()));
        let before = hellos(&pair);
        pair.run_for(idle * SECOND);
        let receipt = pair.deliver(message(10, 1));
        assert_eq!(hellos(&pair) - before, hellos_more, "after {idle} s");
        assert!(receipt.waited < 2 * ROUND_TRIP, "{receipt:?}");
        assert_eq!(pair.a.counters().sender.sessions_opened, 1);
    }
}

#[test]
fn connecting_again_keeps_a_session_that_has_had_no_message() {
    let mut pair = Pair::new(Setup::default());
    for idle in [0, 6, 29, 31, 100] {
        pair.run_for(idle * SECOND);
        let id = connect(&mut pair, None);
        assert_eq!(ended(&mut pair, id), Ok(()));
    }
    assert_eq!(pair.a.counters().sender.sessions_opened, 1);
    assert_eq!(pair.deliver(message(10, 1)).waited, Duration::ZERO);
}

#[test]
fn a_message_waits_for_a_long_unresponsive_peer_until_its_deadline() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    set_down(&mut pair, true);
    let unheard = pair.send(message(10, 1));
    pair.run_for(SECOND);
    let late = connect(&mut pair, Some(SECOND));
    assert_eq!(ended(&mut pair, late), Err(Rejection::NoAnswer));
    let id = connect(&mut pair, None);
    pair.run_for(SECOND);
    assert_eq!(pair.a.connects.len(), 1);
    // Without the message, the connect keeps asking.
    pair.a.endpoint.cancel(unheard);
    let asked = hellos(&pair);
    pair.run_for(SECOND);
    assert!(hellos(&pair) > asked);
    set_down(&mut pair, false);
    assert_eq!(ended(&mut pair, id), Ok(()));
    pair.deliver(message(10, 2));
}

#[test]
fn each_connect_has_a_deadline_of_its_own() {
    let mut pair = Pair::new(Setup::default());
    set_down(&mut pair, true);
    let start = pair.now;
    let [short, long, longer] = [1, 2, 30].map(|n| connect(&mut pair, Some(n * SECOND)));
    for (id, end) in [(short, SECOND), (long, 2 * SECOND)] {
        assert_eq!(ended(&mut pair, id), Err(Rejection::NoAnswer));
        assert_eq!(pair.now.saturating_since(start), end);
    }
    assert_eq!(pair.a.endpoint.unfinished(), 1);
    set_down(&mut pair, false);
    assert_eq!(ended(&mut pair, longer), Ok(()));
}

#[test]
fn a_cancelled_connect_is_forgotten() {
    let mut pair = Pair::new(Setup::default());
    set_down(&mut pair, true);
    let [id, other] = [(); 2].map(|()| connect(&mut pair, None));
    pair.run_for(SECOND);
    pair.a.endpoint.cancel_connect(id);
    assert_eq!(ended(&mut pair, id), Err(Rejection::Cancelled));
    let asked = hellos(&pair);
    pair.run_for(SECOND);
    assert!(hellos(&pair) > asked, "another one waits");
    pair.a.endpoint.cancel_connect(other);
    pair.a.endpoint.cancel_connect(id);
    assert_eq!(ended(&mut pair, other), Err(Rejection::Cancelled));
    let asked = hellos(&pair);
    pair.run_for(SECOND);
    assert!(hellos(&pair) <= asked + 1);
    assert_eq!(pair.a.endpoint.unfinished(), 0);
    assert!(only_forgets(&pair));
}

#[test]
fn a_connect_takes_the_capacity_of_a_message_and_keeps_its_peer() {
    let a = Config {
        tuning: Tuning { send_messages: Some(2), max_peers: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let mut pair = Pair::new(Setup { a, ..Setup::default() });
    let nobody = SocketAddr::from(([11, 0, 0, 1], 9));
    pair.a.endpoint.connect(pair.now, nobody, &within(Some(SECOND))).unwrap();
    let now = pair.now;
    let to = Side::B.address(0);
    let no_room = Err(StartError::Full { messages: 1, bytes: 0 });
    let options = SendOptions::default().wait(false);
    assert_eq!(pair.a.endpoint.connect(now, to, &options), no_room, "for another peer");
    pair.a.endpoint.connect(now, nobody, &within(Some(SECOND))).unwrap();
    let full = StartError::Full { messages: 2, bytes: 0 };
    assert_eq!(pair.a.endpoint.connect(now, nobody, &options), Err(full.clone()));
    assert_eq!(pair.a.endpoint.send(now, nobody, message(1, 1), &options), Err(full));
    pair.settle();
    pair.deliver(message(10, 1));
}

#[test]
fn a_closing_endpoint_refuses_connects_and_goes_on_with_those_under_way() {
    let mut pair = Pair::new(Setup::default());
    let id = connect(&mut pair, None);
    pair.a.endpoint.close(pair.now);
    let refused = pair.a.endpoint.connect(pair.now, Side::B.address(0), &SendOptions::default());
    assert_eq!(refused, Err(StartError::Closing));
    assert_eq!(pair.a.endpoint.unfinished(), 1);
    assert_eq!(ended(&mut pair, id), Ok(()));
}

/// Hands `endpoint` all of its own packets, until it sends no more.
fn run_alone(endpoint: &mut Transceiver, now: Instant, own: SocketAddr) {
    let mut buffer = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
        for packet in core::mem::take(&mut buffer).chunks_mut(transmit.segment_size) {
            endpoint.handle_datagram(now, Via { egress: 0, local: None, remote: own }, packet);
            endpoint.check_invariants();
        }
    }
}

#[test]
fn an_endpoint_connects_to_itself() {
    let now = Instant::from_nanos(1_000_000_000);
    let own = Side::A.address(0);
    let mut endpoint = endpoint(Config::default());
    let id = endpoint.connect(now, own, &SendOptions::default()).unwrap();
    run_alone(&mut endpoint, now, own);
    assert_eq!(endpoint.poll_event(), Some(Event::Connected(id, Ok(()))));
    endpoint.send(now, own, message(10, 1), &SendOptions::default()).unwrap();
    run_alone(&mut endpoint, now, own);
    assert_eq!(endpoint.recv().unwrap().bytes, message(10, 1));
    assert_eq!(endpoint.unfinished(), 0);
}
