//! The evaluation's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudburst_eval::main()
}
