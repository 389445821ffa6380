//! What it costs to send packets back to back on one path: on the leaf-spine of network namespaces of
//! `cloudburst-testbed`, as tables in Markdown.
//!
//! ```sh
//! cargo run --release -p cloudburst-bench-programs --bin fabric-trains
//! ```
//!
//! Needs root and what the testbed needs. Two leaves with four hosts each, four spines, 100 Mb/s.
//! All hosts of leaf 1 send to leaf 2 at once, in pairs or to one host, over tiny queues of 8
//! packets. Then pairs again over queues of 16, and of 256, which drop nothing and show how many
//! places a train wants: by explicit paths alone, since hashed ones queue by luck, whatever the
//! train. What trains save where nothing is lost is in `cargo bench --bench latency -- trains`.
//!
//! Compared are settings of `Config::train`, the longest that a train may be. Up to 4, trains are as long
//! as that; beyond, each path learns what it bears, and with 64, the default, whatever a system call
//! carries. 4 MB of each sender go first and are not measured, to learn from. At 100 Mb/s the pacer would
//! keep trains at 4, so senders are told a higher rate: the ports of their hosts hold a whole message. Over
//! queues of 256, then, a train keeps others waiting as it never does at a rate that allows it.
//!
//! The settings take turns, in an order drawn anew for each repetition, with endpoints of their own;
//! in one repetition all have the same source ports, or luck with hashes would decide. The ports
//! and the orders are drawn from one seed; what endpoints draw themselves is not.
//!
//! | file | role |
//! |---|---|
//! | `trial` | one turn: four senders, their messages, the switches' counters |
//! | `tally` | what came of the turns of one row |

mod tally;
mod trial;

use cloudburst_bench_programs::rig::{Failure, LARGE, Rig};
use cloudburst_core::rng::SplitMix64;
use cloudburst_testbed::Topology;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use crate::tally::Tally;
use crate::trial::{Kind, Load, Map, Trial};

/// The longest that trains may be.
const TRAINS: [usize; 6] = [1, 2, 4, 8, 16, 64];
const LOADS: [Load; 3] = [
    Load { kind: Kind::Pairs, bytes: 20_000, messages: 40 },
    Load { kind: Kind::Pairs, bytes: LARGE, messages: 20 },
    Load { kind: Kind::Incast, bytes: 90_000, messages: 10 },
];
const REPETITIONS: usize = 8;
const SEED: u64 = 1;

fn main() -> ExitCode {
    let failure = match run() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    eprintln!("fabric-trains: {failure}");
    ExitCode::from(if failure.is_interruption() { 130 } else { 1 })
}

fn run() -> Result<(), Failure> {
    cloudburst_testbed::available()?;
    let interrupted = cloudburst_testbed::interrupted()?;
    measure(8, &LOADS, &[Map::Hashed, Map::Explicit], &interrupted)?;
    for places in [16, 256] {
        measure(places, &LOADS[..2], &[Map::Explicit], &interrupted)?;
    }
    Ok(())
}

/// Prints the rows of each load by each map, over tiny queues of so many packets.
fn measure(
    places: u32,
    loads: &[Load],
    maps: &[Map],
    interrupted: &AtomicBool,
) -> Result<(), Failure> {
    println!(
        "## Trains, {REPETITIONS} repetitions over tiny queues of {places} packets\n\n\
         | load | path map | longest train | delivered | p50, ms | p99, ms | packets a source symbol | \
         dropped, % | deepest queue seen | samples |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    let rig = Rig::up(&Topology { tiny_packets: places, ..Topology::default() }, interrupted)?;
    let _sinks = trial::sinks(&rig)?;
    let mut rng = SplitMix64::new(SEED);
    for &load in loads {
        for &map in maps {
            let mut tallies = TRAINS.map(|_| Tally::default());
            for _ in 0..REPETITIONS {
                trial::fix_source_ports(&rig, &mut rng)?;
                for at in shuffled(&mut rng) {
                    Trial { rig: &rig, load, map, train: TRAINS[at] }.take(&mut tallies[at])?;
                }
            }
            for (train, tally) in TRAINS.iter().zip(&tallies) {
                println!("| {load} | {map} | {train} | {tally} |");
            }
        }
    }
    println!();
    Ok(())
}

/// The places of all settings, in an order that is drawn (Fisher-Yates).
fn shuffled(rng: &mut SplitMix64) -> [usize; TRAINS.len()] {
    let mut order = core::array::from_fn(|at| at);
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}
