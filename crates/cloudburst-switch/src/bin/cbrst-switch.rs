//! `cbrst-switch`: renders and checks the configuration of the tiny queue for a switch.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudburst_switch::main()
}
