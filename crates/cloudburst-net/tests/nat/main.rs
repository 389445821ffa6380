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
use std::collections::BTreeSet;

/// A test by its name, and why it is not run, if it is not.
pub(crate) struct Test {
    name: String,
    ignored: Option<&'static str>,
    run: Box<dyn FnOnce() -> Result<(), Failed> + Send>,
}

impl Test {
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
    ) -> Self {
        Self { name: name.into(), ignored: None, run: Box::new(run) }
    }

    /// Not run, if that is so, because it fails for a reason that is known.
    pub(crate) fn ignore_if(mut self, is_so: bool, reason: &'static str) -> Self {
        if is_so {
            self.ignored = Some(reason);
        }
        self
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
    let tests: Vec<Test> = tests.into_iter().flatten().collect();
    let reasons: BTreeSet<&str> = tests.iter().filter_map(|test| test.ignored).collect();
    for reason in reasons {
        let ignored = tests.iter().filter(|test| test.ignored == Some(reason)).count();
        println!("nat: {ignored} ignored: {reason}");
    }
    let trial = |test: Test| {
        let ignored = test.ignored.is_some() || available.is_err();
        Trial::test(test.name, test.run).with_ignored_flag(ignored)
    };
    libtest_mimic::run(&args, tests.into_iter().map(trial).collect()).exit();
}
