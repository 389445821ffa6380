//! The fabric in the kernel. Each test has a fabric of its own.
//!
//! Needs root, iproute2, nftables and ethtool. Where they are missing the tests are ignored, and
//! the reason is printed.

mod bouncing;
mod capturing;
mod emulated;
mod failures;
mod lifecycle;
mod packets;
mod program;
mod queues;
mod routes;

use cloudburst_testbed::{Fabric, Topology, available};
use libtest_mimic::{Arguments, Failed, Trial};

type Test = fn() -> Result<(), Failed>;

/// Two hosts a leaf, and the paper's spines.
fn small() -> Topology {
    Topology { hosts: 4, ..Topology::default() }
}

fn main() {
    if lifecycle::is_victim() {
        let ended = lifecycle::wait_to_be_killed();
        return ended.expect("a test that kills it waits for its name");
    }
    let mut args = Arguments::from_args();
    // As with the standard harness. `.cargo/config.toml` sets it.
    let threads = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    args.test_threads = args.test_threads.or_else(threads);
    let available = if args.list { Ok(()) } else { available() };
    let available =
        available.and_then(|()| Fabric::up(&Topology { hosts: 2, ..small() }).map(drop));
    if let Err(reason) = &available {
        println!("fabric: ignored: {reason}");
    }
    let tests: &[(&str, Test)] = &[
        ("dropping_a_fabric_removes_it", lifecycle::dropping_a_fabric_removes_it),
        ("a_panic_takes_the_fabric_down", lifecycle::a_panic_takes_the_fabric_down),
        (
            "the_remains_of_a_killed_process_are_removed",
            lifecycle::the_remains_of_a_killed_process_are_removed,
        ),
        ("up_and_down_are_idempotent", program::up_and_down_are_idempotent),
        (
            "a_signal_during_up_leaves_nothing_behind",
            program::a_signal_during_up_leaves_nothing_behind,
        ),
        ("a_failed_step_leaves_nothing_behind", program::a_failed_step_leaves_nothing_behind),
        ("without_root_the_error_is_one_line", program::without_root_the_error_is_one_line),
        ("the_error_names_invalid_arguments", program::the_error_names_invalid_arguments),
        ("every_host_reaches_every_other", routes::every_host_reaches_every_other),
        ("sixteen_ports_use_every_spine", routes::sixteen_ports_use_every_spine),
        ("sixteen_flow_labels_use_every_spine", routes::sixteen_flow_labels_use_every_spine),
        ("an_alias_takes_its_spine_only", routes::an_alias_takes_its_spine_only),
        ("path_ids_share_their_spine", routes::path_ids_share_their_spine),
        ("the_tiny_queue_is_for_one_dscp", queues::the_tiny_queue_is_for_one_dscp),
        ("a_flood_leaves_tcp_its_share", queues::a_flood_leaves_tcp_its_share),
        (
            "tiny_queues_have_one_weight_and_an_order",
            queues::tiny_queues_have_one_weight_and_an_order,
        ),
        ("queues_change_while_the_fabric_is_up", queues::queues_change_while_the_fabric_is_up),
        ("a_super_packet_is_queued_in_pieces", queues::a_super_packet_is_queued_in_pieces),
        (
            "packets_that_find_the_queue_full_are_trimmed",
            emulated::packets_that_find_the_queue_full_are_trimmed,
        ),
        (
            "packets_that_are_not_ecn_capable_are_dropped_beyond_the_threshold",
            emulated::packets_that_are_not_ecn_capable_are_dropped_beyond_the_threshold,
        ),
        (
            "a_capture_sees_packets_to_emulated_queues_once",
            emulated::a_capture_sees_packets_to_emulated_queues_once,
        ),
        ("a_silent_spine_loses_its_share", failures::a_silent_spine_loses_its_share),
        ("a_link_that_is_down_is_avoided", failures::a_link_that_is_down_is_avoided),
        ("a_lossy_link_loses_at_its_rate", failures::a_lossy_link_loses_at_its_rate),
        (
            "a_bounced_packet_visits_the_named_spine",
            bouncing::a_bounced_packet_visits_the_named_spine,
        ),
        ("hosts_decapsulate_if_configured_to", bouncing::hosts_decapsulate_if_configured_to),
        (
            "a_capture_has_incoming_packets_once_and_in_order",
            capturing::a_capture_has_incoming_packets_once_and_in_order,
        ),
        (
            "up_replaces_a_fabric_whose_process_has_ended",
            program::up_replaces_a_fabric_whose_process_has_ended,
        ),
    ];
    let trial =
        |&(name, run): &(&str, Test)| Trial::test(name, run).with_ignored_flag(available.is_err());
    libtest_mimic::run(&args, tests.iter().map(trial).collect()).exit();
}
