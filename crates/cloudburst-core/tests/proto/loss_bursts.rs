//! Loss in bursts: pulled messages are delivered about as soon as budgeted ones.

use crate::common::{Pair, Setup, Side, message};
use cloudburst_core::config::{BurstPolicy, Config};
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::proto::SendOptions;
use cloudburst_netem::{LinkConfig, Loss};
use core::time::Duration;

const SEEDS: u64 = 200;
const ROUND_TRIP: Duration = Duration::from_micros(100);
/// The rate of each path in bits per second.
const RATE: u64 = 1_000_000_000;
/// The slowest vary.
const LUCK: Duration = Duration::from_millis(3);
/// One longest wait, which one in 200 pulled messages takes over four paths that lose half of all packets, in
/// bursts of ten: the slowest takes 86 ms, and 12 budgeted.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A path that loses `share` of the packets, in bursts of `burst` packets on average.
fn bursty(share: f64, burst: f64) -> LinkConfig {
    // Independent losses of half of the packets come in bursts of two.
    let to_good = 1.0 / burst.max(1.0 / (1.0 - share));
    let to_bad = to_good * share / (1.0 - share);
    let loss = Loss::Bursty { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 };
    LinkConfig { loss, rate: Some(RATE), queue: 10_000, ..Setup::default().link }
}

/// Sends a message of 93 KB over `paths` such paths in both directions, in a session.
fn deliver(policy: BurstPolicy, paths: u16, link: &LinkConfig, seed: u64) -> Receipt {
    let config = Config { capacity: (u64::from(paths) * RATE).into(), ..Config::default() };
    let mut pair =
        Pair::new(Setup { paths, seed, a: config.clone(), b: config, ..Setup::default() });
    pair.deliver(message(5_000, 1));
    pair.set_links(Side::A, None, link);
    pair.set_links(Side::B, None, link);
    let options = SendOptions::default().policy(policy).deadline(Duration::from_secs(60));
    let id = pair.send_from(Side::A, message(93_000, seed), options);
    match pair.outcome(id) {
        Outcome::Delivered(receipt) => receipt,
        other => panic!("{other:?}"),
    }
}

/// The mean and the longest time of many messages.
fn times(policy: BurstPolicy, paths: u16, link: &LinkConfig) -> (Duration, Duration) {
    let receipts: Vec<_> = (0..SEEDS).map(|seed| deliver(policy, paths, link, seed)).collect();
    let times = receipts.iter().map(|receipt| receipt.completed_in);
    let packets: usize = receipts.iter().map(|receipt| receipt.packets).sum();
    let mean = times.clone().sum::<Duration>() / SEEDS as u32;
    let slowest = times.max().unwrap();
    let packets = packets as f64 / SEEDS as f64;
    print!(" {mean:9.2?} {slowest:9.2?} {packets:7.1} |");
    (mean, slowest)
}

/// Compares pulled and budgeted messages at a share of losses, for all lengths of bursts. The slowest one may
/// be late by `luck`.
fn compare(paths: u16, share: f64, luck: Duration) {
    println!("paths share burst |  budgeted: mean, slowest, packets |  pulled");
    let mut late = Vec::new();
    for burst in [1, 3, 10, 30, 100] {
        let link = bursty(share, burst.into());
        print!("{paths:5} {share:5} {burst:5} |");
        let (mean, slowest) = times(BurstPolicy::default(), paths, &link);
        let pulled = times(BurstPolicy::Pulled { window: None }, paths, &link);
        println!();
        if pulled.0 > mean * 3 + ROUND_TRIP || pulled.1 > slowest * 3 + luck {
            late.push(burst);
        }
    }
    assert!(late.is_empty(), "more than three times as long in bursts of {late:?}");
}

#[test]
fn pulled_messages_over_one_path_with_bursts_of_loss_take_at_most_three_times_as_long() {
    compare(1, 0.2, LUCK);
    compare(1, 0.5, LUCK);
}

#[test]
fn pulled_messages_over_four_paths_with_bursts_of_loss_take_at_most_three_times_as_long() {
    compare(4, 0.2, LUCK);
    compare(4, 0.5, LONGEST_WAIT);
}
