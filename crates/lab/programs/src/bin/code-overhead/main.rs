//! The cost of the codes in symbols and in XORs, by simulation.
//!
//! ```sh
//! cargo run --release -p cloudburst-bench-programs --bin code-overhead -- figure7 --out target/codes
//! cargo run --release -p cloudburst-bench-programs --bin code-overhead -- extra --out target/codes
//! ```
//!
//! `figure7` draws the paper's Figure 7: XORs per message, and symbols needed per source symbol, by
//! degree. `extra` tabulates the symbols beyond n that a code needs, by n and by the share of the
//! first n symbols that are lost. The results are in `crates/lab/docs/codes.md`.
//!
//! | file | role |
//! |---|---|
//! | `simulate` | trials, spread over threads |
//! | `totals` | the results of the trials of one point: means, percentiles |
//! | `figure7`, `extra` | the points, and their output |
//! | `plot` | a chart with one line for each n |
//!
//! Nothing is timed here, and the same trials give the same files everywhere: their seeds are
//! fixed, whatever the number of threads.

mod extra;
mod figure7;
mod plot;
mod simulate;
mod totals;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::simulate::Effort;

/// Measures the cost of the codes in symbols and in XORs, by simulation.
#[derive(Debug, Parser)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The paper's Figure 7: XORs and symbols per message by degree, as CSV and SVG
    Figure7(figure7::Options),
    /// Symbols needed beyond n by n and loss, as CSV, and as tables on standard output
    Extra(extra::Options),
}

/// The options that both have.
#[derive(Debug, Args)]
struct Common {
    /// Directory to write to
    #[arg(long, value_name = "DIR", default_value = "target/codes")]
    out: PathBuf,

    /// Trials of each point
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    trials: u64,

    /// Threads; the results are the same with any number [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

impl Common {
    fn effort(&self) -> Effort {
        let threads = match self.threads {
            Some(threads) => usize::from(threads),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        Effort { trials: self.trials, threads }
    }

    /// Creates the directory for the results, before the work rather than after it.
    fn prepare(&self) -> Result<(), String> {
        std::fs::create_dir_all(&self.out).map_err(|error| {
            format!("cannot make {}: {error}; choose another with --out", self.out.display())
        })
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.out.join(name);
        std::fs::write(&path, text).map_err(|error| unwritable(&path, &error))
    }
}

fn unwritable(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("cannot write {}: {error}; choose another directory with --out", path.display())
}

fn main() -> ExitCode {
    let done = match Command::parse().what {
        What::Figure7(options) => figure7::run(&options),
        What::Extra(options) => extra::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("code-overhead: {error}");
            ExitCode::FAILURE
        }
    }
}
