//! Floods: memory stays within its limits, and no peer takes the share of another.

use crate::common::peer::{KEY, Liar, endpoint, open_fields};
use crate::common::{Pair, Setup, message};
use cloudburst_core::config::{Config, ListenPorts, Security, Tuning};
use cloudburst_core::id::Incarnation;
use cloudburst_core::path::Via;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Verdict;
use cloudburst_core::wire::handshake::shake_hands;
use core::time::Duration;

fn small() -> Config {
    Config {
        max_message: 10_000,
        tuning: Tuning {
            decode_bytes: Some(100_000),
            decode_bytes_per_peer: Some(40_000),
            ..Tuning::default()
        },
        ..Config::default()
    }
}

/// Begins messages of ten symbols of 1,000 bytes until the receiver answers BUSY.
fn flood(peer: &mut Liar, from: u64) -> u64 {
    for id in from..from + 1_000 {
        let header = peer.header(id, &[0; 9_984], 1_000, 0);
        let header = cloudburst_core::wire::SymbolHeader { age: (id - from) as u32, ..header };
        let answers = peer.say(&header, false, &[0; 1_000]);
        if let [answer] = &answers[..] {
            assert_eq!(answer.verdict, Verdict::Busy);
            return id - from;
        }
    }
    panic!("1,000 messages were begun, and none was refused");
}

#[test]
fn begun_messages_are_bounded_by_peer_and_in_all() {
    let mut first = Liar::meet(small());
    let begun = flood(&mut first, 0);
    assert_eq!(begun, 3, "of 10,000 bytes, and some bookkeeping, in 40,000");
    assert!(first.endpoint.receive_memory() <= 40_000);
    let mut second = Liar::join(first.endpoint, 2);
    assert_eq!(flood(&mut second, 0), 3);
    let mut third = Liar::join(second.endpoint, 3);
    assert_eq!(flood(&mut third, 0), 1, "its share of the rest of 100,000");
    assert!(third.endpoint.receive_memory() <= 100_000);
    // Messages under way can still be completed: no message that makes progress is evicted.
    let answers = third.say_message(0, &[0; 9_984], 1_000);
    assert!(answers.iter().any(|a| matches!(a.verdict, Verdict::Delivered { .. })));
}

#[test]
fn stalled_messages_expire_and_make_room() {
    let mut peer = Liar::meet(small());
    let begun = flood(&mut peer, 0);
    for _ in 0..17 {
        peer.now += Duration::from_secs(1);
        peer.endpoint.handle_timeout(peer.now);
    }
    assert_eq!(peer.endpoint.receive_memory(), 0);
    assert_eq!(peer.endpoint.counters().receiver.decoders_expired, begun);
    assert_eq!(flood(&mut peer, 10), 3);
}

#[test]
fn handshakes_without_symbols_are_bounded_and_forgotten() {
    // On a link with room for all answers at once.
    let mut endpoint = endpoint(Config { capacity: 1_000_000_000_000.into(), ..Config::default() });
    let now = Instant::from_nanos(1_000_000_000);
    for nonce in 0..5_000 {
        let via = Via {
            egress: 0,
            local: None,
            remote: ([10, 1, (nonce / 256) as u8, nonce as u8], 1).into(),
        };
        let fields = open_fields(Incarnation([1; 16]));
        shake_hands(&KEY, nonce, &fields, |mut packet| {
            let cause = packet.len();
            endpoint.handle_datagram(now, via, &mut packet);
            packet.clear();
            let transmit = endpoint.poll_transmit(now, &mut packet).unwrap();
            assert_eq!(transmit.via, via);
            assert!(packet.len() <= cause, "no larger than its cause");
            packet
        });
    }
    let debug = format!("{endpoint:?}");
    assert!(debug.contains("sessions: 0, half_open: 4096,"), "{debug}");
    let mut later = now;
    for _ in 0..20 {
        later += Duration::from_secs(1);
        endpoint.handle_timeout(later);
    }
    assert_eq!(endpoint.poll_timeout(), None, "all are forgotten");
}

#[test]
fn a_sender_that_meets_a_full_receiver_waits_and_gets_through() {
    let b = small();
    let mut pair = Pair::new(Setup { b, ..Setup::default() });
    let ids: Vec<_> = (0..200).map(|seed| pair.send(message(9_000, seed))).collect();
    pair.settle();
    assert_eq!(pair.a.delivered(), ids.len());
    assert_eq!(pair.b.inbox.len(), ids.len());
}

#[test]
fn idle_peers_give_way_to_new_ones() {
    let config =
        Config { tuning: Tuning { max_peers: Some(1), ..Tuning::default() }, ..Config::default() };
    let mut endpoint = cloudburst_core::proto::Transceiver::new(
        config,
        ListenPorts::one(7000),
        &Security::pre_shared(KEY),
        cloudburst_core::rng::Seed::new([1; 32]),
        Box::new(cloudburst_core::path::Egresses(1)),
    )
    .unwrap();
    let now = Instant::from_nanos(1);
    let options = cloudburst_core::proto::SendOptions::default().wait(false);
    let first = endpoint.send(now, ([10, 0, 0, 1], 1).into(), b"x"[..].into(), &options).unwrap();
    let busy = endpoint.send(now, ([10, 0, 0, 2], 1).into(), b"x"[..].into(), &options);
    assert!(busy.is_err(), "the first has a message under way");
    endpoint.cancel(first);
    endpoint.send(now, ([10, 0, 0, 2], 1).into(), b"x"[..].into(), &options).unwrap();
}
