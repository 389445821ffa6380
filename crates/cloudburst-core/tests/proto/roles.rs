//! Requests, responses and plain messages: told apart, and in nobody else's way.

use crate::common::peer::Liar;
use crate::common::{Pair, Setup, Side, message};
use bytes::Bytes;
use cloudburst_core::config::Config;
use cloudburst_core::id::{MessageId, PathId, SessionId};
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::{Kind, Prefix, Role, WireError};
use core::time::Duration;

fn send_as(pair: &mut Pair, role: Role, bytes: Bytes) -> MessageId {
    let to = Side::B.address(0);
    pair.a.endpoint.send_as(pair.now, to, role, bytes, &SendOptions::default()).unwrap()
}

#[test]
fn a_message_arrives_as_what_it_was_sent() {
    let mut pair = Pair::new(Setup { link: crate::common::lossy(0.2), ..Setup::default() });
    for (seed, role) in [Role::Plain, Role::Request, Role::Response].into_iter().enumerate() {
        let bytes = message(40_000, seed as u64);
        let id = send_as(&mut pair, role, bytes.clone());
        pair.outcome(id);
        let came = pair.b.inbox.last().unwrap();
        assert_eq!((came.role, &came.bytes), (role, &bytes));
    }
}

#[test]
fn what_the_application_does_not_take_holds_up_its_like_alone() {
    let b = Config { receive_messages: 2, port: 7000, ..Config::default() };
    let mut pair = Pair::new(Setup { b, ..Setup::default() });
    pair.b.takes = false;
    for seed in 0..4 {
        send_as(&mut pair, Role::Request, message(2_000, seed));
    }
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.a.delivered(), 2, "two requests have room");
    for seed in 4..6 {
        let plain = send_as(&mut pair, Role::Plain, message(2_000, seed));
        pair.outcome(plain);
    }
    for seed in 6..16 {
        let response = send_as(&mut pair, Role::Response, message(2_000, seed));
        pair.outcome(response);
    }
    assert_eq!(pair.a.delivered(), 14, "both requests still wait");
    // Room for plain messages is none for requests.
    pair.b.endpoint.release(Role::Plain, 2_000);
    pair.run_for(Duration::from_millis(300));
    assert_eq!(pair.a.delivered(), 14);
    pair.b.endpoint.release(Role::Request, 2_000);
    pair.run_for(Duration::from_millis(300));
    assert_eq!(pair.a.delivered(), 15);
}

#[test]
fn a_symbol_that_contradicts_its_messages_role_is_nonsense() {
    let mut peer = Liar::meet(Config::default());
    let header = peer.header(0, b"12345678", 4, 0);
    peer.role = Role::Request;
    assert_eq!(peer.say(&header, false, b"1234"), []);
    let mut second = header;
    second.symbol = 1;
    peer.role = Role::Response;
    assert_eq!(peer.say(&second, true, b"5678"), []);
    assert_eq!(peer.endpoint.counters().receiver.nonsense, 1);
    peer.role = Role::Request;
    assert_eq!(peer.say(&second, true, b"5678").len(), 1);
    assert_eq!(peer.messages()[0].role, Role::Request);
}

#[test]
fn roles_are_bits_3_and_4_of_the_flags() {
    let mut packet = [0; 20];
    packet[0] = 0x13;
    for (flags, role) in [(0x00, Role::Plain), (0x08, Role::Request), (0x10, Role::Response)] {
        packet[1] = flags;
        let prefix = Prefix {
            kind: Kind::Symbol,
            ask: false,
            partial: false,
            again: false,
            role,
            path: PathId(0),
            session: SessionId(0),
            number: 0,
        };
        assert_eq!(Prefix::parse(&packet), Ok(prefix));
    }
    packet[1] = 0x18;
    assert_eq!(Prefix::parse(&packet), Err(WireError::Undefined { field: "role", got: 0x18 }));
    packet[1] = 0x20;
    assert_eq!(Prefix::parse(&packet), Err(WireError::Undefined { field: "flags", got: 0x20 }));
}
