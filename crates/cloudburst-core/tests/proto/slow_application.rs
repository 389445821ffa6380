//! An application that takes no messages: BUSY, a sender that pauses, and no drops.

use crate::common::{Pair, Setup, message};
use cloudburst_core::config::{Config, Tuning};
use cloudburst_core::error::{Indeterminate, Outcome};
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
    let sent = pair.a.counters().sender.symbols_sent;
    pair.run_for(Duration::from_secs(2));
    let probes = pair.a.counters().sender.symbols_sent - sent;
    assert!(probes <= 7 * 25, "seven messages probe ten times a second: {probes}");
    pair.b.takes = true;
    pair.b.take_all(pair.now);
    let freed = pair.now;
    pair.settle();
    assert_eq!((pair.a.delivered(), pair.b.inbox.len()), (10, 10));
    assert!(pair.now.saturating_since(freed) < Duration::from_millis(250));
}

#[test]
fn many_messages_probe_a_busy_peer_less_often_each() {
    let probes = |messages: u64| {
        let mut pair = Pair::new(setup(1, 1 << 20));
        pair.b.takes = false;
        for seed in 0..=messages {
            pair.send(message(100, seed));
        }
        pair.run_for(Duration::from_secs(2));
        let sent = pair.a.counters().sender.symbols_sent;
        pair.run_for(Duration::from_secs(2));
        assert_eq!(pair.a.delivered(), 1);
        (pair.a.counters().sender.symbols_sent - sent) as f64 / messages as f64
    };
    let few = probes(40);
    let many = probes(1_000);
    assert!((15.0..=20.0).contains(&few), "each ten times a second: {few}");
    assert!((3.0..=5.0).contains(&many), "each every 400 ms: {many}");
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

#[test]
fn a_message_that_waits_for_the_application_at_its_deadline_is_unknown_and_delivered_once() {
    let mut setup = setup(1, 1 << 20);
    setup.a.deadline = Duration::from_secs(1);
    let mut pair = Pair::new(setup);
    pair.b.takes = false;
    let first = pair.send(message(500, 1));
    pair.outcome(first);
    let second = pair.send(message(500, 2));
    assert_eq!(pair.outcome(second), Outcome::Unknown(Indeterminate::Busy));
    assert_eq!(pair.b.inbox.len(), 1);
    pair.b.take_all(pair.now);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.b.inbox.len(), 2, "whole, and waiting: it is not thrown away");
}
