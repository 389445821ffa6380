//! Endpoints with a router between them that translates addresses or is a firewall: senders behind
//! source NAT, receivers behind destination NAT or a virtual address. Each test has a router of its
//! own, with nftables.
//!
//! Needs root, iproute2 and nftables. Where they are missing the tests are ignored, and the reason
//! is printed.

#[path = "../common/mod.rs"]
mod common;
mod destination;
mod firewall;
mod rig;
mod source;

use cloudburst_testbed::{Gateway, available};
use libtest_mimic::{Arguments, Failed, Trial};

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
    let args = Arguments::from_args();
    let available = if args.list { Ok(()) } else { available() };
    let available = available.and_then(|()| Gateway::up()?.masquerade(true));
    if let Err(reason) = &available {
        println!("nat: ignored: {reason}");
    }
    let tests = [source::tests(), destination::tests(), firewall::tests()];
    let trial = |test: Test| Trial::test(test.name, test.run).with_ignored_flag(available.is_err());
    let tests = tests.into_iter().flatten().map(trial).collect();
    libtest_mimic::run(&args, tests).exit();
}
