//! Messages that the application does not take wait for a while, and do not delay others.

use super::crowd::{Crowd, Says, Voice};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::wire::{Role, Verdict};
use core::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Room for two messages of each role, and for the decoders of some 270 messages of 1,000 bytes.
fn small() -> Config {
    Config {
        max_message: 10_000,
        tuning: Tuning {
            receive_messages: Some(2),
            decode_bytes: Some(400_000),
            decode_bytes_per_peer: Some(100_000),
            ..Tuning::default()
        },
        ..Config::default()
    }
}

/// Peers 1 to 10 send 100 messages of `role` each, none of which the application takes.
fn flood(crowd: &mut Crowd, role: Role) -> Vec<Voice> {
    let mut peers: Vec<Voice> =
        (1..=10).map(|who| crowd.meet_again(who, role as u64 + 1)).collect();
    for peer in &mut peers {
        peer.role = role;
        for id in 0..100 {
            let _ = crowd.say(peer, Says { age: id as u32, ..Says::whole(id, 1_000) });
        }
    }
    peers
}

#[test]
fn requests_that_nobody_serves_are_not_in_the_way_of_plain_messages() {
    let mut crowd = Crowd::unpaced(small());
    let mut peers = flood(&mut crowd, Role::Request);
    assert_eq!(crowd.messages().len(), 2);
    let mut honest = crowd.meet(11);
    assert!(crowd.delivers(&mut honest, Says::whole(0, 10_000)), "{:?}", crowd.receiver);
    // Other messages of the same peer are not delayed either.
    let peer = &mut peers[0];
    peer.role = Role::Plain;
    let says = Says { age: 100, ..Says::whole(100, 10_000) };
    assert!(crowd.delivers(peer, says), "{:?}", crowd.receiver);
}

#[test]
fn responses_get_through_where_nothing_else_is_taken() {
    let mut crowd = Crowd::unpaced(small());
    flood(&mut crowd, Role::Request);
    flood(&mut crowd, Role::Plain);
    let mut callee = crowd.meet(11);
    callee.role = Role::Response;
    for id in 0..20 {
        assert!(crowd.delivers(&mut callee, Says { age: id as u32, ..Says::whole(id, 10_000) }));
    }
}

#[test]
fn a_complete_message_whose_sender_is_unresponsive_is_dropped_and_may_be_sent_again() {
    let mut crowd = Crowd::unpaced(small());
    let mut peer = crowd.meet(1);
    crowd.fill(&mut peer, 0..2, 100);
    assert_eq!(crowd.messages().len(), 2);
    assert_eq!(crowd.say(&mut peer, Says::whole(2, 100)), Some(Verdict::Held));
    crowd.wait(14 * SECOND);
    assert!(crowd.receiver.receive_memory() > 0);
    crowd.wait(SECOND);
    assert_eq!((crowd.receiver.receive_memory(), crowd.counters().messages_dropped), (0, 1));
    while crowd.receiver.recv().is_some() {}
    assert_eq!(crowd.messages(), [], "its sender no longer waits for it");
    assert!(crowd.delivers(&mut peer, Says::whole(2, 100)), "its end was never reported");
    assert_eq!(crowd.messages().len(), 1);
}

#[test]
fn a_complete_message_waits_for_the_application_while_its_sender_retries() {
    let mut crowd = Crowd::unpaced(small());
    let mut peer = crowd.meet(1);
    crowd.fill(&mut peer, 0..2, 100);
    assert_eq!(crowd.messages().len(), 2);
    for _ in 0..60 {
        assert_eq!(crowd.say(&mut peer, Says::whole(2, 100)), Some(Verdict::Held));
        crowd.wait(10 * SECOND);
    }
    crowd.receiver.recv().unwrap();
    assert_eq!(crowd.messages().len(), 1);
}

#[test]
fn a_quiet_peer_does_not_wait_behind_all_messages_of_a_busy_one() {
    let mut crowd = Crowd::unpaced(small());
    let mut busy = crowd.meet(1);
    let mut quiet = crowd.meet(2);
    crowd.fill(&mut busy, 0..100, 100);
    assert_eq!(crowd.say(&mut quiet, Says::whole(0, 100)), Some(Verdict::Held));
    let from_quiet = |message: &cloudburst_core::proto::Message| message.peer == quiet.address;
    let taken = core::iter::from_fn(|| crowd.receiver.recv());
    let before = taken.take_while(|message| !from_quiet(message)).count();
    assert!(before <= 4, "two in the queue, one of those that wait: {before}");
}

#[test]
fn peers_take_turns_in_the_queue_of_the_application() {
    let mut crowd = Crowd::unpaced(Config::default());
    let mut busy = crowd.meet(1);
    let mut quiet = crowd.meet(2);
    crowd.fill(&mut busy, 0..100, 100);
    assert!(crowd.delivers(&mut quiet, Says::whole(0, 100)));
    let taken = core::iter::from_fn(|| crowd.receiver.recv());
    let order: Vec<_> = taken.map(|message| (message.peer, message.id.0)).collect();
    assert_eq!(order.len(), 101);
    assert_eq!(order.iter().position(|(peer, _)| *peer == quiet.address), Some(2));
    let of_busy = order.iter().filter(|(peer, _)| *peer == busy.address);
    assert!(of_busy.map(|(_, id)| *id).eq(0..100), "in the order in which they were completed");
}
