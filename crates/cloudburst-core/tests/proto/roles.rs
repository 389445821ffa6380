//! Requests, responses and plain messages: distinguished, and independent of each other.

use crate::common::peer::Liar;
use crate::common::{Pair, Setup, Side, lossy, message};
use bytes::Bytes;
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::error::CallFailure;
use cloudburst_core::error::{Outcome, Rejection, StartError};
use cloudburst_core::id::{PathId, SessionId};
use cloudburst_core::proto::{CallId, IncomingRequest, SendOptions};
use cloudburst_core::wire::packet::VERSION;
use cloudburst_core::wire::{Kind, Prefix, RejectReason, Role, WireError};
use cloudburst_netem::LinkConfig;
use core::time::Duration;

fn call(pair: &mut Pair, bytes: &Bytes) -> CallId {
    let call = pair.a.endpoint.prepare(None, bytes);
    let to = Side::B.address(0);
    let options = SendOptions::default();
    pair.a.endpoint.call(pair.now, to, &call, &options).unwrap();
    call.id()
}

#[test]
fn a_request_is_answered_by_the_response_to_it() {
    let mut pair = Pair::new(Setup { link: lossy(0.2), ..Setup::default() });
    let bytes: Vec<Bytes> = (0..10).map(|seed| message(40_000, seed)).collect();
    let calls: Vec<CallId> = bytes.iter().map(|bytes| call(&mut pair, bytes)).collect();
    pair.run(|pair| pair.b.requests.len() == calls.len());
    for request in core::mem::take(&mut pair.b.requests).iter().rev() {
        let now = pair.now;
        let options = SendOptions::default();
        pair.b.endpoint.reply(now, request, Some(&request.bytes), &options).unwrap();
    }
    pair.settle();
    for (call, bytes) in calls.iter().zip(&bytes) {
        assert_eq!(pair.a.answers[call], Ok(bytes.clone()));
    }
    assert_eq!((pair.a.inbox.len(), pair.b.inbox.len()), (0, 0));
    assert_eq!(pair.a.counters().calls.responses_received, 10);
}

#[test]
fn a_call_that_nobody_answers_ends_by_its_deadline() {
    let mut pair = Pair::new(Setup::default());
    let patience = Duration::from_millis(300);
    let request = pair.a.endpoint.prepare(Some(patience), b"a request");
    let now = pair.now;
    let to = Side::B.address(0);
    let options = SendOptions::default().deadline(patience);
    pair.a.endpoint.call(now, to, &request, &options).unwrap();
    pair.run(|pair| !pair.a.answers.is_empty());
    assert_eq!(pair.a.answers[&request.id()], Err(CallFailure::Deadline));
    assert_eq!(pair.now, now + patience);
    // A later response is of no use.
    pair.b.endpoint.reply(pair.now, &pair.b.requests[0], None, &options).unwrap();
    pair.settle();
    assert_eq!(pair.a.counters().calls.responses_dropped, 1);
}

#[test]
fn a_call_has_one_deadline_whatever_its_options_say() {
    for deadline in [None, Some(Duration::from_millis(100)), Some(Duration::from_secs(10))] {
        let mut pair = Pair::new(Setup::default());
        (0..4).for_each(|path| pair.set_down(path, true));
        let patience = Duration::from_millis(300);
        let request = pair.a.endpoint.prepare(Some(patience), b"a request");
        let now = pair.now;
        let to = Side::B.address(0);
        let mut options = SendOptions::default();
        options.deadline = deadline;
        pair.a.endpoint.call(now, to, &request, &options).unwrap();
        pair.run(|pair| !pair.a.answers.is_empty());
        assert_eq!(pair.now, now + patience);
    }
}

#[test]
fn a_cancelled_call_sends_nothing_more() {
    let mut pair = Pair::new(Setup::default());
    let id = call(&mut pair, &message(40_000, 1));
    pair.a.endpoint.cancel_call(pair.now, id);
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.a.counters().sender.symbols_sent, 0);
    assert_eq!((pair.a.answers.len(), pair.a.endpoint.unfinished()), (0, 0));
}

#[test]
fn messages_that_are_not_taken_delay_only_messages_of_their_role() {
    let b = Config {
        tuning: Tuning { receive_messages: Some(2), ..Tuning::default() },
        ..Config::default()
    };
    let mut pair = Pair::new(Setup { b, ..Setup::default() });
    pair.b.takes = false;
    for seed in 0..4 {
        call(&mut pair, &message(2_000, seed));
    }
    pair.run_for(Duration::from_millis(100));
    let delivered = |pair: &Pair| pair.a.counters().sender.delivered;
    assert_eq!(delivered(&pair), 2, "two requests have room");
    for seed in 4..6 {
        let plain = pair.send(message(2_000, seed));
        pair.outcome(plain);
    }
    assert_eq!(delivered(&pair), 4, "both requests still wait");
    // Room for plain messages is not available to requests.
    assert!(pair.b.endpoint.recv().is_some());
    pair.run_for(Duration::from_millis(300));
    assert_eq!(delivered(&pair), 4);
    assert!(pair.b.endpoint.recv_request(pair.now).is_some());
    pair.run_for(Duration::from_millis(300));
    assert_eq!(delivered(&pair), 5);
}

#[test]
fn a_symbol_that_contradicts_its_messages_role_is_nonsense() {
    let mut peer = Liar::meet(Config::default());
    let header = peer.header(0, b"12345678", 16, 0);
    let mut second = header;
    second.symbol = 1;
    let [first, last] = [header, second].map(|header| peer.payload(&header, b"12345678"));
    peer.role = Role::Request;
    assert_eq!(peer.say(&header, false, &first), []);
    peer.role = Role::Response;
    assert_eq!(peer.say(&second, true, &last), []);
    assert_eq!(peer.endpoint.counters().receiver.nonsense, 1);
    peer.role = Role::Request;
    assert_eq!(peer.say(&second, true, &last).len(), 1);
    assert_eq!(peer.endpoint.counters().receiver.messages_delivered, 1);
    assert_eq!(peer.messages(), [], "it is no plain message");
}

#[test]
fn roles_are_bits_3_and_4_of_the_flags() {
    let mut packet = [0; 14];
    packet[0] = VERSION << 4 | Kind::Symbol as u8;
    let roles = [Role::Plain, Role::Request, Role::Response, Role::Withdrawal];
    for (flags, role) in [0x00, 0x08, 0x10, 0x18].into_iter().zip(roles) {
        packet[1] = flags;
        let prefix = Prefix {
            kind: Kind::Symbol,
            ack_request: false,
            partial: false,
            again: false,
            pulled: false,
            probe: false,
            is_final: false,
            role,
            class: 0,
            path: PathId(0),
            session: SessionId(0),
            number: 0,
        };
        assert_eq!(Prefix::parse(&packet), Ok(prefix));
    }
    packet[1] = 0x80;
    assert_eq!(Prefix::parse(&packet), Err(WireError::Undefined { field: "flags", got: 0x80 }));
}

/// B's application has received the request of A's call, which has the deadline `patience`.
fn taken(pair: &mut Pair, patience: Duration) -> CallId {
    let call = pair.a.endpoint.prepare(Some(patience), b"a request");
    let to = Side::B.address(0);
    let options = SendOptions::default();
    pair.a.endpoint.call(pair.now, to, &call, &options).unwrap();
    pair.run(|pair| !pair.b.requests.is_empty() && pair.a.endpoint.unfinished() == 0);
    call.id()
}

#[test]
fn a_callee_learns_that_nobody_waits_for_its_response() {
    let mut pair = Pair::new(Setup { link: lossy(0.2), ..Setup::default() });
    let start = pair.now;
    let id = taken(&mut pair, Duration::from_secs(10));
    pair.a.endpoint.cancel_call(pair.now, id);
    pair.run(|pair| !pair.b.withdrawn.is_empty());
    assert_eq!(pair.b.withdrawn, [pair.b.requests[0].id()]);
    assert!(pair.now.saturating_since(start) < Duration::from_secs(1), "before the deadline");
    assert_eq!(pair.b.counters().calls.requests_withdrawn, 1);
    pair.settle();
    pair.b.endpoint.check_invariants();
    assert_eq!((pair.b.inbox.len(), pair.b.requests.len()), (0, 1), "it is in no queue");
}

#[test]
fn a_withdrawal_to_a_callee_that_does_not_answer_ends_soon() {
    let mut pair = Pair::new(Setup::default());
    let id = taken(&mut pair, Duration::from_secs(10));
    (0..4).for_each(|path| pair.set_down(path, true));
    let start = pair.now;
    pair.a.endpoint.cancel_call(pair.now, id);
    assert_eq!(pair.a.endpoint.unfinished(), 1);
    pair.run(|pair| pair.a.endpoint.unfinished() == 0);
    assert_eq!(pair.now, start + Duration::from_secs(1));
}

#[test]
fn nothing_is_withdrawn_from_a_callee_that_has_restarted() {
    let mut pair = Pair::new(Setup::default());
    let id = taken(&mut pair, Duration::from_secs(10));
    pair.restart(Side::B);
    // Its own message is how A learns of it. A then asks who is there.
    pair.send_from(Side::B, message(100, 1), SendOptions::default());
    pair.run(|pair| !pair.a.inbox.is_empty());
    pair.a.endpoint.cancel_call(pair.now, id);
    assert_eq!(pair.a.endpoint.unfinished(), 1);
    pair.run(|pair| pair.a.endpoint.unfinished() == 0);
    assert_eq!(pair.a.counters().sender.delivered, 1, "the request");
    assert_eq!(pair.b.counters().receiver.messages_delivered, 0);
}

#[test]
fn a_callee_learns_that_the_deadline_of_a_request_has_passed() {
    let mut pair = Pair::new(Setup::default());
    let id = taken(&mut pair, Duration::from_millis(300));
    pair.run(|pair| !pair.b.withdrawn.is_empty());
    assert_eq!(pair.b.withdrawn, [pair.b.requests[0].id()]);
    assert_eq!(pair.now, pair.b.requests[0].deadline);
    assert_eq!(pair.a.answers[&id], Err(CallFailure::Deadline));
}

#[test]
fn a_request_that_is_withdrawn_leaves_the_queue() {
    let b = Config {
        tuning: Tuning { receive_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let mut pair = Pair::new(Setup { b, ..Setup::default() });
    pair.b.takes = false;
    let first = call(&mut pair, &message(100, 1));
    pair.settle();
    let second = call(&mut pair, &message(100, 2));
    pair.run_for(Duration::from_millis(20));
    assert_eq!(pair.a.counters().sender.delivered, 1, "there is room for one");
    pair.a.endpoint.cancel_call(pair.now, first);
    pair.settle();
    let request = pair.b.endpoint.recv_request(pair.now).unwrap();
    assert_eq!((request.call, pair.b.counters().calls.requests_withdrawn), (second, 1));
    assert_eq!(pair.b.endpoint.recv_request(pair.now), None);
    assert_eq!(pair.b.withdrawn, [], "the application has not seen it");
}

#[test]
fn no_handler_goes_on_whenever_its_call_is_dropped() {
    let mut taken = 0;
    for seed in 0..40 {
        for step in 0..25 {
            let link = LinkConfig { jitter: Duration::from_micros(60), ..lossy(0.1) };
            let mut pair = Pair::new(Setup { seed, link, ..Setup::default() });
            pair.deliver("a session");
            let id = call(&mut pair, &message(if seed % 2 == 0 { 100 } else { 4_000 }, seed));
            pair.run_for(Duration::from_micros(10 * step));
            pair.a.endpoint.cancel_call(pair.now, id);
            pair.run_for(Duration::from_secs(1));
            let requests: Vec<_> = pair.b.requests.iter().map(IncomingRequest::id).collect();
            assert_eq!(pair.b.withdrawn, requests, "seed {seed}, step {step}");
            taken += requests.len();
            pair.b.endpoint.check_invariants();
        }
    }
    assert!(taken > 200, "{taken} were handled");
}

#[test]
fn a_withdrawal_that_overtakes_its_request_takes_effect() {
    let b = Config {
        tuning: Tuning { receive_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let mut pair = Pair::new(Setup { b, ..Setup::default() });
    pair.b.takes = false;
    pair.deliver("a session");
    // While a message has not ended, those after it are not below the low watermark.
    pair.send(message(100, 1));
    // The request is on its way for long, and what comes after it is not.
    let slow = LinkConfig { delay: Duration::from_millis(5), ..Setup::default().link };
    pair.set_links(Side::A, None, &slow);
    let id = call(&mut pair, &message(100, 1));
    pair.run_for(Duration::from_micros(10));
    pair.set_links(Side::A, None, &Setup::default().link);
    pair.a.endpoint.cancel_call(pair.now, id);
    pair.run_for(Duration::from_millis(20));
    assert_eq!(pair.b.endpoint.recv_request(pair.now), None);
    assert_eq!(pair.b.counters().calls.requests_withdrawn, 1);
    assert_eq!(pair.b.counters().receiver.messages_delivered, 3, "the request was complete");
}

#[test]
fn requests_that_cannot_have_arrived_and_calls_that_have_ended_are_not_withdrawn() {
    let mut pair = Pair::new(Setup::default());
    let id = taken(&mut pair, Duration::from_secs(10));
    let now = pair.now;
    let options = SendOptions::default();
    pair.b.endpoint.reply(now, &pair.b.requests[0].clone(), Some(b""), &options).unwrap();
    pair.settle();
    pair.a.endpoint.cancel_call(pair.now, id);
    assert_eq!(pair.a.endpoint.unfinished(), 0, "it was answered");

    let slow = Config { capacity: 1_000_000.into(), ..Config::default() };
    let mut pair = Pair::new(Setup { a: slow, ..Setup::default() });
    let id = call(&mut pair, &message(40_000, 2));
    pair.run(|pair| pair.a.counters().sender.symbols_sent > 2);
    pair.a.endpoint.cancel_call(pair.now, id);
    assert_eq!(pair.a.endpoint.unfinished(), 0, "not all of it was sent");
}

#[test]
fn an_overloaded_application_refuses_a_request_on_which_it_has_not_acted() {
    let mut pair = Pair::new(Setup::default());
    let id = taken(&mut pair, Duration::from_secs(10));
    let request = pair.b.requests[0].clone();
    let options = SendOptions::default();
    pair.b.endpoint.refuse(pair.now, &request, &options).unwrap();
    pair.settle();
    assert_eq!(pair.a.answers[&id], Err(CallFailure::Overloaded));
    let calls = pair.b.counters().calls;
    assert_eq!((calls.requests_overloaded, calls.requests_unanswered), (1, 0));
}

#[test]
fn a_closing_callee_refuses_what_its_application_has_not_taken() {
    let mut pair = Pair::new(Setup::default());
    let first = taken(&mut pair, Duration::from_secs(10));
    pair.b.takes = false;
    let queued = call(&mut pair, &message(100, 2));
    pair.settle();
    let begun = call(&mut pair, &message(900_000, 3));
    pair.run_for(Duration::from_micros(300));
    let start = pair.now;
    pair.b.endpoint.close(pair.now);
    let late = call(&mut pair, &message(100, 4));
    pair.settle();
    let closing = Rejection::ByPeer(RejectReason::Closing);
    for refused in [queued, begun, late] {
        assert_eq!(pair.a.answers[&refused], Err(CallFailure::Rejected(closing)));
    }
    assert!(pair.now.saturating_since(start) < Duration::from_millis(10), "at once");
    assert_eq!(pair.b.counters().calls.requests_refused, 1);
    // It can still answer the requests that it holds.
    let request = pair.b.requests[0].clone();
    let now = pair.now;
    let options = SendOptions::default();
    pair.b.endpoint.reply(now, &request, Some(b"yes"), &options).unwrap();
    pair.settle();
    assert_eq!(pair.a.answers[&first], Ok(Bytes::from_static(b"yes")));
}

#[test]
fn a_closing_callee_refuses_as_many_at_a_time_as_there_is_room_for() {
    let b = Config {
        tuning: Tuning { send_messages: Some(2), ..Tuning::default() },
        ..Config::default()
    };
    let mut pair = Pair::new(Setup { b, ..Setup::default() });
    pair.b.takes = false;
    let calls: Vec<CallId> = (0..5).map(|seed| call(&mut pair, &message(100, seed))).collect();
    pair.settle();
    let own = pair.send_from(Side::B, message(900_000, 9), SendOptions::default());
    for answered in [1, 3, 5] {
        pair.b.endpoint.close(pair.now);
        assert!(pair.b.endpoint.unfinished() <= 2);
        pair.run(|pair| pair.a.answers.len() == answered);
        pair.run(|pair| pair.b.outcomes.contains_key(&own));
        pair.settle();
    }
    let closing = Rejection::ByPeer(RejectReason::Closing);
    for call in &calls {
        assert_eq!(pair.a.answers[call], Err(CallFailure::Rejected(closing)));
    }
    assert_eq!(pair.b.counters().calls.requests_refused, 5);
}

#[test]
fn callers_whose_responses_a_stop_cuts_off_learn_it_at_once() {
    let mut pair = Pair::new(Setup::default());
    let calls: Vec<CallId> = (0..3).map(|seed| call(&mut pair, &message(100, seed))).collect();
    pair.run(|pair| pair.b.requests.len() == calls.len());
    let long = message(900_000, 1);
    let now = pair.now;
    let options = SendOptions::default();
    let requests = pair.b.requests.clone();
    for (request, bytes) in requests.iter().zip([Some(&long[..]), Some(b"short"), None]) {
        pair.b.endpoint.reply(now, request, bytes, &options).unwrap();
    }
    pair.b.endpoint.stop(now);
    pair.run(|pair| pair.a.answers.len() == calls.len());
    for call in &calls {
        assert_eq!(pair.a.answers[call], Err(CallFailure::Unanswered));
    }
    assert!(pair.now.saturating_since(now) < Duration::from_millis(10), "at once");
}

#[test]
fn an_endpoint_that_stops_informs_all_peers_at_once() {
    let mut pair = Pair::new(Setup::default());
    let taken = taken(&mut pair, Duration::from_secs(10));
    pair.b.takes = false;
    let queued = call(&mut pair, &message(100, 2));
    pair.settle();
    let begun = pair.send(message(900_000, 3));
    pair.run_for(Duration::from_micros(300));
    let own = pair.send_from(Side::B, message(900_000, 4), SendOptions::default());
    let start = pair.now;
    pair.b.endpoint.stop(pair.now);
    pair.b.endpoint.check_invariants();
    pair.run(|pair| pair.a.answers.len() == 2 && !pair.a.outcomes.is_empty());
    let closing = Rejection::ByPeer(RejectReason::Closing);
    assert_eq!(pair.a.answers[&queued], Err(CallFailure::Rejected(closing)));
    assert_eq!(pair.a.answers[&taken], Err(CallFailure::Unanswered));
    assert_eq!(pair.outcome(begun), Outcome::Rejected(closing));
    assert!(pair.now.saturating_since(start) < Duration::from_millis(10), "at once");
    assert!(matches!(pair.b.outcomes[&own], Outcome::Rejected(Rejection::Cancelled)));
    let now = pair.now;
    let options = SendOptions::default();
    let request = pair.b.requests[0].clone();
    let refused = pair.b.endpoint.reply(now, &request, None, &options);
    assert_eq!(refused, Err(StartError::Closing));
}
