//! Thousands of messages at once: none waits for another, and memory stays bounded.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::config::Config;
use cloudburst_core::proto::SendOptions;
use std::collections::BTreeMap;

#[test]
fn thousands_of_messages_at_once_all_arrive_once() {
    let a = Config { capacity: 10_000_000_000.into(), ..Config::default() };
    let mut pair = Pair::new(Setup { a, link: lossy(0.2), ..Setup::default() });
    let mut expected = BTreeMap::new();
    for seed in 0..5_000 {
        let bytes = message(seed as usize % 2_000, seed);
        expected.insert(pair.send(bytes.clone()), bytes);
    }
    pair.settle();
    assert_eq!(pair.a.delivered(), 5_000);
    assert_eq!(pair.b.inbox.len(), 5_000);
    for message in &pair.b.inbox {
        assert_eq!(expected.remove(&message.id).as_ref(), Some(&message.bytes));
    }
    assert_eq!(pair.b.endpoint.receive_memory(), 0);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut pair = Pair::new(Setup { seed, link: lossy(0.3), ..Setup::default() });
        for length in [0, 1, 3_000, 93_000, 400_000] {
            pair.send_from(Side::A, message(length, 1), SendOptions::default());
            pair.send_from(Side::B, message(length, 2), SendOptions::default());
        }
        pair.settle();
        (pair.now, pair.a.counters(), pair.b.counters())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3).0, run(4).0);
}
