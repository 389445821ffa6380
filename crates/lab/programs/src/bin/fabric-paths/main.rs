//! The behaviour of real endpoints on many paths: on the leaf-spine fabric of network namespaces of
//! `cloudburst-testbed`, as tables in Markdown.
//!
//! ```sh
//! cargo run --release -p cloudburst-bench-programs --bin fabric-paths
//! cargo run --release -p cloudburst-bench-programs --bin fabric-paths -- black-holes
//! ```
//!
//! It needs root and the requirements of the testbed. There are two leaves and four spines at 100 Mb/s,
//! unless a table states otherwise; messages go from host 1 to a host of the other leaf.
//!
//! | file | role |
//! |---|---|
//! | `spread` | how packets spread over the spines, and the queues that they use |
//! | `queues` | the depth of the tiny queue, and the throughput that remains for TCP |
//! | `black_holes` | the cost of messages while spines are black holes, and after they have healed |
//! | `runs` | how many packets in a row take one uplink, by the order of paths |
//! | `maps` | the path maps that are tested |
//!
//! The fabric itself is `rig`, in the library.

mod black_holes;
mod maps;
mod queues;
mod runs;
mod spread;

use clap::{Parser, ValueEnum};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use cloudburst_bench_programs::rig::Failure;

/// Measures real endpoints on a leaf-spine of network namespaces. Needs root.
#[derive(Debug, Parser)]
struct Command {
    /// What to measure [default: all]
    #[arg(value_enum)]
    what: Option<What>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// How each path map spreads packets over the spines, and the queues that they use
    Spread,
    /// The depth of the tiny queue in an incast, and the throughput that remains for TCP
    Queues,
    /// The cost of messages while spines are black holes, and how soon healed paths are used
    BlackHoles,
    /// How many packets in a row take one uplink, by the order of paths
    Runs,
}

fn main() -> ExitCode {
    let what = Command::parse().what;
    let failure = match run(what) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    eprintln!("fabric-paths: {failure}");
    ExitCode::from(if failure.is_interruption() { 130 } else { 1 })
}

fn run(what: Option<What>) -> Result<(), Failure> {
    cloudburst_testbed::available()?;
    let interrupted = cloudburst_testbed::interrupted()?;
    let all = [What::Spread, What::Queues, What::BlackHoles, What::Runs];
    for what in what.map_or(all.to_vec(), |what| vec![what]) {
        measure(what, &interrupted)?;
        println!();
    }
    Ok(())
}

fn measure(what: What, interrupted: &AtomicBool) -> Result<(), Failure> {
    match what {
        What::Spread => spread::run(interrupted),
        What::Queues => queues::run(interrupted),
        What::BlackHoles => black_holes::run(interrupted),
        What::Runs => runs::run(interrupted),
    }
}
