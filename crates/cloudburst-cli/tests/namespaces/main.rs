//! On real sockets, between network namespaces: over a wire that loses packets both ways; with a router between them
//! that translates addresses or is a firewall; on a leaf-spine; and on a disk that is full.
//!
//! Needs root, iproute2, nftables and ethtool. Where they are missing the tests are ignored, and
//! the reason is printed.

mod cloud;
#[path = "../common/mod.rs"]
mod common;
mod disk;
mod doctor;
mod fabric;
mod killed;
mod lossy;
mod narrow;
mod shared;

use libtest_mimic::{Arguments, Failed, Trial};
use lossy::messages;
use std::env;

type Test = fn() -> Result<(), Failed>;

fn main() {
    let mut args = Arguments::from_args();
    // As with the standard harness. `.cargo/config.toml` sets it.
    let threads = || env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    args.test_threads = args.test_threads.or_else(threads);
    let available = if args.list { Ok(()) } else { fabric::available() };
    let available = available.map_err(|error| error.to_string());
    let mountable = if args.list { Ok(()) } else { disk::available() };
    for (tests, available) in [("namespaces", &available), ("full disk", &mountable)] {
        if let Err(reason) = available {
            println!("{tests}: ignored: {reason}");
        }
    }
    let tests: &[(&str, Test)] = &[
        ("a_hundred_thousand_messages_arrive_once_at_20_percent_loss", || messages(20, 100_000)),
        ("messages_arrive_once_at_1_percent_loss", || messages(1, 5_000)),
        ("messages_arrive_once_at_5_percent_loss", || messages(5, 5_000)),
        ("a_file_of_100_mb_arrives_byte_for_byte_at_5_percent_loss", lossy::file),
        (
            "in_clouds_tcp_keeps_its_share_of_capped_flows_and_some_of_capped_packets",
            cloud::tcp_keeps_its_share_of_capped_flows_and_some_of_capped_packets,
        ),
        ("a_tcp_flow_beside_cbrst_send_keeps_its_share", shared::a_tcp_flow_keeps_its_share),
        ("the_doctor_reports_no_problem_with_a_router", doctor::of_a_router),
        ("the_doctor_distinguishes_a_closed_port_from_silence", doctor::of_a_closed_port),
        ("the_doctor_names_both_addresses_of_source_nat", doctor::of_source_nat),
        ("the_doctor_names_both_ports_of_source_nat", doctor::of_translated_ports),
        (
            "the_doctor_reports_destination_nat_that_the_peer_does_not_know",
            doctor::of_destination_nat,
        ),
        ("the_doctor_recognizes_a_virtual_address", doctor::of_a_virtual_address),
        ("the_doctor_finds_a_stateful_firewall", doctor::of_a_firewall),
        ("the_doctor_finds_a_link_of_a_smaller_mtu", doctor::of_a_narrow_link),
        (
            "the_doctor_finds_a_link_that_drops_long_packets_silently",
            doctor::of_a_narrow_link_without_icmp,
        ),
        (
            "a_killed_receiver_is_reported_by_its_closed_port",
            killed::a_killed_receiver_is_reported_by_its_closed_port,
        ),
        (
            "a_file_crosses_a_link_that_drops_long_packets",
            narrow::a_file_crosses_a_link_that_drops_long_packets,
        ),
        (
            "a_transfer_of_which_nothing_arrives_ends_though_signs_of_life_do",
            narrow::a_transfer_of_which_nothing_arrives_ends_though_signs_of_life_do,
        ),
        ("four_spines_are_four_paths", fabric::four_spines_are_four_paths),
        ("a_dead_spine_is_reported", fabric::a_dead_spine_is_reported),
        (
            "a_spine_that_rewrites_the_dscp_is_named",
            fabric::a_spine_that_rewrites_the_dscp_is_named,
        ),
        (
            "a_lossy_link_is_reported_with_its_spine",
            fabric::a_lossy_link_is_reported_with_its_spine,
        ),
        ("one_spine_is_one_path", fabric::one_spine_is_one_path),
    ];
    let trial =
        |&(name, run): &(&str, Test)| Trial::test(name, run).with_ignored_flag(available.is_err());
    let mut trials: Vec<_> = tests.iter().map(trial).collect();
    let disk = Trial::test(
        "a_full_disk_is_named_and_nothing_half_written_remains",
        disk::a_full_disk_is_named_and_nothing_half_written_remains,
    );
    trials.push(disk.with_ignored_flag(mountable.is_err()));
    libtest_mimic::run(&args, trials).exit();
}
