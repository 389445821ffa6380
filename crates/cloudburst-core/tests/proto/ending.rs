//! Cancelling, deadlines, refusals, and closing: every send ends, with the true outcome.

use crate::common::{Pair, Setup, Side, lossy, message};
use bytes::Bytes;
use cloudburst_core::config::{BurstPolicy, Config, Security, Tuning};
use cloudburst_core::error::{Indeterminate, LocalError, Outcome, Rejection, StartError};
use cloudburst_core::id::MessageId;
use cloudburst_core::naming::Naming;
use cloudburst_core::path::{PathResolver, Via};
use cloudburst_core::proto::{Event, SendOptions};
use cloudburst_core::wire::{Kind, RejectReason};
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

#[test]
fn cancelling_stops_the_burst_at_once() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let options = SendOptions::default().policy(BurstPolicy::Oblivious);
    let id = pair.send_from(Side::A, message(2_000_000, 1), options);
    pair.run_for(Duration::from_millis(2));
    pair.a.endpoint.cancel(id);
    let sent = pair.a.counters().sender.symbols_sent;
    assert_eq!(pair.outcome(id), Outcome::Unknown(Indeterminate::Cancelled));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.a.counters().sender.symbols_sent, sent);
    // The next message tells the receiver to forget it.
    pair.deliver(message(1, 2));
    assert_eq!(pair.b.endpoint.receive_memory(), 0);
}

#[test]
fn cancelling_stops_a_burst_that_nobody_answers() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(90_000, 0));
    for path in 0..4 {
        pair.set_down(path, true);
    }
    let id = pair.send(message(1_000_000, 1));
    pair.run_for(Duration::from_millis(40));
    let sender = pair.a.counters().sender;
    pair.a.endpoint.cancel(id);
    assert_eq!(pair.outcome(id), Outcome::Unknown(Indeterminate::Cancelled));
    // No timer of the burst is left, nor one that probes the silent peer.
    pair.run_for(Duration::from_secs(10));
    let after = pair.a.counters().sender;
    assert_eq!(
        (after.symbols_sent, after.handshakes_sent),
        (sender.symbols_sent, sender.handshakes_sent)
    );
}

#[test]
fn a_message_cancelled_before_its_first_packet_is_reported_as_not_delivered() {
    let mut pair = Pair::new(Setup::default());
    let id = pair.send(message(10, 1));
    pair.a.endpoint.cancel(id);
    assert_eq!(pair.outcome(id), Outcome::Rejected(Rejection::Cancelled));
    pair.a.endpoint.cancel(id);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.b.inbox.len(), 0);
}

#[test]
fn a_message_to_nobody_is_rejected_at_its_deadline() {
    let mut pair = Pair::new(Setup::default());
    for path in 0..4 {
        pair.set_down(path, true);
    }
    let start = pair.now;
    let id = pair.send(message(10, 1));
    assert_eq!(pair.outcome(id), Outcome::Rejected(Rejection::NoAnswer));
    assert_eq!(pair.now.saturating_since(start), Config::default().deadline);
    // The handshake attempts end with the last message.
    let hellos = pair.a.counters().sender.handshakes_sent;
    pair.run_for(Duration::from_secs(10));
    assert!(pair.a.counters().sender.handshakes_sent <= hellos + 1);
}

/// One path, and no address of the endpoint's own.
struct Nameless;

impl PathResolver for Nameless {
    fn paths(&self, peer: SocketAddr, _ports: u16) -> Vec<Via> {
        vec![Via { egress: 0, local: None, remote: peer }]
    }

    fn naming(&self, _address: SocketAddr) -> Naming {
        Naming::Foreign
    }
}

#[test]
fn an_endpoint_that_does_not_know_its_address_accepts_nothing_and_the_sender_is_told_so() {
    // The second deadline is later than the lifetime of a nonce.
    for deadline in [Duration::from_millis(20), Duration::from_secs(12)] {
        let mut pair = Pair::new(Setup::default());
        pair.b.endpoint.set_path_resolver(Arc::new(Nameless)).unwrap();
        pair.tap = Some(Vec::new());
        let options = SendOptions::default().deadline(deadline);
        let start = pair.now;
        let id = pair.send_from(Side::A, message(10, 1), options);
        assert_eq!(pair.outcome(id), Outcome::Rejected(Rejection::NotAccepted));
        assert_eq!(pair.now.saturating_since(start), deadline);
        pair.run_for(Duration::from_secs(10));
        assert_eq!((pair.b.inbox.len(), pair.b.endpoint.receive_memory()), (0, 0));
        let receiver = pair.b.counters().receiver;
        assert!(receiver.misdirected > 0 && receiver.sessions_confirmed == 0, "{receiver:?}");
        let sent = |from| {
            let of = |(side, _, packet): &(Side, Via, Vec<u8>)| {
                (*side == from).then(|| Kind::of(packet).unwrap())
            };
            pair.tap.iter().flatten().filter_map(of).collect::<Vec<_>>()
        };
        assert!(sent(Side::B).iter().all(|kind| *kind == Kind::Retry), "silent to OPEN");
        assert!(sent(Side::A).contains(&Kind::Open) && !sent(Side::A).contains(&Kind::Symbol));
    }
}

#[test]
fn a_long_idle_peer_is_checked_before_use() {
    let mut pair = Pair::new(Setup::default());
    pair.b.endpoint.set_path_resolver(Arc::new(Nameless)).unwrap();
    let options = SendOptions::default().deadline(Duration::from_secs(12));
    let id = pair.send_from(Side::A, message(10, 1), options);
    pair.run_for(Duration::from_secs(1));
    (0..4).for_each(|path| pair.set_down(path, true));
    assert_eq!(pair.outcome(id), Outcome::Rejected(Rejection::NoAnswer));
}

#[test]
fn local_send_errors_are_reported_as_the_reason_while_they_last() {
    // Returns how A's only send ends if the host accepts the batches for which `takes` returns
    // true.
    let outcome = |takes: fn(usize) -> bool| {
        let mut pair = Pair::new(Setup::default());
        pair.send(message(10, 1));
        let mut now = pair.now;
        let mut buffer = Vec::new();
        let mut batches = 0;
        loop {
            let endpoint = &mut pair.a.endpoint;
            while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
                if !takes(batches) {
                    endpoint.not_sent(&transmit, LocalError::Denied);
                }
                batches += 1;
                buffer.clear();
            }
            if let Some(Event::Ended(_, outcome)) = endpoint.poll_event() {
                assert!(batches > 10);
                return outcome;
            }
            now = now.max(endpoint.poll_timeout().unwrap());
            endpoint.handle_timeout(now);
        }
    };
    let local = Outcome::Rejected(Rejection::Local(LocalError::Denied));
    assert_eq!(outcome(|_| false), local);
    assert_eq!(outcome(|batch| batch < 3), local.clone(), "the last results count");
    assert_eq!(outcome(|batch| batch >= 3), Outcome::Rejected(Rejection::NoAnswer));
}

#[test]
fn another_key_gets_no_answer_and_makes_no_state() {
    for key_b in [Security::pre_shared([9; 32]), Security::trusted_network()] {
        let mut pair = Pair::new(Setup { key_b, ..Setup::default() });
        let id = pair.send(message(10, 1));
        assert_eq!(pair.outcome(id), Outcome::Rejected(Rejection::NoAnswer));
        assert_eq!(pair.link_stats(Side::B).sent, 0, "a stranger gets no answer");
        assert!(pair.b.counters().receiver.refused_handshakes > 5);
        assert_eq!(pair.b.endpoint.poll_timeout(), None, "nothing to clean up");
    }
}

#[test]
fn a_trusted_network_delivers_too() {
    let trusted = Security::trusted_network();
    assert!(trusted.is_trusted_network());
    let mut pair = Pair::new(Setup { key_a: trusted.clone(), key_b: trusted, ..Setup::default() });
    pair.deliver(message(93_000, 1));
    assert_eq!(pair.b.inbox[0].bytes, message(93_000, 1));
}

#[test]
fn a_message_too_large_is_refused_by_the_caller_or_by_the_receiver() {
    let b = Config { max_message: 1_000, ..Config::default() };
    let mut pair = Pair::new(Setup { b, ..Setup::default() });
    let id = pair.send(message(1_001, 1));
    assert_eq!(pair.outcome(id), Outcome::Rejected(Rejection::ByPeer(RejectReason::TooLarge)));
    pair.deliver(message(1_000, 2));
    let max = Config::default().max_message;
    let refused = pair.a.endpoint.send(
        pair.now,
        Side::B.address(0),
        Bytes::from(vec![0; max + 1]),
        &SendOptions::default(),
    );
    assert_eq!(refused, Err(StartError::TooLarge { len: max + 1, max }));
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let mut pair = Pair::new(Setup::default());
    let options = SendOptions::default().policy(BurstPolicy::Budgeted { margin: f32::NAN });
    let refused =
        pair.a.endpoint.send(pair.now, Side::B.address(0), Bytes::new(), &options).unwrap_err();
    assert_eq!(refused.to_string(), "setting `policy.margin` is NaN: it must be between 0 and 4");
}

#[test]
fn a_full_sender_refuses_until_something_ends() {
    let a = Config {
        tuning: Tuning { send_messages: Some(2), ..Tuning::default() },
        ..Config::default()
    };
    let mut pair = Pair::new(Setup { a, ..Setup::default() });
    pair.send(message(10, 1));
    pair.send(message(10, 2));
    let now = pair.now;
    let to = Side::B.address(0);
    let at_once = SendOptions::default().wait(false);
    let full = pair.a.endpoint.send(now, to, Bytes::new(), &at_once);
    assert_eq!(full, Err(StartError::Full { messages: 2, bytes: 20 }));
    pair.settle();
    pair.deliver(message(10, 3));
}

#[test]
fn a_closing_receiver_takes_no_new_message_and_finishes_the_others() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let begun = pair.send(message(93_000, 1));
    pair.run_for(Duration::from_micros(300));
    pair.b.endpoint.close(pair.now);
    let late = pair.send(message(10, 2));
    assert_eq!(pair.outcome(late), Outcome::Rejected(Rejection::ByPeer(RejectReason::Closing)));
    assert!(matches!(pair.outcome(begun), Outcome::Delivered(_)));
    let now = pair.now;
    let to = Side::A.address(0);
    let refused = pair.b.endpoint.send(now, to, Bytes::new(), &SendOptions::default());
    assert_eq!(refused, Err(StartError::Closing));
}

#[test]
fn an_order_that_is_not_for_these_paths_is_refused_by_the_sender() {
    let config = Config { order: "drb:fat-tree:8".parse().unwrap(), ..Setup::default().a };
    let mut pair = Pair::new(Setup { a: config, ..Setup::default() });
    let now = pair.now;
    let to = Side::B.address(0);
    let refused = pair.a.endpoint.send(now, to, Bytes::new(), &SendOptions::default());
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the paths to 10.0.0.2:7000 cannot be put in order: setting `order` is drb:fat-tree:8, \
         of 16 paths: it must fit the path map, which has 4"
    );
    assert_eq!(pair.a.endpoint.unfinished(), 0);
    // Messages to the peer still work: answers return on the path of the packets.
    let id = pair.send_from(Side::B, message(10, 1), SendOptions::default());
    pair.settle();
    assert!(matches!(pair.b.outcomes[&id], Outcome::Delivered(_)));
}

/// Stops a side, and gives it time to send its last reports.
fn stop(pair: &mut Pair, side: Side) {
    let now = pair.now;
    pair.host(side).endpoint.stop(now);
    pair.run_for(Duration::from_millis(10));
}

#[test]
fn a_message_to_an_endpoint_that_has_stopped_was_certainly_not_delivered() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    stop(&mut pair, Side::B);
    for path in 0..4 {
        pair.set_down(path, true);
    }
    let sent = pair.a.counters().sender.symbols_sent;
    let id = pair.send(message(10, 1));
    assert_eq!(pair.outcome(id), Outcome::Rejected(Rejection::NoAnswer));
    assert_eq!(pair.a.counters().sender.symbols_sent, sent);
}

#[test]
fn an_endpoint_that_has_stopped_does_not_say_that_its_sessions_are_alive() {
    for killed_after in [0, 50, 100, 200, 500].map(Duration::from_micros) {
        let mut pair = Pair::new(Setup::default());
        pair.deliver(message(1, 0));
        stop(&mut pair, Side::B);
        // It still receives packets until its process ends.
        let id = pair.send(message(10, 1));
        pair.run_for(killed_after);
        for path in 0..4 {
            pair.set_down(path, true);
        }
        assert_eq!(pair.outcome(id), Outcome::Rejected(Rejection::NoAnswer), "{killed_after:?}");
    }
}

#[test]
fn a_peer_that_never_sent_anything_is_told_that_the_session_has_ended() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    stop(&mut pair, Side::A);
    for path in 0..4 {
        pair.set_down(path, true);
    }
    let id = pair.send_from(Side::B, message(10, 1), SendOptions::default());
    pair.run(|pair| pair.b.outcomes.contains_key(&id));
    assert_eq!(pair.b.outcomes[&id], Outcome::Rejected(Rejection::NoAnswer));
    assert_eq!(pair.b.counters().sender.symbols_sent, 0);
}

#[test]
fn a_message_after_a_stop_and_a_restart_waits_for_a_handshake_alone() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    stop(&mut pair, Side::B);
    pair.restart(Side::B);
    let start = pair.now;
    pair.deliver(message(10, 1));
    assert!(pair.now.saturating_since(start) < Duration::from_millis(2));
}

/// A pair in which A has sent messages to B, which has stopped, and whose answers are lost until
/// then. Returns the messages.
fn stopped_in_the_middle(moment: Duration) -> (Pair, Vec<MessageId>) {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let ids = (0..20).map(|seed| pair.send(message(1_000 * seed as usize, seed))).collect();
    pair.set_links(Side::B, None, &lossy(1.0));
    pair.run_for(moment);
    pair.set_links(Side::B, None, &Setup::default().link);
    let now = pair.now;
    pair.b.endpoint.stop(now);
    pair.run_for(Duration::from_millis(10));
    (pair, ids)
}

#[test]
fn messages_that_an_endpoint_had_not_delivered_when_it_stopped_go_to_its_successor() {
    let mut moved = 0;
    for moment in (0..20).map(|at| Duration::from_micros(100 * at)) {
        let (mut pair, ids) = stopped_in_the_middle(moment);
        let before = core::mem::take(&mut pair.b.inbox);
        pair.restart(Side::B);
        pair.settle();
        for id in ids {
            let outcome = &pair.a.outcomes[&id];
            let old = before.iter().any(|message| message.id == id);
            let new = pair.b.inbox.iter().any(|message| message.id == id);
            let what = format!("{id} after {moment:?}: {outcome:?}, delivered: {old}, {new}");
            match outcome {
                Outcome::Delivered(_) => assert!(old != new, "{what}"),
                Outcome::Rejected(Rejection::ByPeer(RejectReason::Closing)) => {
                    assert!(!old && !new, "{what}");
                }
                // The last STOPs come with the end of the session, but not all.
                _ => assert!(old && !new && before.len() > 15, "{what}"),
            }
            moved += usize::from(new);
        }
    }
    assert!(moved > 40, "{moved}");
}

#[test]
fn messages_that_an_endpoint_had_not_delivered_when_it_stopped_are_certainly_not_delivered() {
    let (mut pair, ids) = stopped_in_the_middle(Duration::from_micros(300));
    for path in 0..4 {
        pair.set_down(path, true);
    }
    pair.settle();
    let delivered = |id: &MessageId| pair.b.inbox.iter().any(|message| message.id == *id);
    for id in &ids {
        match &pair.a.outcomes[id] {
            Outcome::Rejected(Rejection::NoAnswer) => assert!(!delivered(id)),
            Outcome::Delivered(_) => assert!(delivered(id)),
            other => panic!("{id}: {other:?}, delivered: {}", delivered(id)),
        }
    }
}

#[test]
fn messages_that_began_after_a_peer_said_that_it_closes_go_to_its_successor() {
    for closing_for in [0, 100, 300, 1_000, 3_000].map(Duration::from_micros) {
        let mut pair = Pair::new(Setup::default());
        pair.deliver(message(1, 0));
        let now = pair.now;
        pair.b.endpoint.close(now);
        let refused = pair.send(message(10, 1));
        let outcome = pair.outcome(refused);
        assert_eq!(outcome, Outcome::Rejected(Rejection::ByPeer(RejectReason::Closing)));
        let later = pair.send(message(10, 2));
        // It ends without another word, as if that had been lost.
        pair.set_links(Side::B, None, &lossy(1.0));
        pair.run_for(closing_for);
        pair.restart(Side::B);
        pair.set_links(Side::B, None, &Setup::default().link);
        assert!(matches!(pair.outcome(later), Outcome::Delivered(_)), "{closing_for:?}");
        assert_eq!(pair.b.inbox.len(), 1);
    }
}

#[test]
fn a_message_that_began_after_a_peer_said_that_it_closes_is_certainly_not_delivered() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let now = pair.now;
    pair.b.endpoint.close(now);
    let refused = pair.send(message(10, 1));
    pair.outcome(refused);
    let options = SendOptions::default().deadline(Duration::from_millis(30));
    let later = pair.send_from(Side::A, message(10, 2), options);
    for path in 0..4 {
        pair.set_down(path, true);
    }
    let closing = Outcome::Rejected(Rejection::ByPeer(RejectReason::Closing));
    assert_eq!(pair.outcome(later), closing);
}
