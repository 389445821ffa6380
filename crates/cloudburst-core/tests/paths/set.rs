//! The paths to one peer: their order, their health, and how reports change both.

use cloudburst_core::id::PathId;
use cloudburst_core::path::{Opportunity, Order, OrderError, PathSet, Via};
use cloudburst_core::time::Instant;
use core::time::Duration;

/// The maximum number of paths remembered, including removed ones.
const MAX_REMEMBERED: usize = 256;

fn set(paths: u16, order: &str, start: u64) -> Result<PathSet, OrderError> {
    let remote = "10.0.0.1:1".parse().unwrap();
    let vias: Vec<Via> = (0..paths).map(|egress| Via { egress, local: None, remote }).collect();
    PathSet::new(&vias, &vias, order.parse().unwrap(), start)
}

#[test]
fn visits_every_path_once_a_round_from_its_start() {
    for (paths, order, expected) in
        [(3, "rrb", [2, 0, 1, 2, 0, 1]), (6, "drb:2x3", [5, 0, 3, 1, 4, 2])]
    {
        let mut set = set(paths, order, 5).unwrap();
        let visited: Vec<u16> =
            (0..6).map(|_| set.take_opportunity(at(0), 1, 1, 64).path.0).collect();
        assert_eq!(visited, expected);
        assert!(set.stats().iter().all(|path| path.sent == 6 / u64::from(paths)));
    }
}

#[test]
fn paths_that_do_not_fit_the_order_are_refused() {
    assert!(matches!(set(3, "drb:2x2", 0), Err(OrderError::Paths { paths: 3, .. })));
    assert!(matches!(set(0, "rrb", 0), Err(OrderError::NoPaths)));
}

fn vias(egresses: impl IntoIterator<Item = u16>) -> Vec<Via> {
    let remote = "10.0.0.1:1".parse().unwrap();
    egresses.into_iter().map(|egress| Via { egress, local: None, remote }).collect()
}

fn egresses_of(set: &mut PathSet, turns: usize) -> Vec<u16> {
    (0..turns).map(|_| set.take_opportunity(at(0), 1, 1, 64).via.egress).collect()
}

#[test]
fn a_removed_path_is_skipped_and_returns_to_its_slot() {
    let order: Order = "drb:2x2".parse().unwrap();
    let mut set = set(4, "drb:2x2", 0).unwrap();
    assert_eq!(egresses_of(&mut set, 4), [0, 2, 1, 3]);
    set.replace(&vias(0..4), &vias([0, 1, 3]), order, 0).unwrap();
    assert_eq!((egresses_of(&mut set, 6), set.len()), (vec![0, 1, 3, 0, 1, 3], 3));
    assert!(set.stats()[2].removed);
    set.replace(&vias(0..4), &vias(0..4), order, 0).unwrap();
    assert_eq!(egresses_of(&mut set, 4), [0, 2, 1, 3]);
    assert_eq!(set.stats()[2].sent, 2);
    let mut other = PathSet::new(&vias(0..4), &vias([0, 3]), order, 0).unwrap();
    assert_eq!(egresses_of(&mut other, 4), [0, 3, 0, 3]);
    assert!(PathSet::new(&vias(0..4), &vias([9]), order, 0).is_err());
}

#[test]
fn new_paths_get_new_numbers_and_old_ones_keep_theirs() {
    let mut set = set(2, "rrb", 0).unwrap();
    let rrb = Order::RoundRobin;
    set.replace(&vias([1, 7]), &vias([1, 7]), rrb, 0).unwrap();
    let turns: Vec<(u16, u16)> = (0..3)
        .map(|_| set.take_opportunity(at(0), 1, 1, 64))
        .map(|turn| (turn.path.0, turn.via.egress))
        .collect();
    assert_eq!(turns, [(1, 1), (2, 7), (1, 1)]);
    let fat: Order = "drb:2x2".parse().unwrap();
    assert!(set.replace(&vias(0..3), &vias(0..3), fat, 0).is_err());
    assert!(set.replace(&[], &[], fat, 0).is_err());
    assert_eq!(egresses_of(&mut set, 2), [7, 1], "nothing has changed");
}

#[test]
fn a_degraded_path_that_returns_is_no_longer_degraded() {
    let mut set = set(2, "rrb", 0).unwrap();
    set.account(at(1), PathId(0), 8, 8);
    set.replace(&vias([1]), &vias([1]), Order::RoundRobin, 0).unwrap();
    set.heard(at(2), PathId(0), 1);
    assert_eq!(egresses_of(&mut set, 3), [1, 1, 1]);
    set.replace(&vias([0, 1]), &vias([0, 1]), Order::RoundRobin, 0).unwrap();
    assert!(!set.stats()[0].degraded);
    assert_eq!(egresses_of(&mut set, 4).iter().filter(|&&egress| egress == 0).count(), 2);
}

#[test]
fn the_number_of_remembered_paths_is_bounded() {
    let mut set = set(4, "rrb", 0).unwrap();
    for round in 1..500_u16 {
        let new = vias(round * 4..round * 4 + 4);
        set.replace(&new, &new, Order::RoundRobin, 0).unwrap();
        let mut egresses = egresses_of(&mut set, 4);
        egresses.sort_unstable();
        assert!(egresses.into_iter().eq(round * 4..round * 4 + 4));
    }
    assert_eq!(set.stats().len(), MAX_REMEMBERED);
}

#[test]
fn a_report_on_an_unknown_path_is_ignored() {
    let mut set = set(1, "rrb", 0).unwrap();
    set.heard(Instant::ZERO, PathId(9), 4);
    set.heard(Instant::ZERO, PathId(0), 4);
    assert_eq!(set.stats()[0].arrived, 4);
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

#[test]
fn a_path_that_misses_eight_in_a_row_is_degraded_until_it_is_heard_of() {
    for order in ["rrb", "drb:4", "rb"] {
        let mut set = set(4, order, 1).unwrap();
        set.account(at(1), PathId(2), 7, 7);
        assert!(!set.stats()[2].degraded);
        set.heard(at(2), PathId(2), 1);
        set.account(at(3), PathId(2), 7, 7);
        assert!(!set.stats()[2].degraded, "not in a row");
        set.account(at(4), PathId(2), 1, 1);
        assert!(set.stats()[2].degraded);
        let before = set.stats()[2].sent;
        let turns: Vec<Opportunity> =
            (0..480).map(|_| set.take_opportunity(at(0), 4, 4, 64)).collect();
        let probes: Vec<&Opportunity> = turns.iter().filter(|turn| turn.probe).collect();
        assert!((7..=13).contains(&probes.len()), "{}", probes.len());
        assert!(probes.iter().all(|turn| (turn.path.0, turn.packets) == (2, 1)));
        assert_eq!(set.stats()[2].sent - before, probes.len() as u64);
        set.heard(at(5), PathId(2), 1);
        let turns = (0..400).filter(|_| set.take_opportunity(at(0), 1, 1, 64).path.0 == 2).count();
        assert!((70..130).contains(&turns), "{turns}");
    }
}

#[test]
fn a_path_that_is_heard_of_is_not_blamed_by_the_same_report() {
    let mut set = set(2, "rrb", 0).unwrap();
    set.heard(at(1), PathId(0), 1);
    set.account(at(1), PathId(0), 60, 59);
    assert!(!set.stats()[0].degraded);
    assert_eq!(set.stats()[0].loss_permille, 983);
}

#[test]
fn without_answers_every_other_opportunity_is_on_the_path_heard_of_last() {
    let mut set = set(4, "rrb", 0).unwrap();
    let mut paths = || (0..6).map(|_| set.take_recent_opportunity(1).path.0).collect::<Vec<_>>();
    assert_eq!(paths(), [0, 1, 2, 3, 0, 1]);
    set.heard(at(1), PathId(3), 0);
    set.heard(at(2), PathId(1), 0);
    let mut paths = || (0..6).map(|_| set.take_recent_opportunity(1).path.0).collect::<Vec<_>>();
    assert_eq!(paths(), [1, 2, 1, 3, 1, 0]);
}

#[test]
fn if_all_paths_are_degraded_none_is() {
    let mut set = set(2, "rrb", 0).unwrap();
    set.account(at(1), PathId(0), 8, 8);
    set.account(at(1), PathId(1), 8, 8);
    let visited: Vec<u16> = (0..4).map(|_| set.take_opportunity(at(0), 1, 1, 64).path.0).collect();
    assert_eq!(visited, [0, 1, 0, 1]);
    set.heard(at(2), PathId(1), 1);
    assert!((0..10).all(|_| set.take_opportunity(at(0), 1, 1, 64).path.0 == 1));
    assert!((0..2).any(|_| set.take_any_opportunity(1).path.0 == 0));
}

#[test]
fn the_loss_estimate_follows_recent_losses_and_discounts_late_packets() {
    let mut set = set(2, "rrb", 0).unwrap();
    set.account(at(1), PathId(0), 100, 50);
    assert_eq!(set.stats()[0].loss_permille, 500);
    set.account(at(2), PathId(0), 0, -50);
    assert_eq!(set.stats()[0].loss_permille, 0);
    for _ in 0..100 {
        set.account(at(3), PathId(1), 10, 2);
    }
    assert!((190..=210).contains(&set.stats()[1].loss_permille));
}

#[test]
fn extreme_counts_are_tolerated() {
    let mut set = set(2, "rrb", 0).unwrap();
    for missing in [i64::MAX / 2, i64::MIN / 2, 0, u32::MAX.into()] {
        set.heard(at(1), PathId(7), u64::MAX);
        set.heard(at(1), PathId(0), u64::MAX);
        set.account(at(2), PathId(0), u32::MAX, missing);
        set.account(at(2), PathId(9), 1, missing);
        assert!(set.stats()[0].loss_permille <= 1000);
    }
}

#[test]
fn round_trips_are_smoothed() {
    let mut set = set(1, "rrb", 0).unwrap();
    set.answered(at(1), PathId(0), Duration::from_micros(80));
    set.answered(at(2), PathId(0), Duration::from_micros(160));
    assert_eq!(set.stats()[0].round_trip, Some(Duration::from_micros(90)));
}

#[test]
fn an_overtaken_train_does_not_shorten_the_trains_of_its_path() {
    let mut set = set(2, "rrb", 0).unwrap();
    let grow = |set: &mut PathSet| {
        for _ in 0..40 {
            set.heard(at(1), PathId(0), 64);
            set.take_opportunity(at(1), 64, 64, 64);
            set.account(at(1), PathId(0), 64, 0);
            set.take_opportunity(at(1), 64, 64, 64);
        }
    };
    grow(&mut set);
    assert_eq!((set.stats()[0].train, set.is_clean()), (64, true));
    set.account(at(2), PathId(0), 43, 43);
    assert_eq!((set.stats()[0].train, set.is_clean()), (64, false), "perhaps it is lost");
    set.account(at(3), PathId(0), 0, -43);
    assert!(set.is_clean(), "it was late");
    // Unlike when the end of a train is missing.
    set.account(at(4), PathId(0), 43, 10);
    assert_eq!((set.stats()[0].train, set.is_clean()), (4, false));
    set.account(at(5), PathId(0), 0, -9);
    assert!(!set.is_clean(), "one is lost");
    grow(&mut set);
    assert!(set.is_clean());
}

#[test]
fn recycled_paths_are_those_that_deliver() {
    let mut set = set(8, "recycled", 3).unwrap();
    let mut sent = [0_u32; 8];
    for millis in 1..=400 {
        let path = set.take_opportunity(at(millis), 1, 1, 64).path;
        sent[usize::from(path.0)] += 1;
        // Path 0 loses every second packet, and path 1 all of them.
        let missing = match path.0 {
            0 => i64::from(sent[0] % 2),
            1 => 1,
            _ => 0,
        };
        if missing == 0 {
            set.heard(at(millis), path, 1);
        }
        set.account(at(millis), path, 1, missing);
    }
    let good = *sent[2..].iter().min().unwrap();
    assert!(good > 30 && sent[0] < good / 2, "{sent:?}");
    assert!((1..good / 3).contains(&sent[1]), "it is explored, and found dead: {sent:?}");
}

#[test]
fn paths_with_ce_marks_are_explored_and_not_recycled() {
    let mut set = set(8, "recycled", 3).unwrap();
    let mut sent = [0_u32; 8];
    for millis in 1..=400 {
        let path = set.take_opportunity(at(millis), 1, 1, 64).path;
        sent[usize::from(path.0)] += 1;
        set.heard(at(millis), path, 1);
        set.marked(path, u32::from(path.0 == 5));
        set.account(at(millis), path, 1, 0);
    }
    let mean = 400 / sent.len() as u32;
    assert!((1..mean / 2).contains(&sent[5]), "{sent:?}");
    assert_eq!(set.stats()[5].marked, u64::from(sent[5]));
    assert!(set.stats().iter().all(|path| path.loss_permille == 0 && !path.degraded));
}

#[test]
fn while_no_answer_comes_recycled_paths_are_repeated() {
    let mut set = set(16, "recycled", 3).unwrap();
    for path in [4, 9] {
        set.heard(at(1), PathId(path), 1);
        set.account(at(1), PathId(path), 1, 0);
    }
    let mut paths = || set.take_any_opportunity(1).path.0;
    let paths = [paths(), paths(), paths(), paths()];
    assert_eq!(paths, [9, 4, 9, 4]);
}
