//! The order of messages by priority, without starvation.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::Config;
use cloudburst_core::error::StartError;
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::SendOptions;

/// A pair with a session, whose A is so slow that messages queue up.
fn slow() -> Pair {
    let a = Config { capacity: 20_000_000.into(), ..Setup::default().a };
    let mut pair = Pair::new(Setup { a, ..Setup::default() });
    pair.deliver(message(1, 0));
    pair
}

fn with(priority: u8) -> SendOptions {
    SendOptions::default().priority(priority)
}

/// How many short messages of `priority`, of which 32 are always under way, are delivered before a
/// message of 93 KB that was sent with priority `long`.
fn overtaken(long: u8, priority: u8) -> usize {
    let mut pair = slow();
    let long = pair.send_from(Side::A, message(93_000, 1), with(long));
    let mut under_way: Vec<MessageId> = Vec::new();
    let mut seed = 2;
    while !pair.a.outcomes.contains_key(&long) {
        under_way.retain(|id| !pair.a.outcomes.contains_key(id));
        while under_way.len() < 32 {
            seed += 1;
            under_way.push(pair.send_from(Side::A, message(1_000, seed), with(priority)));
        }
        let first = under_way[0];
        pair.run(|pair| {
            pair.a.outcomes.contains_key(&first) || pair.a.outcomes.contains_key(&long)
        });
    }
    assert!(matches!(pair.a.outcomes[&long], cloudburst_core::error::Outcome::Delivered(_)));
    let came = pair.a.delivered() - 2;
    println!("overtaken by {came} short messages");
    came
}

#[test]
fn urgent_messages_go_first_and_background_ones_last() {
    let mut pair = slow();
    let usual = pair.send_from(Side::A, message(20_000, 1), SendOptions::default());
    let background = pair.send_from(Side::A, message(20_000, 2), with(0));
    let urgent = pair.send_from(Side::A, message(50_000, 3), with(7));
    for (first, later) in [(urgent, [usual, background]), (usual, [background, background])] {
        pair.outcome(first);
        assert!(later.iter().all(|id| !pair.a.outcomes.contains_key(id)));
    }
    pair.outcome(background);
}

#[test]
fn a_long_message_is_not_starved_by_a_stream_of_short_ones() {
    // 66 symbols in trains of 4 over 4 paths are 5 rounds, and a few more for requested symbols.
    // Each comes within 8 rounds for every other message that was ready, and a short message takes
    // a round.
    let rounds = 8;
    let came = overtaken(4, 4);
    assert!(came >= 8, "short ones go first: {came}");
    assert!(came <= rounds * 8 * 33, "and not for ever: {came}");
}

#[test]
fn the_least_urgent_message_is_not_starved_by_the_most_urgent() {
    let came = overtaken(0, 7);
    assert!((8..=8 * 8 * 33).contains(&came), "{came}");
}

#[test]
fn a_priority_that_does_not_exist_is_refused() {
    let mut pair = slow();
    let now = pair.now;
    let to = Side::B.address(0);
    let refused = pair.a.endpoint.send(now, to, message(1, 1), &with(8)).unwrap_err();
    assert!(matches!(refused, StartError::Option(_)));
    assert_eq!(refused.to_string(), "setting `priority` is 8: it must be at most 7");
}

#[test]
fn a_short_message_does_not_wait_for_a_quantum_over_all_paths() {
    let a = Config { capacity: 100_000_000.into(), ..Setup::default().a };
    let mut pair = Pair::new(Setup { a, paths: 16, ..Setup::default() });
    pair.deliver(message(1, 0));
    pair.send_from(Side::A, message(93_000, 1), SendOptions::default());
    let sent = |pair: &Pair| pair.a.endpoint.counters().sender.symbols_sent;
    let begun = sent(&pair);
    pair.run(|pair| sent(pair) > begun + 8);
    let start = pair.now;
    let short = pair.send_from(Side::A, message(1_000, 2), SendOptions::default());
    pair.outcome(short);
    // A round of one packet on each of 16 paths takes 1.9 ms at that rate, a train of four 0.5.
    let took = pair.now.saturating_since(start);
    assert!(took < core::time::Duration::from_millis(1), "{took:?}");
}
