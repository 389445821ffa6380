//! A peer that holds the key and lies: it harms nobody but its own messages.

mod common;

use cloudburst_core::config::Config;
use cloudburst_core::id::{Digest, MessageId};
use cloudburst_core::wire::{RejectReason, Verdict};
use common::peer::Liar;

fn verdicts(answers: Vec<cloudburst_core::wire::Answer>) -> Vec<Verdict> {
    answers.into_iter().map(|answer| answer.verdict).collect()
}

#[test]
fn the_truth_is_delivered() {
    let mut peer = Liar::meet(Config::default());
    let answers = peer.say_message(0, b"hello, world", 4);
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    let digest = peer.block_digest(0, 0, b"hello, world");
    assert!(matches!(&answer.verdict, Verdict::Delivered { digest: d, .. } if *d == digest));
    assert_eq!(&peer.messages()[0].bytes[..], b"hello, world");
}

#[test]
fn poisoned_payloads_are_found_by_the_digest_collected_again_and_then_rejected() {
    let mut peer = Liar::meet(Config::default());
    let mut header = peer.header(0, b"12345678", 4, 0);
    for (round, expected) in [(0, None), (1, Some(RejectReason::Corrupt))] {
        header.symbol = 2 * round;
        assert_eq!(peer.say(&header, false, b"1234"), []);
        header.symbol = 2 * round + 1;
        let answers = verdicts(peer.say(&header, false, b"xxxx"));
        let rejected: Vec<Verdict> = expected.into_iter().map(Verdict::Reject).collect();
        assert_eq!(answers, rejected);
    }
    // Rejected is for good: the truth comes too late.
    let late = verdicts(peer.say_message(0, b"12345678", 4));
    assert!(late.iter().all(|v| *v == Verdict::Reject(RejectReason::Corrupt)), "{late:?}");
    assert_eq!(peer.messages(), []);
    assert_eq!(peer.endpoint.receive_memory(), 0);
}

#[test]
fn one_poisoned_symbol_delays_a_message_and_does_not_alter_it() {
    let mut peer = Liar::meet(Config::default());
    let mut header = peer.header(0, b"12345678", 4, 0);
    peer.say(&header, false, b"1234");
    header.symbol = 1;
    peer.say(&header, false, b"xxxx");
    let answers = verdicts(peer.say_message(0, b"12345678", 4));
    assert!(matches!(answers[..], [Verdict::Delivered { .. }]), "{answers:?}");
    assert_eq!(&peer.messages()[0].bytes[..], b"12345678");
}

#[test]
fn symbols_that_contradict_the_first_one_are_ignored() {
    let mut peer = Liar::meet(Config::default());
    let first = peer.header(0, b"12345678", 4, 0);
    peer.say(&first, false, b"1234");
    let mut lies = vec![first; 6];
    lies[0].length = 9;
    lies[1].symbol_size = 5;
    lies[2].code = [1, 5];
    lies[3].block = 1;
    lies[4].digest = Digest([0; 16]);
    lies[5].length = 1 << 20;
    for lie in &lies {
        let payload = vec![0; usize::from(lie.symbol_size)];
        assert_eq!(peer.say(lie, true, &payload), [], "{lie:?}");
    }
    assert_eq!(peer.endpoint.counters().receiver.nonsense, 6);
    let answers = verdicts(peer.say_message(0, b"12345678", 4));
    assert!(matches!(answers[..], [Verdict::Delivered { .. }]));
}

#[test]
fn nonsense_is_rejected_before_anything_is_allocated() {
    let mut peer = Liar::meet(Config::default());
    let truth = peer.header(0, b"x", 1, 0);
    let mut lies = vec![truth; 4];
    lies[0].code = [99, 0];
    lies[1].length = u64::MAX;
    lies[2].length = 16 * 1024 * 1024 + 1;
    lies[3].symbol_size = 0;
    let expected = [
        RejectReason::Unsupported,
        RejectReason::TooLarge,
        RejectReason::TooLarge,
        RejectReason::Unsupported,
    ];
    for (id, (mut lie, reason)) in lies.into_iter().zip(expected).enumerate() {
        lie.message = MessageId(id as u64);
        let payload = vec![0; usize::from(lie.symbol_size)];
        assert_eq!(verdicts(peer.say(&lie, false, &payload)), [Verdict::Reject(reason)]);
    }
    assert_eq!(peer.endpoint.receive_memory(), 0);
    // An index set where the code has none is nonsense too.
    let header = peer.header(9, b"x", 1, 0);
    assert_eq!(peer.say_with(&header, true, &[0x80], b"x"), []);
    assert_eq!(peer.messages(), []);
}

#[test]
fn a_floor_raised_too_far_forgets_only_the_liars_own_messages() {
    let mut peer = Liar::meet(Config::default());
    let first = peer.header(5, b"12345678", 4, 0);
    peer.say(&first, false, b"1234");
    let mut far = peer.header(u64::MAX, b"x", 1, 0);
    far.age = 0;
    assert!(matches!(verdicts(peer.say(&far, false, b"x"))[..], [Verdict::Delivered { .. }]));
    // Message 5 is older than the floor now: no answer, no memory, no delivery.
    assert_eq!(peer.say_message(5, b"12345678", 4), []);
    assert_eq!(peer.endpoint.receive_memory(), 0);
    assert_eq!(peer.messages().len(), 1);
}

#[test]
fn a_message_is_delivered_once_however_often_it_is_told() {
    let mut peer = Liar::meet(Config::default());
    for _ in 0..5 {
        peer.say_message(0, b"12345678", 4);
    }
    assert_eq!(peer.messages().len(), 1);
    let late = verdicts(peer.say_message(0, b"87654321", 4));
    let digest = peer.block_digest(0, 0, b"12345678");
    assert!(
        late.iter().all(|v| matches!(v, Verdict::Delivered { digest: d, .. } if *d == digest)),
        "STOP carries the digest of what was delivered, not of what was claimed"
    );
    assert_eq!(peer.messages(), []);
}
