//! Peers whose addresses change: calls and messages go on, and nobody else can divert them.

mod net;

use self::net::{DELAY, Datagram, Nat, Net, ROUND_TRIP, at, ip};
use core::time::Duration;
use std::cell::Cell;
use std::rc::Rc;

/// Caller 0 at address 1 and callee 1 at address 2, with a session.
fn pair() -> Net {
    let mut net = Net::new(&[&[ip(1)], &[ip(2)]]);
    for _ in 0..3 {
        net.converse(0, at(2), 1);
    }
    net
}

/// A check of two addresses, and what was lost is sent again.
const SOON: Duration = Duration::from_millis(16);

#[test]
fn a_caller_that_moves_while_its_request_is_served_gets_its_response() {
    for len in [100, 20_000] {
        let mut net = pair();
        let call = net.call(0, at(2), 100);
        net.run(Duration::from_millis(500));
        net.ends[0].move_to(&[ip(9)]);
        let now = net.now;
        net.ends[0].host.announce(now);
        net.run(Duration::from_millis(100));
        assert_eq!(net.reply(1, len), at(1), "the name stays");
        assert!(net.until_answered(0, call) <= SOON);
        assert!(net.converse(0, at(2), 1) <= SOON);
        net.run(Duration::from_secs(1));
        assert_eq!(net.ends[1].host.unfinished(), 0, "the caller has confirmed all responses");
    }
}

#[test]
fn a_response_under_way_reaches_a_caller_that_moves_and_notices_nothing() {
    let mut net = pair();
    net.call(0, at(2), 100);
    net.run(Duration::from_millis(10));
    net.ends[0].move_to(&[ip(9)]);
    net.reply(1, 20_000);
    net.run(Duration::from_millis(400));
    // Its next call is the first that the callee hears of it.
    let began_at = net.now;
    let other = net.call(0, at(2), 100);
    net.run_until(began_at + 50 * SOON, |net| net.ends[0].answers.len() == 4);
    let took = net.now.saturating_since(began_at);
    assert!(took <= SOON, "the old response arrives, too: after {took:?}");
    net.run(DELAY);
    net.reply(1, 100);
    assert!(net.until_answered(0, other) <= SOON);
}

#[test]
fn a_callee_that_moves_is_called_under_its_name() {
    for notices in [true, false] {
        let mut net = pair();
        let call = net.call(0, at(2), 100);
        net.run(Duration::from_millis(10));
        net.ends[1].move_to(&[ip(8)]);
        let now = net.now;
        if notices {
            net.ends[1].host.announce(now);
        }
        net.reply(1, 20_000);
        assert!(net.until_answered(0, call) <= SOON);
        for _ in 0..3 {
            assert!(net.converse(0, at(2), 1) <= SOON);
        }
        assert!(net.ends[0].answers.values().all(|(_, result)| result.is_ok()));
    }
}

#[test]
fn messages_in_both_directions_go_on_when_either_end_moves() {
    for mover in [0, 1] {
        let mut net = pair();
        let forth = net.send_message(0, at(2), 400_000);
        let back = net.send_message(1, at(1), 400_000);
        net.run(Duration::from_micros(2_500));
        assert!(!net.is_delivered(0, forth) && !net.is_delivered(1, back));
        net.ends[mover].move_to(&[ip(9)]);
        let began_at = net.now;
        net.run_until(began_at + Duration::from_secs(10), |net| {
            net.is_delivered(0, forth) && net.is_delivered(1, back)
        });
        let took = net.now.saturating_since(began_at);
        assert!(took < Duration::from_millis(200), "{mover}: {took:?}");
    }
}

#[test]
fn a_receiver_of_messages_alone_shows_its_sender_where_it_is() {
    let mut net = Net::new(&[&[ip(1)], &[ip(2)]]);
    let first = net.send_message(0, at(2), 100);
    net.run(Duration::from_millis(100));
    assert!(net.is_delivered(0, first));
    let second = net.send_message(0, at(2), 1_000_000);
    net.run(DELAY * 2);
    net.ends[1].move_to(&[ip(9)]);
    let now = net.now;
    net.ends[1].host.announce(now);
    net.run(Duration::from_millis(300));
    assert!(net.is_delivered(0, second));
}

#[test]
fn both_ends_may_move_one_after_the_other_and_return() {
    let mut net = pair();
    for (end, address) in [(0, 9), (1, 8), (0, 1), (1, 7), (0, 6), (1, 2)] {
        net.ends[end].move_to(&[ip(address)]);
        let now = net.now;
        net.ends[end].host.announce(now);
        net.run(Duration::from_secs(3));
        let took = net.converse(0, at(2), 1);
        assert!(took <= SOON, "{end} to {address}: {took:?}");
    }
}

#[test]
fn a_peer_with_several_addresses_stays_where_it_is() {
    let mut net = Net::new(&[&[ip(1), ip(3)], &[ip(2)]]);
    net.ends[0].alternates = true;
    for round in 0..50 {
        net.converse(0, at(2), 1);
        net.run(Duration::from_millis(60 * (round % 3)));
    }
    net.sent_to.clear();
    let message = net.send_message(1, net.ends[1].host.peers()[0].peer, 100_000);
    net.run(Duration::from_millis(200));
    assert!(net.is_delivered(1, message));
    let home = net.sent_to[&ip(1)].max(net.sent_to.get(&ip(3)).copied().unwrap_or(0));
    let all = net.sent_to[&ip(1)] + net.sent_to.get(&ip(3)).copied().unwrap_or(0);
    assert!(home * 20 > all * 19, "messages go to one of them: {:?}", net.sent_to);
}

/// Has copies of all packets of host 0 arrive from address 66 after `delay`, and the true ones after
/// [`DELAY`], unless `stops`. Packets to address 66 reach host 0.
fn forward(net: &mut Net, delay: Duration, stops: &Rc<Cell<bool>>) {
    let stops = stops.clone();
    net.on_the_way = Box::new(move |_, datagram| {
        let mut arrive = Vec::new();
        if datagram.from.ip() == ip(1) {
            let from = (ip(66), datagram.from.port()).into();
            arrive.push((delay, Datagram { from, ..datagram.clone() }));
        }
        if datagram.to.ip() == ip(66) {
            let to = (ip(1), datagram.to.port()).into();
            arrive.push((DELAY, Datagram { to, ..datagram.clone() }));
        }
        if !(stops.get() && (datagram.from.ip() == ip(1) || datagram.to.ip() == ip(1))) {
            arrive.push((DELAY, datagram));
        }
        arrive
    });
}

/// Sends a message to host 0, of which next to nothing may go to address 66.
fn assert_nothing_is_diverted(net: &mut Net) {
    net.sent_to.clear();
    let message = net.send_message(1, at(1), 100_000);
    net.run(Duration::from_millis(200));
    assert!(net.is_delivered(1, message));
    let diverted = net.sent_to.get(&ip(66)).copied().unwrap_or(0);
    assert!(diverted < 1_000, "{:?}", net.sent_to);
}

#[test]
fn who_forwards_packets_from_elsewhere_diverts_nothing() {
    let mut net = pair();
    let stops = Rc::new(Cell::new(false));
    forward(&mut net, DELAY / 2, &stops);
    for _ in 0..20 {
        net.converse(0, at(2), 1);
        net.run(Duration::from_millis(150));
    }
    assert_nothing_is_diverted(&mut net);
}

#[test]
fn who_has_stopped_a_peers_packets_for_a_while_loses_it_when_they_arrive_again() {
    let mut net = pair();
    let stops = Rc::new(Cell::new(true));
    forward(&mut net, DELAY / 2, &stops);
    for _ in 0..5 {
        net.converse(0, at(2), 1);
    }
    let diverted = net.send_message(1, at(1), 100_000);
    net.run(Duration::from_secs(3));
    assert!(net.is_delivered(1, diverted) && net.sent_to[&ip(66)] > 100_000);
    // It still forwards everything, but the true packets arrive first.
    forward(&mut net, DELAY * 2, &Rc::default());
    for _ in 0..5 {
        net.converse(0, at(2), 1);
        net.run(Duration::from_secs(1));
    }
    assert_nothing_is_diverted(&mut net);
}

#[test]
fn an_address_that_is_not_validated_gets_at_most_three_times_what_came_from_it() {
    let mut net = pair();
    net.sent_to.clear();
    let forwarded = Rc::new(Cell::new(0));
    let counts = forwarded.clone();
    // A third party forwards packets from 66, and nothing that is sent there arrives.
    net.on_the_way = Box::new(move |_, datagram| {
        if datagram.from.ip() != ip(1) {
            return vec![(DELAY, datagram)];
        }
        counts.set(counts.get() + datagram.bytes.len());
        vec![(DELAY, Datagram { from: (ip(66), datagram.from.port()).into(), ..datagram })]
    });
    net.send_message(1, at(1), 100_000);
    for len in [100, 1_000, 50_000] {
        net.send_message(0, at(2), len);
    }
    net.run(Duration::from_secs(20));
    let sent = net.sent_to.get(&ip(66)).copied().unwrap_or(0);
    assert!(sent > 0 && sent <= 3 * forwarded.get(), "{sent} for {}", forwarded.get());
}

#[test]
fn an_endpoint_that_takes_over_an_address_gets_nothing_meant_for_the_one_that_moved() {
    let mut net = pair();
    let call = net.call(0, at(2), 100);
    net.run(Duration::from_millis(10));
    net.ends[0].move_to(&[ip(9)]);
    let now = net.now;
    net.ends[0].host.announce(now);
    net.run(Duration::from_millis(100));
    let other = net.add(&[ip(1)]);
    let others = net.call(other, at(2), 100);
    net.run(Duration::from_millis(100));
    // The first request is that of the one that has moved.
    assert_eq!(net.reply(1, 20_000), at(1));
    let name = net.reply(1, 100);
    assert_ne!(name, at(1), "the other needs a name of its own");
    net.until_answered(0, call);
    net.until_answered(other, others);
    let sizes = |host: usize| {
        let results = net.ends[host].answers.values();
        results.map(|(_, result)| result.unwrap()).collect::<Vec<_>>()
    };
    assert!(sizes(0).contains(&20_000));
    assert_eq!(sizes(other), [100]);
    let message = net.send_message(1, name, 5_000);
    net.run(Duration::from_millis(100));
    assert!(net.is_delivered(1, message));
    assert_eq!(net.ends[other].host.queued().count(), 1);
    assert_eq!(net.ends[0].host.queued().count(), 0);
}

#[test]
fn who_is_gone_after_it_has_moved_is_looked_for_at_its_name() {
    let mut net = pair();
    net.ends[1].move_to(&[ip(8)]);
    let now = net.now;
    net.ends[1].host.announce(now);
    net.run(Duration::from_millis(100));
    assert!(net.converse(0, at(2), 1) <= SOON);
    // Its machine starts again, where it was at first.
    net.ends[1].move_to(&[]);
    let successor = net.add(&[ip(2)]);
    let message = net.send_message(0, at(2), 100);
    net.run(Duration::from_secs(5));
    assert_eq!(net.ends[successor].host.queued().count(), 0, "it may have been delivered before");
    assert!(!net.is_delivered(0, message));
    let message = net.send_message(0, at(2), 100);
    net.run(Duration::from_secs(5));
    assert!(net.is_delivered(0, message));
    assert_eq!(net.ends[successor].host.queued().count(), 1);
}

#[test]
fn calls_go_on_when_a_translator_forgets_its_ports_or_has_another_address() {
    for public in [50, 51] {
        let mut net = Net::new(&[&[ip(1)], &[ip(2)]]);
        net.ends[0].nat = Some(Nat::new(ip(50)));
        for _ in 0..3 {
            net.converse(0, at(2), 1);
        }
        let call = net.call(0, at(2), 100);
        net.run(Duration::from_millis(10));
        let nat = net.ends[0].nat.as_mut().unwrap();
        nat.ports.clear();
        nat.public = ip(public);
        net.reply(1, 20_000);
        net.run(Duration::from_millis(200));
        let began_at = net.now;
        net.call(0, at(2), 100);
        let until = began_at + Duration::from_secs(10);
        net.run_until(until, |net| net.ends[0].answers.contains_key(&call));
        let took = net.now.saturating_since(began_at);
        assert!(took <= 4 * SOON, "{public}: {took:?}");
        net.run(DELAY * 2);
        net.reply(1, 100);
        net.run(SOON);
        assert_eq!(net.ends[0].answers.len(), 5);
    }
}

#[test]
fn a_peer_behind_a_translator_is_remembered_while_it_sends() {
    let mut net = Net::new(&[&[ip(1)], &[ip(2)]]);
    net.ends[0].nat = Some(Nat::new(ip(50)));
    net.converse(0, at(2), 1);
    let peers = |net: &Net| net.ends[1].host.peers().len();
    assert_eq!(peers(&net), 1);
    for _ in 0..10 {
        let message = net.send_message(0, at(2), 100);
        net.run(Duration::from_secs(200));
        assert!(net.is_delivered(0, message));
    }
    assert!(net.converse(0, at(2), 1) <= SOON);
    net.run(Duration::from_secs(1_210));
    assert_eq!(peers(&net), 0);
}

#[test]
fn a_caller_may_move_behind_a_translator_and_out_of_it() {
    let mut net = pair();
    // The second time, it was there just before, which its packets alone do not tell from several
    // addresses in use.
    for (behind, soon) in [(true, SOON), (false, SOON), (true, 6 * SOON)] {
        let call = net.call(0, at(2), 100);
        net.run(Duration::from_millis(10));
        net.ends[0].nat = behind.then(|| Nat::new(ip(50)));
        net.ends[0].move_to(&[if behind { ip(33) } else { ip(1) }]);
        let now = net.now;
        net.ends[0].host.announce(now);
        net.run(Duration::from_secs(3));
        net.reply(1, 20_000);
        assert!(net.until_answered(0, call) <= soon);
        assert!(net.converse(0, at(2), 1) <= SOON);
    }
}

#[test]
fn a_new_handshake_of_a_caller_that_has_moved_brings_it_what_was_under_way() {
    let mut net = pair();
    let call = net.call(0, at(2), 100);
    net.run(Duration::from_millis(10));
    net.ends[0].move_to(&[ip(9)]);
    net.reply(1, 20_000);
    net.run(Duration::from_millis(200));
    // It opens another session, to another address of the callee.
    net.ends[1].move_to(&[ip(2), ip(3)]);
    let began_at = net.now;
    net.send_message(0, at(3), 100);
    net.run_until(began_at + Duration::from_secs(5), |net| net.ends[0].answers.contains_key(&call));
    let took = net.now.saturating_since(began_at);
    assert!(took <= 2 * SOON, "{took:?}");
    assert!(ROUND_TRIP < took);
}
