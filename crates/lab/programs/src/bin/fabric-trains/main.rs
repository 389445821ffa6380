//! The cost of sending packets back to back on one path: on the leaf-spine fabric of network namespaces
//! of `cloudburst-testbed`, as tables in Markdown.
//!
//! ```sh
//! cargo run --release -p cloudburst-bench-programs --bin fabric-trains
//! ```
//!
//! It needs root and the requirements of the testbed. There are two leaves with four hosts each and four
//! spines, at 100 Mb/s. All hosts of leaf 1 send to leaf 2 at once, in pairs or to one host, over tiny
//! queues of 8 packets. Then pairs send over queues of 16, and of 256, which drop no packets and show how
//! much queue a train needs: only by explicit paths, since on hashed ones the queues depend on luck,
//! whatever the train. For the savings of trains without loss, see `cargo bench --bench latency -- trains`.
//!
//! It compares settings of `Tuning::train`, the maximum length of a train. Up to 4, all trains have this
//! length; beyond, each path learns the length that it can carry, and with 64, the default, up to the limit
//! of a system call. Each sender first sends 4 MB, which are not measured, to learn from. At 100 Mb/s the
//! pacer would keep trains at 4, so senders are told a higher rate: the ports of their hosts hold a whole
//! message. Over queues of 256, a train therefore delays others more than at any rate that permits it.
//!
//! The settings are measured in turn, in an order drawn anew for each repetition, with fresh endpoints. In
//! one repetition all have the same source ports, because otherwise luck with hashes would decide. The
//! ports and the orders are drawn from one seed; the random choices of endpoints are not.
//!
//! | file | role |
//! |---|---|
//! | `trial` | one trial: four senders, their messages, the switches' counters |
//! | `results` | the results of the trials of one row |

mod results;
mod trial;

use cloudburst_bench_programs::rig::{Failure, LARGE, Rig};
use cloudburst_core::rng::SplitMix64;
use cloudburst_testbed::Topology;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use crate::results::RowResults;
use crate::trial::{Kind, Load, Map, Trial};

/// The maximum lengths of trains.
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

/// Prints the rows of each load by each map, over tiny queues of the given number of packets.
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
            let mut tallies = TRAINS.map(|_| RowResults::default());
            for _ in 0..REPETITIONS {
                trial::fix_source_ports(&rig, &mut rng)?;
                for at in shuffled(&mut rng) {
                    Trial { rig: &rig, load, map, train: TRAINS[at] }.take(&mut tallies[at])?;
                }
            }
            for (train, results) in TRAINS.iter().zip(&tallies) {
                println!("| {load} | {map} | {train} | {results} |");
            }
        }
    }
    println!();
    Ok(())
}

/// Returns the indices of all settings in random order (Fisher-Yates).
fn shuffled(rng: &mut SplitMix64) -> [usize; TRAINS.len()] {
    let mut order = core::array::from_fn(|at| at);
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}
