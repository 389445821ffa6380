//! Either side restarts: old packets match nothing, the outcomes of sends under way are
//! indeterminate, and later messages arrive without further action.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::Config;
use cloudburst_core::error::{Indeterminate, Outcome};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::SendOptions;
use cloudburst_netem::{LinkConfig, Loss};
use core::time::Duration;

#[test]
fn a_restarted_receiver_is_found_out_and_new_messages_reach_it() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let under_way = pair.send(message(93_000, 1));
    pair.run_for(Duration::from_micros(200));
    assert!(pair.a.counters().sender.symbols_sent > 10);
    pair.restart(Side::B);
    let waiting = pair.send(message(10, 2));
    let start = pair.now;
    assert_eq!(pair.outcome(under_way), Outcome::Unknown(Indeterminate::PeerRestarted));
    assert!(pair.now.saturating_since(start) < Duration::from_millis(500));
    pair.outcome(waiting);
    let after = pair.deliver(message(5_000, 3));
    assert_eq!(after.bytes, 5_000);
    let last = pair.b.inbox.last().unwrap();
    assert_eq!(last.bytes, message(5_000, 3));
    assert!(pair.b.counters().receiver.unknown_session > 0);
}

#[test]
fn nothing_of_a_restarted_sender_is_mixed_with_what_it_sent_before() {
    // Its first message has the same ID as the one that was cut off.
    let mut pair = Pair::new(Setup::default());
    let first = pair.send(message(93_000, 1));
    pair.run_for(Duration::from_micros(300));
    pair.restart(Side::A);
    let second = pair.send(message(93_000, 2));
    assert_eq!(first, second);
    assert!(matches!(pair.outcome(second), Outcome::Delivered(_)));
    assert_eq!(pair.b.inbox.len(), 1);
    assert_eq!(pair.b.inbox[0].bytes, message(93_000, 2));
    // The state of the former incarnation is forgotten in time.
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.b.endpoint.receive_memory(), 0);
    assert_eq!(pair.b.counters().receiver.decoders_expired, 1);
}

#[test]
fn late_packets_of_a_former_life_are_dropped() {
    let mut pair = Pair::new(Setup::default());
    pair.tap = Some(Vec::new());
    pair.deliver(message(3_000, 1));
    let old = pair.tap.take().unwrap();
    pair.restart(Side::B);
    for (side, via, packet) in &old {
        let mut packet = packet.clone();
        let host = if *side == Side::A { &mut pair.b } else { &mut pair.a };
        let via =
            cloudburst_core::path::Via { remote: side.address(via.egress), egress: 0, local: None };
        host.endpoint.handle_datagram(pair.now, via, &mut packet);
    }
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.b.inbox.len(), 0, "nothing was delivered twice");
    // A detects the restart because its next message is not answered. It cannot know whether the
    // former life took that message before it ended.
    let next = pair.send(message(10, 2));
    assert_eq!(pair.outcome(next), Outcome::Unknown(Indeterminate::PeerRestarted));
    pair.deliver(message(10, 3));
    assert_eq!(pair.b.inbox.len(), 1);
}

#[test]
fn a_replayed_handshake_brings_no_old_keys_back() {
    // Every packet that A ever sent is replayed, from its first HELLO on, long after B has
    // forgotten the session.
    let mut pair = Pair::new(Setup::default());
    pair.tap = Some(Vec::new());
    pair.deliver(message(3_000, 1));
    let old = pair.tap.take().unwrap();
    pair.run_for(Duration::from_secs(700));
    for (side, via, packet) in old.into_iter().filter(|(side, ..)| *side == Side::A) {
        let mut packet = packet;
        let via =
            cloudburst_core::path::Via { remote: side.address(via.egress), egress: 0, local: None };
        pair.b.endpoint.handle_datagram(pair.now, via, &mut packet);
    }
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.b.inbox.len(), 1);
    assert_eq!(pair.b.counters().receiver.sessions_confirmed, 1);
}

#[test]
fn a_session_that_idled_is_confirmed_before_it_is_used() {
    let mut pair = Pair::new(Setup::default());
    for idle in [10, 60, 150, 1_000] {
        pair.deliver(message(10, idle));
        pair.run_for(Duration::from_secs(idle));
    }
    pair.deliver(message(10, 9));
    assert_eq!(pair.b.inbox.len(), 5);
    assert_eq!(pair.a.delivered(), 5, "none of them is indeterminate");
}

#[test]
fn a_blackout_without_a_restart_leaves_no_message_indeterminate() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let id = pair.send_from(
        Side::A,
        message(93_000, 1),
        SendOptions::default().deadline(Duration::from_secs(30)),
    );
    pair.run_for(Duration::from_micros(100));
    for path in 0..4 {
        pair.set_down(path, true);
    }
    pair.run_for(Duration::from_secs(3));
    for path in 0..4 {
        pair.set_down(path, false);
    }
    let healed = pair.now;
    assert!(matches!(pair.outcome(id), Outcome::Delivered(_)));
    assert!(pair.now.saturating_since(healed) < Duration::from_millis(500));
    assert_eq!(pair.b.inbox.len(), 2);
}

#[test]
fn restarts_at_any_moment_deliver_nothing_twice_and_leave_nobody_hanging() {
    for moment in 0..60_u64 {
        let link = LinkConfig { loss: Loss::Independent(0.1), ..Setup::default().link };
        let a = Config { deadline: Duration::from_secs(3), ..Config::default() };
        let mut pair = Pair::new(Setup { link, a, seed: moment, ..Setup::default() });
        let mut ids: Vec<MessageId> = (0..5).map(|seed| pair.send(message(20_000, seed))).collect();
        pair.run_for(Duration::from_micros(moment * 40));
        pair.drain();
        let former = core::mem::take(&mut pair.b.inbox);
        pair.restart(Side::B);
        ids.extend((5..10).map(|seed| pair.send(message(20_000, seed))));
        pair.settle();
        assert!(ids.iter().all(|id| pair.a.outcomes.contains_key(id)));
        // In both incarnations.
        let mut seen: Vec<_> = former.iter().chain(&pair.b.inbox).map(|m| m.id).collect();
        let deliveries = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), deliveries, "{} before the restart", former.len());
        for id in ids {
            let delivered = matches!(pair.a.outcomes[&id], Outcome::Delivered(_));
            let rejected = matches!(pair.a.outcomes[&id], Outcome::Rejected(_));
            assert!(!rejected || !seen.contains(&id));
            assert!(!delivered || seen.contains(&id));
        }
    }
}

#[test]
fn a_blackout_right_after_the_handshake_leaves_no_message_indeterminate() {
    for blackout in [100, 1_000, 8_000] {
        let mut pair = Pair::new(Setup::default());
        let options = SendOptions::default().deadline(Duration::from_secs(30));
        let id = pair.send_from(Side::A, message(20_000, 1), options);
        // The OPEN has arrived, and its answer is on the way.
        pair.run_for(Duration::from_micros(160));
        pair.set_links(
            Side::A,
            None,
            &LinkConfig { loss: Loss::Independent(1.0), ..Setup::default().link },
        );
        pair.run_for(Duration::from_millis(blackout));
        assert!(pair.a.counters().sender.symbols_sent > 15);
        assert_eq!(pair.b.counters().receiver.symbols_received, 0);
        pair.set_links(Side::A, None, &Setup::default().link);
        assert!(matches!(pair.outcome(id), Outcome::Delivered(_)), "{:?}", pair.a.outcomes);
    }
}

#[test]
fn a_session_that_was_opened_and_never_used_is_not_relied_upon_for_long() {
    let mut pair = Pair::new(Setup::default());
    for (seed, rest) in [(0, 4), (1, 10), (2, 20), (3, 28)] {
        let id = pair.send(message(10, seed));
        pair.run_for(Duration::from_micros(90));
        pair.a.endpoint.cancel(id);
        pair.run_for(Duration::from_secs(rest));
        pair.deliver(message(10, seed));
        pair.restart(Side::A);
    }
}
