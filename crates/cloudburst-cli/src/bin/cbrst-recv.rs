//! `cbrst-recv`: receives files from `cbrst-send`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudburst_cli::recv_main()
}
