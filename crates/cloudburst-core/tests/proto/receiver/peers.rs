//! Quotas apply to a peer, however many sessions it has.

use super::crowd::{Crowd, Says, Voice};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::wire::Verdict;
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

/// Begins messages of 10,000 bytes until the receiver answers BUSY. Returns their number.
fn begin_all(crowd: &mut Crowd, voice: &mut Voice) -> u64 {
    let begin = |id: &u64| {
        let says = Says { age: *id as u32, ..Says::part(*id, 10_000) };
        crowd.say(voice, says) != Some(Verdict::Busy)
    };
    (0..1_000).take_while(begin).count() as u64
}

/// Whether a short message is delivered, to an application that takes it at once.
fn delivers(crowd: &mut Crowd, voice: &mut Voice, id: u64) -> bool {
    let done = crowd.delivers(voice, Says { age: id as u32, ..Says::whole(id, 10) });
    crowd.take_all();
    done
}

#[test]
fn several_handshakes_share_the_memory_of_their_peer() {
    let mut crowd = Crowd::unpaced(small());
    let begun: Vec<u64> = (0..3)
        .map(|nonce| {
            let mut session = crowd.meet_again(1, nonce);
            begin_all(&mut crowd, &mut session)
        })
        .collect();
    assert_eq!(begun, [3, 0, 0], "{} bytes of 40,000", crowd.receiver.receive_memory());
    assert!(crowd.receiver.receive_memory() <= 40_000);
    let mut other = crowd.meet(2);
    assert_eq!(begin_all(&mut crowd, &mut other), 3);
}

#[test]
fn several_handshakes_share_the_endings_of_their_peer() {
    let mut crowd = Crowd::unpaced(small());
    let mut first = crowd.meet_again(1, 1);
    let full = (0..1_000).find(|id| !delivers(&mut crowd, &mut first, *id)).unwrap();
    assert!((400..=40_000 / 64).contains(&full), "{full} endings of 64 bytes in 40,000");
    let mut second = crowd.meet_again(1, 2);
    assert!(!delivers(&mut crowd, &mut second, 1), "the same peer");
    let mut other = crowd.meet(2);
    assert!(delivers(&mut crowd, &mut other, 1));
}

#[test]
fn a_lost_message_is_not_kept_out_by_the_endings_of_those_after_it() {
    let mut crowd = Crowd::unpaced(small());
    let mut peer = crowd.meet(1);
    let refused = (1..1_000).find(|id| !delivers(&mut crowd, &mut peer, *id)).unwrap();
    assert!(delivers(&mut crowd, &mut peer, 0), "the sender waits for it before it forgets others");
    let next = Says { age: 0, ..Says::whole(refused, 10) };
    assert!(crowd.delivers(&mut peer, next), "and then there is room");
}

#[test]
fn the_quota_of_a_peer_is_free_when_its_sessions_are_forgotten() {
    let mut crowd = Crowd::unpaced(small());
    for nonce in 0..20 {
        let mut session = crowd.meet_again(1, nonce);
        assert_eq!(begin_all(&mut crowd, &mut session), 3, "handshake {nonce}");
        crowd.wait(Duration::from_secs(700));
        assert_eq!(crowd.receiver.receive_memory(), 0);
    }
}

/// Incarnations cost nothing, so they share the quota of their host.
#[test]
fn a_host_that_makes_up_incarnations_leaves_memory_to_others() {
    let mut crowd = Crowd::unpaced(Config {
        max_message: 10_000,
        tuning: Tuning {
            decode_bytes: Some(400_000),
            decode_bytes_per_peer: Some(100_000),
            ..Tuning::default()
        },
        ..Config::default()
    });
    let mut lives: Vec<Voice> =
        (0..20).map(|life| crowd.meet_as(1, 100 + life, life.into())).collect();
    let begun: Vec<u64> = lives.iter_mut().map(|session| begin_all(&mut crowd, session)).collect();
    let all: u64 = begun.iter().sum();
    assert!((27..=30).contains(&all), "nearly all: {all} of 12,000 bytes in 400,000");
    let mut modest = crowd.meet_as(1, 99, 99);
    assert!(delivers(&mut crowd, &mut modest, 0), "one incarnation more has a share of the host's");
    let mut other = crowd.meet(2);
    assert!(begin_all(&mut crowd, &mut other) >= 3);
    assert_eq!(begin_all(&mut crowd, &mut lives[0]), begun[0], "no more");
    assert!(delivers(&mut crowd, &mut other, 1_000));
    assert!(crowd.receiver.receive_memory() <= 400_000);
}

#[test]
fn a_message_that_waits_is_not_kept_out_by_a_host_that_waits_with_many() {
    let mut crowd = Crowd::unpaced(small());
    let mut lives: Vec<Voice> =
        (0..20).map(|life| crowd.meet_as(1, 100 + life, life.into())).collect();
    for round in 0..40 {
        // All of them are refused again and again, and overtaken.
        for session in &mut lives {
            begin_all(&mut crowd, session);
        }
        let mut other = crowd.meet(2 + round);
        assert!(delivers(&mut crowd, &mut other, 0), "host {round}");
    }
}
