//! `cbrst-doctor`: examines the network between this host and a `cbrst-recv`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudburst_cli::doctor_main()
}
