//! Experiments at their short scale, where a figure of theirs must lie in a known range.

use cloudburst_sim::experiment::{Case, Experiment, Outcome, Scale};
use cloudburst_sim::experiments::aeolus;
use cloudburst_sim::experiments::drb::permutation;
use cloudburst_sim::experiments::scdp::{shares, window};
use std::thread;

/// Runs the cell of a scheme at x.
fn run(experiment: &Experiment, scheme: &str, x: f64) -> Outcome {
    let mut cells = (experiment.cells)(Scale::Short);
    cells.retain(|cell| cell.scheme == scheme && cell.x == x);
    (experiment.run)(&Case::new(&cells[0], Scale::Short, 1)).unwrap()
}

#[test]
fn digit_reversal_fills_the_network_and_no_order_exceeds_it() {
    // A host's link carries 1,460 bytes of a message in 1,500 for each ACK of 40.
    let most = 1_000.0 * 1_460.0 / 1_540.0;
    for fabric in [0.0, 1.0] {
        let outcome = run(&permutation::EXPERIMENT, "drb", fabric);
        let found = outcome.values["throughput_mbps"];
        assert!((0.995 * most..1.0005 * most).contains(&found), "{found} of {most}");
        assert_eq!(outcome.values["dropped"], 0.0);
    }
}

#[test]
fn digit_reversal_has_the_shortest_queues_at_both_hops() {
    let [rb, rrb, drb] =
        ["rb-64k", "rrb-64k", "drb-64k"].map(|scheme| run(&permutation::EXPERIMENT, scheme, 0.0));
    for value in ["hop1_us", "hop4_us", "queueing_us", "resequencing_mean_us", "rtt_p99_us"] {
        for other in [&rb, &rrb] {
            assert!(drb.values[value] < 0.9 * other.values[value], "{value}");
        }
    }
    assert!(drb.values["throughput_mbps"] > rb.values["throughput_mbps"]);
}

#[test]
fn a_window_of_twelve_gets_more_than_one_of_four_and_loses_less_than_one_of_52() {
    let run_with = |x| move || run(&window::EXPERIMENT, "pull", x);
    let [few, twelve, many] = thread::scope(|scope| {
        let running = [4.0, 12.0, 52.0].map(|x| scope.spawn(run_with(x)));
        running.map(|thread| thread.join().unwrap())
    });
    let value = |outcome: &Outcome, name| outcome.values[name];
    assert!(value(&few, "goodput_mbps") < 0.9 * value(&twelve, "goodput_mbps"));
    assert!(value(&twelve, "excess") < value(&many, "excess"));
    for outcome in [&few, &twelve, &many] {
        assert_eq!(value(outcome, "undelivered"), 0.0);
    }
}

#[test]
fn pulled_messages_share_a_link_equally_and_fill_it() {
    let outcome = run(&shares::EXPERIMENT, "pull", 0.0);
    assert!(outcome.values["fairness"] > 0.99, "{:?}", outcome.values);
    assert!(outcome.values["total"] > 0.95, "{:?}", outcome.values);
}

#[test]
fn pulled_packets_survive_where_unscheduled_ones_are_dropped() {
    for scheme in ["pull-aeolus", "pull-aeolus-tiny"] {
        let outcome = run(&aeolus::EXPERIMENT, scheme, 32.0);
        assert!(outcome.values["dropped_not_ect"] > 100.0, "{:?}", outcome.values);
        assert_eq!(outcome.values["dropped_ect"], 0.0, "{scheme}");
        assert!(outcome.values["last_us"].is_finite(), "{scheme}");
    }
}
