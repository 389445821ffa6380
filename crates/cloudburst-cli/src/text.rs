//! Addresses, sizes and errors as text for users.

use cloudburst_net::{BuildError, PathMapError};
use indicatif::DecimalBytes;
use std::error::Error;
use std::iter;
use std::net::{IpAddr, SocketAddr};

/// Returns the address as users know it: a socket of both families has IPv4 peers at IPv6 addresses.
pub(crate) fn peer(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => (ip, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// Formats a number of bytes with a unit, in powers of 1000.
pub(crate) fn bytes(count: u64) -> String {
    DecimalBytes(count).to_string()
}

/// Formats how much of a file was transferred: `count` bytes, besides those that an earlier attempt has left.
pub(crate) fn transferred(count: u64, resumed: u64) -> String {
    match (count, resumed) {
        (_, 0) => bytes(count),
        (0, _) => format!("already there: {} compared by digest", bytes(resumed)),
        _ => format!("{} after {} of an earlier attempt", bytes(count), bytes(resumed)),
    }
}

/// Formats an error and its causes on one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}

/// Formats why an endpoint was not built. `address` is the argument that chooses the address of its sockets.
pub(crate) fn not_built(error: &BuildError, address: &str) -> String {
    let which = match error {
        BuildError::Paths(PathMapError::NoFlowLabels { .. }) => "an IPv6 address",
        BuildError::Paths(PathMapError::NoSource { .. }) => "the IPv4 address of a host",
        BuildError::Paths(PathMapError::Family { .. }) => "an address of that family",
        _ => return with_causes(error),
    };
    let text = error.to_string();
    // The library's advice is to bind to another address.
    let fact = text.rsplit_once(": bind ").map_or(&*text, |(fact, _)| fact);
    format!("{fact}: give {which} as {address}, or choose other --paths")
}

/// The names of settings in the library, and of the options that set them here.
const OPTIONS: [(&str, &str); 4] = [
    ("`Config::capacity`", "--capacity"),
    ("`Fabric::dscps`", "--dscp"),
    ("`capacity`", "--capacity"),
    ("`mtu`", "--mtu"),
];

/// Replaces the names of settings in a text of the library by those of options.
pub(crate) fn with_options(text: &str) -> String {
    OPTIONS.iter().fold(text.to_owned(), |text, (setting, option)| text.replace(setting, option))
}
