//! A leaf-spine: many paths, small queues, black holes. Each test has a fabric of its own: two leaves, four spines,
//! links of 100 Mb/s.

mod black_holes;
mod incast;
mod order;
mod queues;
mod rig;
mod selective;
mod spread;
mod trimming;

use crate::{Named, Test};
use cloudburst_testbed::{Error, Fabric, Topology};

/// Whether a fabric can be set up.
pub(crate) fn available() -> Result<(), Error> {
    cloudburst_testbed::available()?;
    let smallest = Topology { hosts: 2, spines: 1, ..Topology::default() };
    Fabric::up(&smallest).map(drop)
}

pub(crate) fn tests() -> Vec<Test> {
    let tests: [Named; _] = [
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
            "digit_reversal_sends_the_fewest_packets_in_a_row_over_an_uplink",
            order::digit_reversal_sends_the_fewest_packets_in_a_row_over_an_uplink,
        ),
    ];
    tests.into_iter().map(|(name, run)| Test::new(name, run)).collect()
}
