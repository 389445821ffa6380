//! An application that takes no messages: BUSY, a sender that pauses, and no drops.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::error::{Indeterminate, Outcome, Rejection};
use cloudburst_core::proto::SendOptions;
use cloudburst_core::wire::RejectReason;
use cloudburst_netem::LinkConfig;
use core::time::Duration;

fn setup(messages: usize, bytes: usize) -> Setup {
    let b = Config {
        tuning: Tuning {
            receive_messages: Some(messages),
            receive_bytes: Some(bytes),
            ..Tuning::default()
        },
        ..Config::default()
    };
    let a = Config { deadline: Duration::from_secs(30), ..Config::default() };
    Setup { a, b, ..Setup::default() }
}

#[test]
fn senders_pause_while_the_queue_is_full_and_go_on_when_it_is_not() {
    let mut pair = Pair::new(setup(3, 1 << 20));
    pair.b.takes = false;
    for seed in 0..10 {
        pair.send(message(5_000, seed));
    }
    pair.run_for(Duration::from_secs(2));
    assert_eq!((pair.a.delivered(), pair.b.inbox.len()), (3, 3));
    assert!(pair.a.counters().sender.busy_received > 0);
    let probes = pair.a.counters().sender.probes_sent;
    let symbols = pair.a.counters().sender.symbols_sent;
    pair.run_for(Duration::from_secs(2));
    let probes = pair.a.counters().sender.probes_sent - probes;
    assert!(probes <= 7, "each waits for STOP, and probes in case it is lost: {probes}");
    assert_eq!(pair.a.counters().sender.symbols_sent, symbols);
    pair.b.takes = true;
    pair.b.take_all(pair.now);
    let freed = pair.now;
    pair.settle();
    assert_eq!((pair.a.delivered(), pair.b.inbox.len()), (10, 10));
    assert!(pair.now.saturating_since(freed) < Duration::from_millis(250));
}

/// What A has sent in symbols and probes, in bytes of UDP payload.
fn sent(pair: &Pair) -> u64 {
    let counters = pair.a.counters().sender;
    counters.symbol_bytes_sent + 58 * counters.probes_sent
}

#[test]
fn an_application_that_takes_nothing_costs_at_most_twice_what_it_takes_later() {
    // The receiver holds all messages, or a tenth of them.
    for decode_bytes in [64 << 20, 2 << 20] {
        let mut setup = setup(10, 1 << 20);
        setup.b.tuning.decode_bytes = Some(decode_bytes);
        setup.b.tuning.decode_bytes_per_peer = Some(decode_bytes);
        setup.b.max_message = 1 << 20;
        setup.a.deadline = Duration::from_secs(60);
        let mut pair = Pair::new(setup);
        pair.b.takes = false;
        (0..1_000).for_each(|seed| {
            pair.send(message(5_000, seed));
        });
        pair.run_for(Duration::from_secs(20));
        assert_eq!(pair.b.inbox.len(), 10);
        pair.b.takes = true;
        pair.b.take_all(pair.now);
        let freed = pair.now;
        pair.settle();
        let took = pair.now.saturating_since(freed);
        let sent = sent(&pair) as f64 / (1_000.0 * 5_000.0);
        println!("{decode_bytes}: {sent:.2} times, {took:?}");
        assert_eq!(pair.a.delivered(), 1_000);
        assert!(sent <= 2.0, "{sent} times what was delivered");
        assert!(took < Duration::from_millis(600), "{took:?}");
    }
}

#[test]
fn bytes_bound_the_queue_as_messages_do() {
    let mut pair = Pair::new(setup(1_000, 100_000));
    pair.b.takes = false;
    for seed in 0..10 {
        pair.send(message(40_000, seed));
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.b.inbox.len(), 2);
    // A message larger than the whole queue is delivered if the queue is empty.
    pair.b.takes = true;
    pair.b.take_all(pair.now);
    pair.settle();
    pair.deliver(message(300_000, 99));
    assert_eq!(pair.b.inbox.len(), 11);
}

/// What a message that the receiver refuses, or holds, comes to by its deadline.
fn given_up(decode_bytes: usize, length: usize, link: LinkConfig) -> (Outcome, Pair) {
    let mut setup = Setup { link, ..setup(1, 1 << 20) };
    setup.b.tuning.decode_bytes = Some(decode_bytes);
    setup.b.tuning.decode_bytes_per_peer = Some(decode_bytes);
    setup.b.max_message = decode_bytes / 2;
    setup.a.deadline = Duration::from_secs(1);
    let mut pair = Pair::new(setup);
    pair.b.takes = false;
    pair.deliver(message(500, 1));
    let other = SendOptions::default().deadline(Duration::from_secs(30));
    // Waits for the application, and leaves little memory.
    pair.send_from(Side::A, message(decode_bytes / 2, 2), other);
    pair.run_for(Duration::from_millis(100));
    let last = pair.send(message(length, 3));
    let outcome = pair.outcome(last);
    (outcome, pair)
}

#[test]
fn a_message_for_which_there_was_no_capacity_is_certainly_not_delivered() {
    // Held, and refused.
    for length in [500, 40_000] {
        let (outcome, mut pair) = given_up(100_000, length, Setup::default().link);
        assert_eq!(outcome, Outcome::Rejected(Rejection::ByPeer(RejectReason::Busy)), "{length}");
        pair.b.takes = true;
        pair.b.take_all(pair.now);
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.b.inbox.len(), 2, "{length}: the others");
    }
}

#[test]
fn a_packet_that_is_late_delivers_nothing_that_was_given_up() {
    let mut setup = setup(1, 1 << 20);
    setup.a.deadline = Duration::from_secs(1);
    setup.b.tuning.decode_bytes = Some(100_000);
    setup.b.tuning.decode_bytes_per_peer = Some(100_000);
    setup.b.max_message = 50_000;
    let mut pair = Pair::new(setup);
    pair.b.takes = false;
    pair.deliver(message(500, 1));
    let other = SendOptions::default().deadline(Duration::from_secs(30));
    pair.send_from(Side::A, message(50_000, 2), other);
    pair.run_for(Duration::from_millis(100));
    // All but its first packets take two seconds.
    let late = LinkConfig { delay: Duration::from_secs(2), ..Setup::default().link };
    pair.set_links(Side::A, Some(1), &late);
    let last = pair.send(message(40_000, 3));
    assert_eq!(pair.outcome(last), Outcome::Rejected(Rejection::ByPeer(RejectReason::Busy)));
    pair.b.takes = true;
    pair.b.take_all(pair.now);
    pair.set_links(Side::A, Some(1), &Setup::default().link);
    pair.run_for(Duration::from_secs(4));
    assert_eq!(pair.b.inbox.len(), 2, "the others");
    // Later messages begin as ever.
    pair.deliver(message(40_000, 4));
}

#[test]
fn without_an_answer_to_its_final_probes_a_message_is_unknown_and_delivered_at_most_once() {
    let mut setup = setup(1, 1 << 20);
    setup.a.deadline = Duration::from_secs(1);
    let mut pair = Pair::new(setup);
    pair.b.takes = false;
    pair.deliver(message(500, 1));
    let second = pair.send(message(500, 2));
    pair.run_for(Duration::from_millis(500));
    (0..4).for_each(|path| pair.set_down(path, true));
    assert_eq!(pair.outcome(second), Outcome::Unknown(Indeterminate::Busy));
    pair.b.take_all(pair.now);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.b.inbox.len(), 2, "whole, and waiting: it is not thrown away");
}
