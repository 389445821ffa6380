//! Peers that leave or die while a call depends on them.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::error::{CallFailure, Indeterminate};
use cloudburst_core::proto::{CallId, IncomingRequest, SendOptions};
use cloudburst_core::time::Instant;
use core::time::Duration;

const PATIENCE: Duration = Duration::from_secs(3_600);

/// B's application has had the request of a call of A for 10 s.
fn held(pair: &mut Pair) -> CallId {
    let call = pair.a.endpoint.prepare(Some(PATIENCE), b"a request");
    let to = Side::B.address(0);
    pair.a.endpoint.call(pair.now, to, &call, &SendOptions::default()).unwrap();
    pair.run_for(Duration::from_secs(10));
    assert_eq!((pair.b.requests.len(), pair.a.endpoint.unfinished()), (1, 0));
    call.id()
}

fn check_invariants(pair: &Pair) {
    pair.a.endpoint.check_invariants();
    pair.b.endpoint.check_invariants();
}

/// How long after `since` B's handler learns that nobody waits.
fn withdrawn_after(pair: &mut Pair, since: Instant) -> Duration {
    pair.run(|pair| !pair.b.withdrawn.is_empty());
    check_invariants(pair);
    let requests: Vec<_> = pair.b.requests.iter().map(IncomingRequest::id).collect();
    assert_eq!(pair.b.withdrawn, requests);
    pair.now.saturating_since(since)
}

/// How long after `since` A's call ends, and why.
fn ended_after(pair: &mut Pair, call: CallId, since: Instant) -> (Duration, Indeterminate) {
    pair.run(|pair| !pair.a.answers.is_empty());
    check_invariants(pair);
    match pair.a.answers[&call] {
        Err(CallFailure::Unknown(why)) => (pair.now.saturating_since(since), why),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_of_an_hour_is_answered_and_costs_a_few_packets() {
    let mut pair = Pair::new(Setup::default());
    let call = held(&mut pair);
    let sent = |pair: &Pair| pair.link_stats(Side::A).sent + pair.link_stats(Side::B).sent;
    let before = sent(&pair);
    pair.run_for(Duration::from_secs(3_000));
    check_invariants(&pair);
    let each_minute = (sent(&pair) - before) / 50;
    assert!((20..60).contains(&each_minute), "{each_minute} packets a minute");
    let options = SendOptions::default();
    pair.b.endpoint.reply(pair.now, &pair.b.requests[0].clone(), Some(b"done"), &options).unwrap();
    pair.settle();
    assert_eq!(pair.a.answers[&call].as_deref(), Ok(&b"done"[..]));
    pair.run_for(Duration::from_secs(10));
    let before = sent(&pair);
    pair.run_for(Duration::from_secs(100));
    assert_eq!(sent(&pair), before, "nobody is watched any more");
}

#[test]
fn short_calls_cost_no_packet_more() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver("a session");
    for seed in 0..100 {
        let call = pair.a.endpoint.prepare(None, &message(100, seed));
        let to = Side::B.address(0);
        pair.a.endpoint.call(pair.now, to, &call, &SendOptions::default()).unwrap();
        pair.run_for(Duration::from_millis(900));
        let request = pair.b.requests.pop().unwrap();
        pair.b.endpoint.reply(pair.now, &request, Some(b""), &SendOptions::default()).unwrap();
        pair.settle();
    }
    let [a, b] = [&pair.a, &pair.b].map(|host| host.counters().sender);
    assert_eq!((a.symbols_sent + a.probes_sent, b.symbols_sent + b.probes_sent), (101, 100));
    assert_eq!(b.handshakes_sent, 0);
    assert!(a.handshakes_sent <= 3, "{}", a.handshakes_sent);
}

#[test]
fn a_peer_that_has_left_or_died_is_forgotten() {
    for (leaves, soon) in [(true, 41), (false, 601)] {
        let mut pair = Pair::new(Setup::default());
        pair.deliver("a message");
        if leaves {
            pair.b.endpoint.stop(pair.now);
        } else {
            (0..4).for_each(|path| pair.set_down(path, true));
        }
        pair.run_for(Duration::from_secs(soon));
        check_invariants(&pair);
        assert!(pair.a.endpoint.peers().is_empty(), "{leaves}");
        // It also has a session of A, which may have been forgotten later.
        pair.run_for(Duration::from_secs(1_210 - soon));
        assert!(pair.b.endpoint.peers().is_empty(), "{leaves}");
        assert!(pair.b.endpoint.poll_timeout().is_none(), "nothing is left to do");
    }
}

#[test]
fn a_handler_ends_when_its_caller_dies() {
    let mut pair = Pair::new(Setup::default());
    held(&mut pair);
    (0..4).for_each(|path| pair.set_down(path, true));
    let died = pair.now;
    let after = withdrawn_after(&mut pair, died);
    assert!((50..90).contains(&after.as_secs()), "{after:?}");
}

#[test]
fn a_handler_ends_when_its_caller_restarts() {
    for speaks in [false, true] {
        let mut pair = Pair::new(Setup::default());
        held(&mut pair);
        pair.restart(Side::A);
        let died = pair.now;
        if speaks {
            pair.send("from the next incarnation");
        }
        let after = withdrawn_after(&mut pair, died);
        let most = Duration::from_secs(if speaks { 2 } else { 7 });
        assert!(after < most, "{after:?}");
    }
}

#[test]
fn a_request_of_the_next_life_of_a_caller_is_not_withdrawn_with_that_of_the_former() {
    // The application has taken the new request when the end of the former life is seen, or has not.
    for takes in [true, false] {
        let mut pair = Pair::new(Setup::default());
        held(&mut pair);
        pair.restart(Side::A);
        pair.b.takes = takes;
        let call = pair.a.endpoint.prepare(Some(PATIENCE), b"of the next life");
        let to = Side::B.address(0);
        let options = SendOptions::default();
        pair.a.endpoint.call(pair.now, to, &call, &options).unwrap();
        pair.run_for(Duration::from_secs(10));
        assert_eq!(pair.b.withdrawn, [pair.b.requests[0].id()]);
        pair.b.takes = true;
        let now = pair.now;
        pair.b.take_all(now);
        let request = pair.b.requests.get(1).expect("the new request is there").clone();
        pair.b.endpoint.reply(now, &request, Some(b"done"), &options).unwrap();
        pair.run_for(Duration::from_secs(1));
        check_invariants(&pair);
        assert_eq!(pair.a.answers[&call.id()].as_deref(), Ok(&b"done"[..]));
        assert_eq!(pair.b.withdrawn.len(), 1);
    }
}

#[test]
fn a_handler_ends_when_its_caller_leaves() {
    let mut pair = Pair::new(Setup::default());
    held(&mut pair);
    let left = pair.now;
    pair.a.endpoint.stop(pair.now);
    let after = withdrawn_after(&mut pair, left);
    assert!(after < Duration::from_millis(10), "{after:?}");
}

#[test]
fn a_call_ends_soon_when_its_callee_dies_or_restarts() {
    let mut pair = Pair::new(Setup::default());
    let call = held(&mut pair);
    (0..4).for_each(|path| pair.set_down(path, true));
    let died = pair.now;
    let (after, why) = ended_after(&mut pair, call, died);
    assert!((50..90).contains(&after.as_secs()), "{after:?}");
    assert_eq!(why, Indeterminate::PeerGone);

    let mut pair = Pair::new(Setup::default());
    let call = held(&mut pair);
    pair.restart(Side::B);
    let died = pair.now;
    let (after, why) = ended_after(&mut pair, call, died);
    assert!(after < Duration::from_secs(7), "{after:?}");
    assert_eq!(why, Indeterminate::PeerRestarted);
}

#[test]
fn a_call_survives_an_outage_of_half_a_minute_and_a_sleep_of_an_hour() {
    let mut pair = Pair::new(Setup::default());
    let call = held(&mut pair);
    (0..4).for_each(|path| pair.set_down(path, true));
    pair.run_for(Duration::from_secs(30));
    (0..4).for_each(|path| pair.set_down(path, false));
    pair.run_for(Duration::from_secs(30));
    // Nothing runs at either end for 50 minutes.
    pair.now += Duration::from_secs(3_000);
    pair.run_for(Duration::from_secs(10));
    check_invariants(&pair);
    assert_eq!((pair.b.withdrawn.len(), pair.a.answers.len()), (0, 0));
    let options = SendOptions::default();
    pair.b.endpoint.reply(pair.now, &pair.b.requests[0].clone(), Some(b"done"), &options).unwrap();
    pair.settle();
    assert_eq!(pair.a.answers[&call].as_deref(), Ok(&b"done"[..]));
}

#[test]
fn with_keep_alive_no_path_is_silent_for_longer_and_a_dead_peer_is_left_alone() {
    let every = Duration::from_secs(20);
    let mut pair = Pair::new(Setup::default());
    pair.a.endpoint.set_keep_alive(pair.now, every);
    pair.deliver("a session");
    pair.run_for(every);
    let handshakes = pair.a.counters().sender.handshakes_sent;
    for _ in 0..30 {
        pair.tap = Some(Vec::new());
        pair.run_for(every);
        let tap = pair.tap.take().unwrap();
        for egress in 0..4 {
            let by =
                |from: &Side| tap.iter().any(|(side, via, _)| side == from && via.egress == egress);
            assert!(by(&Side::A), "nothing left by egress {egress}");
        }
        assert!(tap.len() <= 10, "{} packets", tap.len());
        check_invariants(&pair);
    }
    let kept = pair.a.counters().sender.handshakes_sent;
    pair.deliver("in the same session");
    assert_eq!(pair.a.counters().sender.handshakes_sent, kept, "it was never stale");
    assert!(kept - handshakes >= 120);

    (0..4).for_each(|path| pair.set_down(path, true));
    pair.run_for(Duration::from_secs(300));
    let before = pair.a.counters().sender.handshakes_sent;
    pair.run_for(Duration::from_secs(300));
    assert_eq!(pair.a.counters().sender.handshakes_sent, before);
}
