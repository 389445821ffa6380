//! `cbrst-switch`: the tiny queue's configuration for a switch, rendered and checked.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudburst_switch::main()
}
