//! Peers take turns: answers to one neither displace nor delay those to another.

use super::crowd::{Crowd, Says, Voice};
use cloudburst_core::config::Config;
use cloudburst_core::path::Via;
use cloudburst_core::wire::Kind;

/// Has the receiver answer 5,000 messages of a peer, each with REJECT.
fn flood(crowd: &mut Crowd, peer: &mut Voice) {
    for id in 0..5_000 {
        crowd.hear(peer, Says { symbol_size: 16, ..Says::part(id, 100_000) });
    }
}

/// The number of batches that leave, up to the first one for `peer`.
fn batches_before(crowd: &mut Crowd, peer: &Voice) -> Option<usize> {
    let batches = core::iter::from_fn(|| crowd.poll_transmit(&mut Vec::new()));
    let batches: Vec<Via> = batches.collect();
    batches.iter().position(|via| via.remote == peer.address)
}

fn small() -> Config {
    Config { max_message: 10_000, ..Config::default() }
}

#[test]
fn answers_to_one_peer_do_not_displace_answers_to_another() {
    let mut crowd = Crowd::unpaced(small());
    let mut modest = crowd.meet(1);
    let mut loud = crowd.meet(2);
    crowd.hear(&mut modest, Says::whole(0, 10));
    flood(&mut crowd, &mut loud);
    assert_eq!(batches_before(&mut crowd, &modest), Some(0));
    assert!(crowd.counters().answers_dropped >= 5_000 - 4_096);
}

#[test]
fn answers_to_one_peer_do_not_delay_answers_to_another() {
    let mut crowd = Crowd::unpaced(small());
    let mut modest = crowd.meet(1);
    let mut loud = crowd.meet(2);
    flood(&mut crowd, &mut loud);
    crowd.hear(&mut modest, Says::whole(0, 10));
    let before = batches_before(&mut crowd, &modest).unwrap();
    assert!(before <= 1, "{before} batches");
}

#[test]
fn handshakes_of_one_peer_do_not_delay_those_of_another() {
    let mut crowd = Crowd::unpaced(small());
    let hear = |crowd: &mut Crowd, who, nonce| {
        let via = Via { egress: 0, local: None, remote: super::crowd::address(who) };
        let mut hello = Crowd::hello(nonce);
        crowd.receiver.handle_datagram(crowd.now, via, &mut hello);
    };
    (0..5_000).for_each(|nonce| hear(&mut crowd, 1, nonce));
    hear(&mut crowd, 2, 1);
    let modest = super::crowd::address(2);
    let replies = core::iter::from_fn(|| crowd.poll_transmit(&mut Vec::new()));
    let replies: Vec<Via> = replies.collect();
    assert!(replies.len() <= 2 * 256, "{}", replies.len());
    let before = replies.iter().position(|via| via.remote == modest);
    assert!(before.is_some_and(|before| before <= 1), "{before:?} of {}", replies.len());
}

#[test]
fn handshakes_and_answers_take_turns() {
    let mut crowd = Crowd::unpaced(small());
    let mut peer = crowd.meet(1);
    flood(&mut crowd, &mut peer);
    let via = Via { egress: 0, local: None, remote: peer.address };
    for nonce in 0..200 {
        let mut hello = Crowd::hello(nonce);
        crowd.receiver.handle_datagram(crowd.now, via, &mut hello);
    }
    let kinds: Vec<Kind> = core::iter::from_fn(|| {
        let mut packet = Vec::new();
        crowd.poll_transmit(&mut packet).map(|_| Kind::of(&packet).unwrap())
    })
    .take(20)
    .collect();
    let replies = kinds.iter().filter(|kind| **kind == Kind::Retry).count();
    assert_eq!(replies, 10, "{kinds:?}");
}
