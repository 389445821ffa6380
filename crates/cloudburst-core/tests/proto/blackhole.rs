//! Some paths silently drop all packets: the others carry the message.

use crate::common::{Pair, Setup, Side, message};
use core::time::Duration;

#[test]
fn any_one_path_that_is_left_carries_every_message() {
    for alive in 0..4 {
        let mut pair = Pair::new(Setup { seed: alive.into(), ..Setup::default() });
        for path in (0..4).filter(|path| *path != alive) {
            pair.set_down(path, true);
        }
        for (seed, length) in [1, 1_000, 5_000, 20_000, 93_000].into_iter().enumerate() {
            let receipt = pair.deliver(message(length, seed as u64));
            assert!(receipt.completed_in < Duration::from_millis(250), "{receipt:?}");
        }
        assert!(pair.link_stats(Side::A).blackholed > 0);
        assert_eq!(pair.b.inbox.len(), 5);
    }
}

#[test]
fn paths_that_fail_one_after_the_other_under_way_lose_nothing() {
    let mut pair = Pair::new(Setup::default());
    let mut sent = 0;
    for path in [0, 1, 2, 3] {
        pair.set_down(path, true);
        for seed in 0..10 {
            pair.send(message(20_000, seed));
            sent += 1;
        }
        pair.run_for(Duration::from_millis(20));
        pair.set_down(path, false);
    }
    pair.settle();
    assert_eq!(pair.a.delivered(), sent);
    assert_eq!(pair.b.inbox.len(), sent);
}

#[test]
fn a_network_that_comes_back_is_used_again_at_once() {
    let mut pair = Pair::new(Setup::default());
    for path in 0..4 {
        pair.set_down(path, true);
    }
    let id = pair.send(message(93_000, 1));
    pair.run_for(Duration::from_secs(4));
    assert!(pair.a.counters().sender.handshakes_sent > 10, "it keeps sending handshakes");
    for path in 0..4 {
        pair.set_down(path, false);
    }
    let healed = pair.now;
    pair.outcome(id);
    assert_eq!(pair.a.delivered(), 1);
    assert!(pair.now.saturating_since(healed) < Duration::from_millis(400));
}

#[test]
fn three_dead_paths_and_loss_on_the_fourth_cost_milliseconds() {
    for seed in 0..10 {
        let mut pair =
            Pair::new(Setup { seed, link: crate::common::lossy(0.2), ..Setup::default() });
        for path in 1..4 {
            pair.set_down(path, true);
        }
        for length in [1_500, 5_000, 10_000, 20_000, 50_000, 93_000] {
            let receipt = pair.deliver(message(length, seed));
            assert!(receipt.completed_in < Duration::from_millis(60), "{seed}: {receipt:?}");
        }
    }
}
