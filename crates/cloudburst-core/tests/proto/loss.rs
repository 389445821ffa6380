//! Loss costs symbols, never messages: whatever the loss rate, each message arrives once.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::config::{BurstPolicy, Config, Tuning};
use cloudburst_core::proto::SendOptions;
use cloudburst_netem::{LinkConfig, Loss};
use core::time::Duration;
use std::collections::BTreeMap;

/// Sends messages of many sizes over `link` in both directions, and checks each at the end.
fn all_arrive_once(link: LinkConfig, policy: BurstPolicy, count: u64) -> Pair {
    let a = Config {
        policy,
        deadline: Duration::from_secs(60),
        tuning: Tuning { max_redundancy: 200, ..Tuning::default() },
        ..Config::default()
    };
    let mut pair = Pair::new(Setup { a, link, ..Setup::default() });
    let mut sent = BTreeMap::new();
    for seed in 0..count {
        let bytes = message((seed * 7919 % 93_001) as usize, seed);
        sent.insert(pair.send_from(Side::A, bytes.clone(), SendOptions::default()), bytes);
    }
    pair.settle();
    assert_eq!(pair.a.delivered() as u64, count, "{:?}", pair.a.counters());
    assert_eq!(pair.b.inbox.len() as u64, count);
    for message in &pair.b.inbox {
        assert_eq!(sent.remove(&message.id).as_ref(), Some(&message.bytes));
    }
    pair
}

#[test]
fn independent_loss_of_any_share_is_survived() {
    for share in [0.01, 0.05, 0.2, 0.5, 0.8] {
        for policy in [BurstPolicy::default(), BurstPolicy::Oblivious] {
            let pair = all_arrive_once(lossy(share), policy, 60);
            assert!(pair.link_stats(Side::A).lost > 0);
            assert!(pair.link_stats(Side::B).lost > 0);
        }
    }
}

#[test]
fn bursty_loss_is_survived() {
    let loss = Loss::Bursty { to_bad: 0.02, to_good: 0.1, loss_good: 0.0, loss_bad: 0.9 };
    let pair =
        all_arrive_once(LinkConfig { loss, ..Setup::default().link }, BurstPolicy::default(), 100);
    assert!(pair.link_stats(Side::A).lost > 0);
}

#[test]
fn redundancy_follows_the_loss() {
    for (share, limit) in [(0.0, 1.1), (0.05, 1.25), (0.2, 1.6), (0.5, 3.2)] {
        let pair = all_arrive_once(lossy(share), BurstPolicy::default(), 100);
        let symbols: usize =
            (0..100_u64).map(|seed| ((seed * 7919 % 93_001) as usize).div_ceil(1416).max(1)).sum();
        let sent = pair.a.counters().sender.symbols_sent as f64;
        assert!(sent / symbols as f64 <= limit, "{share}: {}", sent / symbols as f64);
    }
}

#[test]
fn large_messages_survive_loss_in_every_block() {
    let mut pair = Pair::new(Setup { link: lossy(0.2), ..Setup::default() });
    let sent = message(3_000_000, 5);
    pair.deliver(sent.clone());
    assert_eq!(pair.b.inbox.len(), 1);
    assert_eq!(pair.b.inbox[0].bytes, sent);
}

#[test]
fn a_small_queue_that_drops_most_of_a_burst_is_survived() {
    let link = LinkConfig { rate: Some(20_000_000), queue: 8, ..Setup::default().link };
    let pair = all_arrive_once(link, BurstPolicy::default(), 40);
    assert!(pair.a.counters().sender.nacks_received > 0);
}
