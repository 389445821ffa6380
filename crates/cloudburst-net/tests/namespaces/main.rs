//! Endpoints on networks of namespaces: a leaf-spine, a wire whose ends are taken away, a router that translates
//! addresses.
//!
//! Needs root, iproute2, nftables and ethtool. If they are missing, the tests are ignored, and the reason is
//! printed.

#[path = "../common/mod.rs"]
mod common;
mod fabric;
mod interfaces;
mod nat;

use libtest_mimic::{Arguments, Failed, Trial};
use std::env;

/// The name of a test, and the function that runs it.
pub(crate) type Named = (&'static str, fn() -> Result<(), Failed>);

/// A test by its name.
pub(crate) struct Test {
    name: String,
    run: Box<dyn FnOnce() -> Result<(), Failed> + Send>,
}

impl Test {
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
    ) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

fn main() {
    let mut args = Arguments::from_args();
    // As with the standard harness. `.cargo/config.toml` sets it.
    let threads = || env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    args.test_threads = args.test_threads.or_else(threads);
    let mut trials = Vec::new();
    for (of, available, tests) in [
        ("fabric", fabric::available as fn() -> _, fabric::tests()),
        ("interfaces", cloudburst_testbed::available, interfaces::tests()),
        ("nat", nat::available, nat::tests()),
    ] {
        let available = if args.list { Ok(()) } else { available() };
        if let Err(reason) = &available {
            println!("{of}: ignored: {reason}");
        }
        trials.extend(tests.into_iter().map(|Test { name, run }| {
            Trial::test(format!("{of}::{name}"), run).with_ignored_flag(available.is_err())
        }));
    }
    libtest_mimic::run(&args, trials).exit();
}
