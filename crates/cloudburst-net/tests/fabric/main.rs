//! Endpoints on a leaf-spine of network namespaces: many paths, small queues, black holes. Each
//! test has a fabric of its own: two leaves, four spines, links of 100 Mb/s.
//!
//! Needs root, iproute2, nftables and ethtool. Where they are missing the tests are ignored, and
//! the reason is printed.

mod black_holes;
#[path = "../common/mod.rs"]
mod common;
mod incast;
mod queues;
mod rig;
mod runs;
mod selective;
mod spread;
mod trimming;

use cloudburst_testbed::{Fabric, Topology, available};
use libtest_mimic::{Arguments, Failed, Trial};

type Test = fn() -> Result<(), Failed>;

fn main() {
    let args = Arguments::from_args();
    let available = if args.list { Ok(()) } else { available() };
    let smallest = Topology { hosts: 2, spines: 1, ..Topology::default() };
    let available = available.and_then(|()| Fabric::up(&smallest).map(drop));
    if let Err(reason) = &available {
        println!("fabric: ignored: {reason}");
    }
    let tests: &[(&str, Test)] = &[
        ("explicit_paths_share_the_spines_evenly", spread::explicit_paths_share_the_spines_evenly),
        ("hashed_paths_use_every_spine", spread::hashed_paths_use_every_spine),
        (
            "the_dscps_queue_has_all_and_nothing_else",
            spread::the_dscps_queue_has_all_and_nothing_else,
        ),
        ("an_incast_stays_within_the_tiny_queue", queues::an_incast_stays_within_the_tiny_queue),
        ("explicit_paths_survive_dead_spines", black_holes::explicit_paths_survive_dead_spines),
        ("bounced_packets_survive_dead_spines", black_holes::bounced_packets_survive_dead_spines),
        ("hashed_paths_survive_dead_spines", black_holes::hashed_paths_survive_dead_spines),
        (
            "endpoints_meet_in_spite_of_dead_spines",
            black_holes::endpoints_meet_in_spite_of_dead_spines,
        ),
        (
            "trimmed_symbols_of_an_incast_are_losses_and_no_dead_paths",
            trimming::trimmed_symbols_of_an_incast_are_losses_and_no_dead_paths,
        ),
        (
            "openings_of_an_incast_are_dropped_and_protected_packets_are_not",
            selective::openings_of_an_incast_are_dropped_and_protected_packets_are_not,
        ),
        (
            "digit_reversal_has_the_shortest_runs_on_an_uplink",
            runs::digit_reversal_has_the_shortest_runs_on_an_uplink,
        ),
    ];
    let trial =
        |&(name, run): &(&str, Test)| Trial::test(name, run).with_ignored_flag(available.is_err());
    libtest_mimic::run(&args, tests.iter().map(trial).collect()).exit();
}
