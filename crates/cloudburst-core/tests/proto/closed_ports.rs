//! Ports at which nothing listens, and hosts that say so by ICMP.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::error::{CallFailure, Indeterminate, Outcome, Rejection};
use cloudburst_core::proto::{CallId, SendOptions};
use core::time::Duration;
use std::net::SocketAddr;

const MILLISECOND: Duration = Duration::from_millis(1);
/// The time after which a refusal arrives.
const ROUND_TRIP: Duration = Duration::from_micros(100);
/// As many bytes as are quoted at least for a packet to be identified.
const QUOTED: usize = 12;

fn port() -> SocketAddr {
    Side::B.address(0)
}

fn set_closed(pair: &mut Pair, closed: bool) {
    (0..4).for_each(|path| pair.set_down(path, closed));
}

fn call(pair: &mut Pair) -> CallId {
    let call = pair.a.endpoint.prepare(None, b"a request");
    pair.a.endpoint.call(pair.now, port(), &call, &SendOptions::default()).unwrap();
    call.id()
}

/// Runs for `time`. `report` makes of each packet of A what an ICMP message says: where it was sent, and its
/// first bytes.
fn report(
    pair: &mut Pair,
    time: Duration,
    mut report: impl FnMut(SocketAddr, &[u8]) -> Option<(SocketAddr, Vec<u8>)>,
) {
    let until = pair.now + time;
    while pair.now < until {
        pair.tap = Some(Vec::new());
        pair.run_for(ROUND_TRIP);
        let sent = pair.tap.take().unwrap();
        for (_, via, packet) in sent.iter().filter(|(side, ..)| *side == Side::A) {
            if let Some((to, quoted)) = report(via.remote, packet) {
                pair.a.endpoint.handle_refused(pair.now, to, &quoted);
                pair.a.endpoint.check_invariants();
            }
        }
        pair.drain();
    }
}

/// Runs for `time` while B's port is closed.
fn refuse(pair: &mut Pair, time: Duration) {
    report(pair, time, |to, packet| Some((to, packet[..QUOTED].to_vec())));
}

fn handshakes(pair: &Pair) -> u64 {
    pair.a.counters().sender.handshakes_sent
}

#[test]
fn calls_and_connects_to_a_closed_port_end_within_milliseconds() {
    let mut pair = Pair::new(Setup::default());
    set_closed(&mut pair, true);
    let options = SendOptions::default();
    for longest in [8, 1] {
        let before = handshakes(&pair);
        let calls: Vec<_> = (0..100).map(|_| call(&mut pair)).collect();
        let connect = pair.a.endpoint.connect(pair.now, port(), &options).unwrap();
        refuse(&mut pair, longest * MILLISECOND);
        let closed = Rejection::PortClosed(port());
        for call in calls {
            assert_eq!(pair.a.answers[&call], Err(CallFailure::Rejected(closed)));
        }
        assert_eq!(pair.a.connects[&connect], Err(closed));
        assert!(handshakes(&pair) - before <= 6, "no more than a host reports at once");
        let after = handshakes(&pair);
        refuse(&mut pair, Duration::from_secs(1));
        assert_eq!(handshakes(&pair), after, "nothing waits any more");
    }
    set_closed(&mut pair, false);
    call(&mut pair);
    pair.run_for(10 * MILLISECOND);
    assert_eq!(pair.b.requests.len(), 1);
}

#[test]
fn calls_that_wait_in_line_end_with_the_others() {
    let mut pair = Pair::new(Setup::default());
    set_closed(&mut pair, true);
    let calls: Vec<_> = (0..2_000).map(|_| call(&mut pair)).collect();
    refuse(&mut pair, 8 * MILLISECOND);
    assert!(calls.iter().all(|call| pair.a.answers.contains_key(call)));
}

#[test]
fn a_message_waits_for_a_closed_port_to_open_and_calls_do_not() {
    let mut pair = Pair::new(Setup::default());
    set_closed(&mut pair, true);
    let sent = pair.send(message(5_000, 1));
    let first = call(&mut pair);
    refuse(&mut pair, Duration::from_secs(1));
    let second = call(&mut pair);
    refuse(&mut pair, Duration::from_secs(1));
    assert!([first, second].iter().all(|call| pair.a.answers.contains_key(call)));
    assert!(pair.a.outcomes.keys().all(|ended| *ended != sent));
    set_closed(&mut pair, false);
    assert!(matches!(pair.outcome(sent), Outcome::Delivered(_)));
}

#[test]
fn an_endpoint_that_is_replaced_within_milliseconds_fails_no_call() {
    for closed in [1, 2, 3, 4] {
        let mut pair = Pair::new(Setup::default());
        pair.deliver("a session");
        pair.run_for(Duration::from_secs(40));
        pair.restart(Side::B);
        set_closed(&mut pair, true);
        call(&mut pair);
        refuse(&mut pair, closed * MILLISECOND);
        set_closed(&mut pair, false);
        pair.run_for(20 * MILLISECOND);
        assert_eq!((pair.b.requests.len(), pair.a.answers.len()), (1, 0), "{closed} ms");
    }
}

#[test]
fn an_answer_makes_earlier_refusals_void() {
    let mut pair = Pair::new(Setup::default());
    set_closed(&mut pair, true);
    let sent = pair.send("waits");
    refuse(&mut pair, 4 * MILLISECOND);
    set_closed(&mut pair, false);
    assert!(matches!(pair.outcome(sent), Outcome::Delivered(_)));
    pair.restart(Side::B);
    pair.run_for(Duration::from_secs(40));
    set_closed(&mut pair, true);
    call(&mut pair);
    refuse(&mut pair, 4 * MILLISECOND);
    assert!(pair.a.answers.is_empty(), "the count began again");
    refuse(&mut pair, 5 * MILLISECOND);
    assert_eq!(pair.a.answers.len(), 1);
}

/// Makes of a packet that was sent what an ICMP message says.
type Forgery = fn(SocketAddr, &[u8]) -> (SocketAddr, Vec<u8>);

/// The packet with its byte `at` changed.
fn changed(packet: &[u8], at: usize) -> Vec<u8> {
    let mut changed = packet.to_vec();
    changed[at] ^= 0x0e;
    changed
}

#[test]
fn forged_reports_end_nothing_and_cause_no_packet() {
    let forgeries: [Forgery; 5] = [
        |_, packet| (Side::A.address(3), packet.to_vec()),
        // The nonce of a handshake has 8 bytes, the id of a session 4.
        |to, packet| (to, packet[..7].to_vec()),
        |to, _| (to, Vec::new()),
        |to, packet| (to, changed(packet, 4)),
        // Another kind, or none that is known.
        |to, packet| (to, changed(packet, 0)),
    ];
    let sent = |forge: Option<Forgery>, closed: bool| {
        let mut pair = Pair::new(Setup::default());
        set_closed(&mut pair, closed);
        pair.send(message(20_000, 1));
        let call = call(&mut pair);
        report(&mut pair, Duration::from_secs(1), |to, packet| Some(forge?(to, packet)));
        assert!(!pair.a.answers.contains_key(&call));
        assert_eq!(pair.b.requests.len(), usize::from(!closed));
        pair.link_stats(Side::A).sent
    };
    for closed in [false, true] {
        let packets = sent(None, closed);
        for forge in forgeries {
            assert_eq!(sent(Some(forge), closed), packets);
        }
    }
}

/// Someone who sees all packets, and stops none, reports each as refused.
#[test]
fn reports_of_packets_that_arrive_end_nothing_and_cause_few_handshakes() {
    let mut pair = Pair::new(Setup::default());
    for seed in 0..500 {
        let sent = pair.send(message(20_000, seed));
        let call = call(&mut pair);
        refuse(&mut pair, 2 * MILLISECOND);
        assert!(matches!(pair.outcome(sent), Outcome::Delivered(_)));
        assert!(!pair.a.answers.contains_key(&call));
    }
    assert_eq!(pair.b.requests.len(), 500);
    let looks = pair.a.counters().sender.handshakes_sent;
    assert!((4..=20).contains(&looks), "two HELLOs in 200 ms: {looks}");
}

#[test]
fn calls_end_soon_when_their_callee_dies_and_its_port_is_closed() {
    for speaks in [false, true] {
        let mut pair = Pair::new(Setup::default());
        let held = pair.a.endpoint.prepare(Some(Duration::from_secs(3_600)), b"a request");
        pair.a.endpoint.call(pair.now, port(), &held, &SendOptions::default()).unwrap();
        pair.run_for(Duration::from_secs(10));
        assert_eq!((pair.b.requests.len(), pair.a.endpoint.unfinished()), (1, 0));
        set_closed(&mut pair, true);
        let gone = Err(CallFailure::Unknown(Indeterminate::PeerGone));
        if speaks {
            let second = call(&mut pair);
            refuse(&mut pair, 20 * MILLISECOND);
            assert_eq!(pair.a.answers[&second], gone);
        }
        let most = if speaks { Duration::from_millis(250) } else { Duration::from_secs(6) };
        refuse(&mut pair, most);
        assert_eq!(pair.a.answers[&held.id()], gone);
        assert_eq!(pair.a.endpoint.unfinished(), 0);
    }
}
