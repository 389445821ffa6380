//! The length of packet trains: as long as the paths bear, and no longer than the rate allows.

use crate::common::{Pair, Setup, Side, lossy, message};
use cloudburst_core::config::Config;
use cloudburst_core::error::Receipt;
use cloudburst_core::proto::Contents;
use core::time::Duration;

const LARGE: usize = 93_000;
/// The number of packets of 1,472 bytes that one system call takes.
const FULL: usize = 43;
/// The number of packets in a row after which a peer counts as free of losses.
const CLEAN_AFTER: usize = 1_024;
/// The number of messages of 66 packets with this many packets.
const UNTIL_CLEAN: usize = CLEAN_AFTER.div_ceil(66);

/// A pair whose A may send at `capacity`, and whose packets are tapped.
fn pair(paths: u16, capacity: u64) -> Pair {
    let a = Config { capacity: capacity.into(), ..Setup::default().a };
    let mut pair = Pair::new(Setup { a, paths, ..Setup::default() });
    pair.tap = Some(Vec::new());
    pair
}

/// A pair whose trains may be as long as one system call carries.
fn fast(paths: u16) -> Pair {
    pair(paths, 100_000_000_000)
}

/// The longest train of symbols that A has sent since the last call.
fn longest(pair: &mut Pair) -> usize {
    pair.tap = Some(Vec::new());
    let batches = core::mem::take(&mut pair.batches);
    let symbols = batches.iter().filter(|batch| matches!(batch.contents, Contents::Symbols { .. }));
    symbols.map(|batch| batch.len / batch.segment_size).max().unwrap_or(0)
}

/// The train lengths that A has learned for the paths to B.
fn learned(pair: &Pair) -> Vec<usize> {
    pair.a.endpoint.paths(Side::B.address(0)).iter().map(|path| path.train).collect()
}

/// Delivers messages of 93 KB one after the other until `done`. Returns their number.
fn deliver_until(pair: &mut Pair, mut done: impl FnMut(&mut Pair, &Receipt) -> bool) -> usize {
    (1..10_000)
        .find(|&seed| {
            let receipt = pair.deliver(message(LARGE, seed as u64));
            done(pair, &receipt)
        })
        .expect("done after enough messages")
}

/// Whether trains are about half a message long on all of these paths.
fn are_long(trains: &[usize]) -> bool {
    trains.iter().all(|&train| train >= 32)
}

fn has_repair_symbols(receipt: &Receipt) -> bool {
    receipt.packets > receipt.source_symbols
}

#[test]
fn where_nothing_is_lost_trains_are_full_within_a_few_messages() {
    for (paths, limit) in [(1, 6), (4, 12), (16, 32)] {
        let mut pair = fast(paths);
        let messages = deliver_until(&mut pair, |pair, _| longest(pair) >= FULL);
        println!("{paths} paths: full with message {messages}");
        assert!(messages <= limit, "{paths} paths: {messages}");
        assert_eq!(longest(&mut pair), 0);
        pair.deliver(message(1_000_000, 1));
        assert_eq!(longest(&mut pair), FULL, "and no longer");
    }
}

/// Surplus symbols come late, and are acknowledged by further STOPs.
#[test]
fn lost_stops_do_not_shorten_trains() {
    let mut pair = fast(1);
    pair.set_links(Side::B, None, &lossy(0.5));
    let messages = deliver_until(&mut pair, |pair, _| learned(pair) == [64]);
    assert!(messages <= 6, "{messages}");
    for seed in 0..100 {
        pair.deliver(message(LARGE, seed));
        assert_eq!(learned(&pair), [64]);
    }
}

#[test]
fn a_second_without_packets_makes_trains_short_again() {
    let mut pair = fast(1);
    deliver_until(&mut pair, |pair, _| longest(pair) == FULL);
    pair.run_for(Duration::from_secs(2));
    pair.deliver(message(LARGE, 1));
    assert_eq!(longest(&mut pair), 4);
}

#[test]
fn a_slow_link_gets_short_trains_at_its_rate() {
    const CAPACITY: u64 = 100_000_000;
    let time = Duration::from_millis(100);
    let mut pair = pair(1, CAPACITY);
    deliver_until(&mut pair, |pair, _| learned(pair)[0] > 4);
    // An idle link fills the bucket.
    pair.run_for(Duration::from_millis(1));
    longest(&mut pair);
    for seed in 0..40 {
        pair.send(message(LARGE, seed));
    }
    pair.run_for(time);
    let tap = pair.tap.take().unwrap();
    let sent = tap.iter().filter(|(side, ..)| *side == Side::A);
    let bytes: usize = sent.map(|(_, _, packet)| packet.len() + 28).sum();
    let within = |time: Duration| (CAPACITY as f64 / 8.0 * time.as_secs_f64()) as usize;
    let bucket = within(Duration::from_micros(500));
    let train = 4 * 1_500;
    assert!(bytes <= within(time) + bucket + train, "{bytes}");
    assert!(bytes >= within(time), "{bytes}: the link was idle");
    assert_eq!(longest(&mut pair), 4);
    assert!(learned(&pair)[0] <= 8, "trains that were never sent prove nothing");
}

#[test]
fn a_path_that_loses_a_tenth_gets_short_trains_and_the_others_keep_theirs() {
    let mut pair = fast(4);
    deliver_until(&mut pair, |pair, _| are_long(&learned(pair)));
    pair.set_links(Side::A, Some(0), &lossy(0.1));
    let fell = deliver_until(&mut pair, |pair, _| learned(pair)[0] == 4);
    // Other paths may have their turn first.
    assert!(fell <= 8, "{fell}");
    let receipt = pair.deliver(message(LARGE, 1));
    assert!(has_repair_symbols(&receipt), "{receipt:?}");

    // The path loses all packets now, and most of its turns go to the others.
    pair.set_links(Side::A, Some(0), &lossy(1.0));
    for seed in 0..40 {
        pair.deliver(message(LARGE, seed));
        let learned = learned(&pair);
        assert!(learned[0] == 4 && are_long(&learned[1..]), "{learned:?}");
    }

    pair.set_links(Side::A, Some(0), &lossy(0.0));
    let mut messages = 0;
    while !are_long(&learned(&pair)) {
        messages += 1;
        assert!(messages < 400, "{:?}", learned(&pair));
        pair.deliver(message(1_000_000, messages));
    }
    println!("fell with message {fell}, grew again with {messages} of 1 MB");
}

#[test]
fn the_only_path_gets_short_trains_and_repair_symbols_while_it_loses() {
    for share in [0.1, 0.01] {
        let mut pair = fast(1);
        deliver_until(&mut pair, |pair, receipt| {
            learned(pair) == [64] && !has_repair_symbols(receipt)
        });
        pair.set_links(Side::A, None, &lossy(share));
        let fell = deliver_until(&mut pair, |pair, _| learned(pair) == [4]);
        assert!(fell as f64 <= 1.0 / share, "{share}: {fell}");
        let receipt = pair.deliver(message(LARGE, 1));
        assert!(has_repair_symbols(&receipt), "{receipt:?}");
        pair.set_links(Side::A, None, &lossy(0.0));
        let grew = deliver_until(&mut pair, |pair, _| learned(pair) == [64]);
        println!("{share}: fell with message {fell}, grew again with {grew}");
        assert!(grew < 600, "{share}: {grew}");
    }
}

#[test]
fn repair_symbols_go_along_unless_a_thousand_packets_arrived() {
    for paths in [1, 4, 16] {
        let mut pair = fast(paths);
        let margin = |pair: &mut Pair| {
            let Receipt { packets, source_symbols, .. } = pair.deliver(message(LARGE, 1));
            packets - source_symbols
        };
        // A sixteenth of 66.
        assert_eq!(
            [(); UNTIL_CLEAN].map(|()| margin(&mut pair)),
            [4; UNTIL_CLEAN],
            "{paths} paths"
        );
        assert_eq!([(); 40].map(|()| margin(&mut pair)), [0; 40], "{paths} paths");

        pair.set_links(Side::A, None, &lossy(0.2));
        assert!(margin(&mut pair) > 4, "{paths} paths: lost packets were sent again");
        pair.set_links(Side::A, None, &lossy(0.0));
        for _ in 0..UNTIL_CLEAN - 1 {
            assert!(margin(&mut pair) >= 4, "{paths} paths");
        }
        let receipt_is_bare = |_: &mut Pair, receipt: &Receipt| !has_repair_symbols(receipt);
        let messages = deliver_until(&mut pair, receipt_is_bare);
        assert!(messages <= 3, "{paths} paths: {messages}");
    }
}
