//! Receipts report the cost of messages, to the packet and to the nanosecond.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::error::Outcome;
use cloudburst_core::id::PathId;
use core::time::Duration;

/// The one-way delay of every link of the pair is 50 us.
const ROUND_TRIP: Duration = Duration::from_micros(100);

#[test]
fn the_first_message_waits_for_the_handshake_of_two_round_trips_and_takes_one() {
    let mut pair = Pair::new(Setup::default());
    let receipt = pair.deliver(message(500, 1));
    assert_eq!((receipt.bytes, receipt.blocks, receipt.source_symbols), (500, 1, 1));
    assert_eq!((receipt.waited, receipt.completed_in), (2 * ROUND_TRIP, ROUND_TRIP));
    assert_eq!(receipt.total(), 3 * ROUND_TRIP);
}

#[test]
fn a_message_that_finds_a_session_and_an_idle_link_does_not_wait() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(500, 1));
    pair.run_for(Duration::from_millis(1));
    let receipt = pair.deliver(message(500, 2));
    assert_eq!((receipt.waited, receipt.completed_in), (Duration::ZERO, ROUND_TRIP));
}

#[test]
fn a_message_behind_others_waits_for_its_turn_until_its_first_packet() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    let called_at = pair.now;
    let ids = [pair.send(message(93_000, 1)), pair.send(message(93_000, 2))];
    let [first, second] = ids.map(|id| match pair.outcome(id) {
        Outcome::Delivered(receipt) => receipt,
        other => panic!("{other:?}"),
    });
    assert!(second.waited > first.waited, "{second:?}");
    let since_the_call = pair.now.saturating_since(called_at);
    assert_eq!(first.total().max(second.total()), since_the_call);
}

#[test]
fn packets_are_those_that_were_put_on_the_wire_and_arrivals_name_their_paths() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.set_down(2, true);
    let before = pair.a.counters().sender.symbols_sent;
    let receipt = pair.deliver(message(93_000, 1));
    let sent = pair.a.counters().sender.symbols_sent - before;
    assert_eq!(receipt.packets as u64, sent);
    assert_eq!(receipt.source_symbols, 66, "as many as IPv4 needs");
    assert!((receipt.redundancy() * 66.0 - sent as f64).abs() < 1e-9);
    assert_eq!(receipt.arrived_on(PathId(2)), 0, "a black hole");
    let arrived: usize = receipt.arrivals.iter().map(|on| usize::from(on.count)).sum();
    assert!((66..receipt.packets).contains(&arrived), "{receipt:?}");
}

#[test]
fn losses_show_as_packets_beyond_the_source_symbols() {
    let mut pair = Pair::new(Setup::default());
    pair.deliver(message(1, 0));
    pair.set_links(Side::A, None, &lossy(0.5));
    let receipt = pair.deliver(message(93_000, 1));
    assert!(receipt.redundancy() > 1.5, "{receipt:?}");
}
