//! `cbrst-testbed`: a leaf-spine of network namespaces.

use std::process::ExitCode;

fn main() -> ExitCode {
    cloudburst_testbed::main()
}
