//! `cbrst-send`: sends files to a `cbrst-recv`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudburst_cli::send_main()
}
