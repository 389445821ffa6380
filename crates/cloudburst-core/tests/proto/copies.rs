//! Two copies of one endpoint that both run, as when two virtual machines are resumed from one
//! snapshot, or one machine is resumed twice. Some promises then hold, and some do not: these tests
//! state which.

use crate::common::peer::{KEY, endpoint, open_fields};
use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::Config;
use cloudburst_core::error::{Indeterminate, Outcome};
use cloudburst_core::id::{Digest, Incarnation, MessageId};
use cloudburst_core::path::Via;
use cloudburst_core::proto::Transceiver;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Kind;
use cloudburst_core::wire::handshake::shake_hands;
use cloudburst_core::wire::symbol::SymbolView;
use core::mem;
use std::collections::BTreeMap;

/// Two pairs with the same past, so that each of their hosts is a copy of the other's.
fn copies() -> [Pair; 2] {
    [(); 2].map(|()| {
        let mut pair = Pair::new(Setup { paths: 1, ..Setup::default() });
        pair.deliver(message(10, 0));
        pair
    })
}

/// The symbols that A sends for a message, by packet number, and the outcome.
fn symbols(pair: &mut Pair, seed: u64) -> (BTreeMap<u64, Vec<u8>>, Outcome) {
    pair.tap = Some(Vec::new());
    let id = pair.send(message(3_000, seed));
    let outcome = pair.outcome(id);
    let tap = pair.tap.take().unwrap().into_iter();
    let symbols = tap.filter(|(.., packet)| Kind::of(packet) == Ok(Kind::Symbol));
    let number = |packet: &[u8]| SymbolView::parse(packet).unwrap().prefix.number;
    (symbols.map(|(.., packet)| (number(&packet), packet)).collect(), outcome)
}

#[test]
fn messages_of_a_second_copy_of_a_sender_are_neither_delivered_nor_reported_as_delivered() {
    let [mut pair, mut copy] = copies();
    let (_, outcome) = symbols(&mut pair, 1);
    assert!(matches!(outcome, Outcome::Delivered(_)));
    mem::swap(&mut pair.a, &mut copy.a);
    // Another message with the same ID.
    let (_, outcome) = symbols(&mut pair, 2);
    assert_eq!(outcome, Outcome::Unknown(Indeterminate::Deadline));
    assert!(pair.b.counters().receiver.replayed > 0);
    assert!(pair.a.counters().sender.false_stops > 0);
    let received: Vec<_> = pair.b.inbox.iter().map(|message| message.bytes.clone()).collect();
    assert_eq!(received, [message(10, 0), message(3_000, 1)]);
}

/// Not protected: the endpoint cannot know that it was copied.
#[test]
fn two_copies_of_a_sender_seal_different_packets_under_the_same_number_and_key() {
    let [mut pair, mut copy] = copies();
    let first = symbols(&mut pair, 1).0;
    let second = symbols(&mut copy, 2).0;
    let (number, first) = first.first_key_value().unwrap();
    let [first, second] = [first, &second[number]].map(|packet| {
        let view = SymbolView::parse(packet).unwrap();
        assert_eq!((view.header.symbol, view.header.length), (0, 3_000));
        &packet[view.payload_at..][..usize::from(view.header.symbol_size)]
    });
    let xor = |one: &[u8], other: &[u8]| {
        one.iter().zip(other).map(|(one, other)| one ^ other).collect::<Vec<u8>>()
    };
    let clear = xor(&message(3_000, 1), &message(3_000, 2));
    assert!(clear.starts_with(&xor(first, second)), "an observer of both learns their difference");
}

/// Not protected: the copy accepts again messages that it does not remember.
#[test]
fn a_receiver_that_is_set_back_delivers_again_what_is_replayed_to_it() {
    let [mut pair, mut copy] = copies();
    let (captured, _) = symbols(&mut pair, 1);
    mem::swap(&mut pair.b, &mut copy.b);
    for mut packet in captured.into_values() {
        let via = Via { egress: 0, local: None, remote: Side::A.address(0) };
        pair.b.endpoint.handle_datagram(pair.now, via, &mut packet);
    }
    pair.drain();
    let again = |pair: &Pair| pair.b.inbox.iter().any(|came| came.bytes == message(3_000, 1));
    assert!(again(&pair) && again(&copy));
}

/// A handshake with `responder` by an initiator that always has the same randomness. Returns a
/// digest of the same message under the keys of its session.
fn meet(responder: &mut Transceiver, host: u8) -> Digest {
    let now = Instant::from_nanos(1_000_000_000);
    let via = Via { egress: 0, local: None, remote: ([10, 0, 0, host], 7000).into() };
    let (_, keys) = shake_hands(&KEY, 1, &open_fields(Incarnation([1; 16])), |mut packet| {
        responder.handle_datagram(now, via, &mut packet);
        packet.clear();
        responder.poll_transmit(now, &mut packet).unwrap();
        packet
    });
    keys.forward.digest.block(MessageId(0), 0, b"the same")
}

#[test]
fn copies_that_begin_a_handshake_at_addresses_of_their_own_share_no_keys() {
    let mut responder = endpoint(Config::default());
    assert_ne!(meet(&mut responder, 2), meet(&mut responder, 3));
}

/// Not protected: to the responder, they are one initiator that retransmits.
#[test]
fn copies_that_begin_a_handshake_at_one_address_share_their_keys() {
    let mut responder = endpoint(Config::default());
    assert_eq!(meet(&mut responder, 2), meet(&mut responder, 2));
}
