//! What the benchmarks share: rivals, two ends to run them at, statistics, and the usage of processors.
//!
//! | module | role |
//! |---|---|
//! | [`transport`] | calls by TCP, HTTP/2, QUIC and Cloudburst, which wait in different ways |
//! | [`ends`] | two hosts, and the CPUs of their threads |
//! | [`usage`] | CPU time, context switches and page faults of this process |
//! | [`stats`] | percentiles, medians with intervals, and how figures are printed |

pub mod ends;
pub mod stats;
pub mod transport;
pub mod usage;

use std::env;
use std::process::ExitCode;

/// The result of what a benchmark does. Any error ends it.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Runs a benchmark with the arguments that cargo was given after `--`, and reports its error.
///
/// `cargo test --benches` and `--all-targets` run benchmarks too: there it is skipped.
pub fn run(name: &str, benchmark: impl FnOnce(&[String]) -> Result<()>) -> ExitCode {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let given = arguments.len();
    arguments.retain(|argument| argument != "--bench");
    if arguments.len() == given {
        println!(
            "{name}: skipped, it is not a test: cargo bench -p cloudburst-benches --bench {name}"
        );
        return ExitCode::SUCCESS;
    }
    match benchmark(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a benchmark that needs network namespaces, and skips it where there cannot be any.
pub fn run_in_namespaces(name: &str, benchmark: impl FnOnce(&[String]) -> Result<()>) -> ExitCode {
    run(name, |arguments| match cloudburst_testbed::available() {
        Ok(()) => benchmark(arguments),
        Err(reason) => {
            println!("{name}: skipped, {reason}");
            Ok(())
        }
    })
}
