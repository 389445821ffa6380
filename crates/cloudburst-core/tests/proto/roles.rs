//! Requests, responses and plain messages: told apart, and in nobody else's way.

use crate::common::peer::Liar;
use crate::common::{Pair, Setup, Side, message};
use bytes::Bytes;
use cloudburst_core::config::Config;
use cloudburst_core::id::{PathId, SessionId};
use cloudburst_core::proto::{CallFailure, CallId, SendOptions};
use cloudburst_core::wire::{Kind, Prefix, Role, WireError};
use core::time::Duration;

fn call(pair: &mut Pair, bytes: &Bytes) -> CallId {
    let call = pair.a.endpoint.prepare(None, bytes);
    let (to, options) = (Side::B.address(0), SendOptions::default());
    pair.a.endpoint.call(pair.now, to, &call, &options).unwrap();
    call.id()
}

#[test]
fn a_request_is_answered_by_the_response_to_it() {
    let mut pair = Pair::new(Setup { link: crate::common::lossy(0.2), ..Setup::default() });
    let bytes: Vec<Bytes> = (0..10).map(|seed| message(40_000, seed)).collect();
    let calls: Vec<CallId> = bytes.iter().map(|bytes| call(&mut pair, bytes)).collect();
    pair.run(|pair| pair.b.requests.len() == calls.len());
    for request in core::mem::take(&mut pair.b.requests).iter().rev() {
        let (now, options) = (pair.now, SendOptions::default());
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
    let (now, to) = (pair.now, Side::B.address(0));
    let options = SendOptions { deadline: Some(patience), ..SendOptions::default() };
    pair.a.endpoint.call(now, to, &request, &options).unwrap();
    pair.run(|pair| !pair.a.answers.is_empty());
    assert_eq!(pair.a.answers[&request.id()], Err(CallFailure::Deadline));
    assert_eq!(pair.now, now + patience);
    // A response that comes later is of no use to anybody.
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
        let (now, to) = (pair.now, Side::B.address(0));
        let options = SendOptions { deadline, ..SendOptions::default() };
        pair.a.endpoint.call(now, to, &request, &options).unwrap();
        pair.run(|pair| !pair.a.answers.is_empty());
        assert_eq!(pair.now, now + patience);
    }
}

#[test]
fn a_call_that_was_hung_up_sends_nothing_more() {
    let mut pair = Pair::new(Setup::default());
    let id = call(&mut pair, &message(40_000, 1));
    pair.a.endpoint.hang_up(id);
    pair.run_for(Duration::from_millis(50));
    assert_eq!(pair.a.counters().sender.symbols_sent, 0);
    assert_eq!((pair.a.answers.len(), pair.a.endpoint.unfinished()), (0, 0));
}

#[test]
fn what_the_application_does_not_take_holds_up_its_like_alone() {
    let b = Config { receive_messages: 2, port: 7000, ..Config::default() };
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
    // Room for plain messages is none for requests.
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
    packet[0] = 0x25;
    for (flags, role) in [(0x00, Role::Plain), (0x08, Role::Request), (0x10, Role::Response)] {
        packet[1] = flags;
        let prefix = Prefix {
            kind: Kind::Symbol,
            ack_request: false,
            partial: false,
            again: false,
            pulled: false,
            probe: false,
            role,
            class: 0,
            path: PathId(0),
            session: SessionId(0),
            number: 0,
        };
        assert_eq!(Prefix::parse(&packet), Ok(prefix));
    }
    packet[1] = 0x18;
    assert_eq!(Prefix::parse(&packet), Err(WireError::Undefined { field: "role", got: 0x18 }));
    packet[1] = 0x80;
    assert_eq!(Prefix::parse(&packet), Err(WireError::Undefined { field: "flags", got: 0x80 }));
}
