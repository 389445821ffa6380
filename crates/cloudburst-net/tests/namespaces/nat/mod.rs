//! Endpoints with a router between them that translates addresses or is a firewall: senders behind
//! source NAT, receivers behind destination NAT or a virtual address. Each test has a router of its
//! own, with nftables.

mod destination;
mod firewall;
mod forged;
mod moving;
mod narrow;
mod rig;
mod source;

use crate::Test;
use cloudburst_testbed::{Error, Gateway};

/// Whether a gateway that translates addresses can be set up.
pub(crate) fn available() -> Result<(), Error> {
    cloudburst_testbed::available()?;
    Gateway::up()?.masquerade(true)
}

pub(crate) fn tests() -> Vec<Test> {
    let tests = [
        source::tests(),
        destination::tests(),
        firewall::tests(),
        forged::tests(),
        moving::tests(),
        narrow::tests(),
    ];
    tests.into_iter().flatten().collect()
}
