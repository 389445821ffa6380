//! The link speed that the system reports.

use cloudburst_core::config::Capacity;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use std::fs;
use std::net::IpAddr;

/// The capacity assumed for loopback, which reports no speed.
const LOOPBACK: u64 = 10_000_000_000;
/// The capacity assumed if no speed is known.
const UNKNOWN: u64 = Capacity::FALLBACK.bits_per_second();

/// The capacity in bits per second of the interface that holds `ip`; for an unspecified one, of the
/// fastest interface that is up.
pub(crate) fn detect(ip: IpAddr) -> u64 {
    if ip.is_loopback() {
        return LOOPBACK;
    }
    let found = getifaddrs().ok().and_then(|all| {
        let usable = all.filter(|interface| holds(interface, ip));
        usable.filter_map(|interface| speed(&interface.interface_name)).max()
    });
    if let Some(capacity) = found {
        tracing::info!(%ip, capacity, "link capacity as the interface reports it");
        return capacity;
    }
    tracing::warn!(
        %ip,
        capacity = UNKNOWN,
        "no interface reports its speed, so {} Gb/s is assumed: set the link's bits per second with \
         `Config::capacity`",
        UNKNOWN / 1_000_000_000
    );
    UNKNOWN
}

fn holds(interface: &InterfaceAddress, ip: IpAddr) -> bool {
    let flags = interface.flags;
    if ip.is_unspecified() {
        return flags.contains(InterfaceFlags::IFF_UP)
            && !flags.contains(InterfaceFlags::IFF_LOOPBACK);
    }
    let Some(address) = &interface.address else { return false };
    match ip {
        IpAddr::V4(ip) => address.as_sockaddr_in().is_some_and(|held| held.ip() == ip),
        IpAddr::V6(ip) => address.as_sockaddr_in6().is_some_and(|held| held.ip() == ip),
    }
}

/// The speed in bits per second; `None` if the interface does not report it.
fn speed(interface: &str) -> Option<u64> {
    // An alias such as `eth0:1` is an address of the interface before the colon.
    let device = interface.split(':').next()?;
    let text = fs::read_to_string(format!("/sys/class/net/{device}/speed")).ok()?;
    parse_speed(&text)
}

/// The file holds the speed in Mb/s; -1 or 4294967295 if it is unknown.
fn parse_speed(text: &str) -> Option<u64> {
    match text.trim().parse::<i64>() {
        Ok(megabits) if megabits > 0 && megabits < i64::from(u32::MAX) => {
            Some(megabits as u64 * 1_000_000)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reported_speed_is_in_megabits_per_second() {
        assert_eq!(parse_speed("10000\n"), Some(10_000_000_000));
        for unknown in ["-1\n", "0\n", "4294967295\n", "", "fast"] {
            assert_eq!(parse_speed(unknown), None);
        }
    }

    #[test]
    fn loopback_and_unknown_addresses_have_default_speeds() {
        assert_eq!(detect(IpAddr::from([127, 0, 0, 1])), LOOPBACK);
        assert_eq!(detect("::1".parse().unwrap()), LOOPBACK);
        // TEST-NET-3: no interface holds it.
        assert_eq!(detect(IpAddr::from([203, 0, 113, 7])), UNKNOWN);
    }
}
