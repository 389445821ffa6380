//! The effects of path orders on bursts of packets on one link, and on queues, by simulation.

use crate::fabric::queues::{CORE, HOPS, Hop, Traffic};
use cloudburst_core::path::{Order, Sequence, Shape};
use cloudburst_core::rng::SplitMix64;
use std::thread;

fn drb(n: usize) -> Order {
    Order::DigitReversal(Shape::fat_tree(n as u16).unwrap())
}

/// The most packets of one pair in a row on one uplink of its TOR, in ten rounds.
fn longest_run(n: usize, order: Order, seed: u64) -> usize {
    let half = n / 2;
    let paths = n * n / 4;
    let mut sequence = Sequence::new(order, paths, seed).unwrap();
    let uplinks: Vec<usize> = (0..10 * paths).map(|_| sequence.next_path() / half).collect();
    uplinks.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap()
}

#[test]
fn the_longest_run_on_an_uplink_is_shortest_by_digit_reversal() {
    let mut rng = SplitMix64::new(1);
    for n in (4..=24).step_by(2) {
        for _ in 0..20 {
            let seed = rng.next_u64();
            assert_eq!(longest_run(n, drb(n), seed), 1);
            assert_eq!(longest_run(n, Order::RoundRobin, seed), n / 2);
            assert!(longest_run(n, Order::Random, seed) > 1);
        }
    }
}

/// "In the worst-case, when all the servers start from the same bouncing switch, the max queue
/// length at the switches is n/2 (n/2 - 1)" (section 3.1.2, on RRB).
#[test]
fn from_one_start_at_full_rate_round_robin_queues_at_the_tor_as_the_paper_says() {
    for n in [4, 6, 8, 12, 16] {
        let half = n / 2;
        let first_hop = |order| Traffic::new(n, order, Some(0), 1).queues(1.0, 3 * n * n)[0].max;
        // One packet of the queue is in transmission: the paper counts those behind it here.
        assert_eq!(first_hop(Order::RoundRobin) - 1, half * (half - 1));
        assert_eq!(first_hop(drb(n)) - 1, half - 1);
    }
}

/// If all begin at the same place, digit reversal only moves the congestion one hop up, where all
/// packets of a pod meet at one core switch's link. Therefore every pair begins at a place of its
/// own.
#[test]
fn random_starts_keep_queues_short_above_the_tor() {
    for n in [8, 12, 16] {
        let half = n / 2;
        let second_hop = |start| Traffic::new(n, drb(n), start, 1).queues(1.0, 500)[1].max;
        assert_eq!(second_hop(Some(0)) - 1, half * (half - 1));
        assert!(second_hop(None) - 1 < half * (half - 1) / 2);
    }
}

/// Mean queues in the order RRB, RB, DRB.
fn compare(n: usize, load: f64, slots: usize, seed: u64) -> [[Hop; HOPS]; 3] {
    let queues = |order| move || Traffic::new(n, order, None, seed).queues(load, slots);
    thread::scope(|scope| {
        let running = [Order::RoundRobin, Order::Random, drb(n)].map(|o| scope.spawn(queues(o)));
        running.map(|thread| thread.join().unwrap())
    })
}

fn total(hops: &[Hop]) -> f64 {
    hops.iter().map(|hop| hop.mean).sum()
}

#[test]
fn first_hop_queues_are_those_of_the_paper() {
    // Section 3.1.3: "when the port number is 24, the average 1st-hop queue lengths are 16.0, 7.9,
    // and 2.2 for RRB, RB, and DRB, respectively", at load 0.95.
    let [rrb, rb, drb] = compare(24, 0.95, 3000, 1).map(|hops| hops[0].mean);
    assert!((rrb - 16.0).abs() < 0.8, "{rrb}");
    // RB's queue has a long memory, so it depends on the length of the observation.
    assert!((rb - 7.9).abs() < 1.6, "{rb}");
    assert!((drb - 2.2).abs() < 0.1, "{drb}");
}

#[test]
fn queues_are_shortest_by_digit_reversal() {
    for seed in 0..3 {
        for n in [12, 16] {
            let [rrb, rb, drb] = compare(n, 0.95, 1000, seed);
            for hop in [0, 3] {
                for other in [&rrb, &rb] {
                    assert!(drb[hop].mean < 0.6 * other[hop].mean, "{hop}: {drb:?} {other:?}");
                    assert!(2 * drb[hop].max < other[hop].max, "{hop}: {drb:?} {other:?}");
                }
            }
            // At the core switches both see one packet of a pair a round, as Appendix B says.
            assert!(drb[CORE].mean < 0.8 * rb[CORE].mean, "{drb:?} {rb:?}");
            assert!((drb[CORE].mean / rrb[CORE].mean - 1.0).abs() < 0.1, "{drb:?} {rrb:?}");
            assert!(total(&drb) < 0.9 * total(&rrb), "{drb:?} {rrb:?}");
            assert!(total(&drb) < 0.9 * total(&rb), "{drb:?} {rb:?}");
        }
    }
}
