//! The simulator's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudburst_sim::cli::main()
}
