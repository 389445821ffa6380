//! What the tests share.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod log;
pub(crate) mod tap;

use cloudburst_net::{Builder, Config, Endpoint, Fabric, PathMap, Security};
use cloudburst_netem::{LinkConfig, Relay};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

pub(crate) const KEY: [u8; 32] = [7; 32];
/// The time limit for events that should happen soon.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn builder_on(ip: &str) -> Builder {
    let ip = ip.parse().expect("an IP address");
    Endpoint::builder()
        .bind(SocketAddr::new(ip, 0))
        .paths(PathMap::ecmp(4))
        .security(Security::pre_shared(KEY))
}

pub(crate) fn builder() -> Builder {
    builder_on("127.0.0.1")
}

/// The default settings with these DSCPs.
pub(crate) fn with_dscps(dscps: impl Into<Vec<u8>>) -> Config {
    let fabric = Fabric { dscps: dscps.into(), ..Fabric::default() };
    Config { fabric, ..Config::default() }
}

pub(crate) fn endpoint() -> Endpoint {
    builder().build().expect("loopback endpoints can be built")
}

/// An endpoint that is `known_as` the address of a relay, and that relay.
pub(crate) fn behind_relay(
    builder: Builder,
    links: Vec<(LinkConfig, LinkConfig)>,
    seed: u64,
) -> (Endpoint, Relay) {
    let front = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    let known_as = front.local_addr().expect("it is bound");
    let endpoint = builder.known_as([known_as]).build().expect("loopback endpoints can be built");
    let relay = Relay::start_at(front, endpoint.local_addr(), links, seed).expect("a relay");
    (endpoint, relay)
}

/// Bytes that differ everywhere and from one seed to the next.
pub(crate) fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Waits until a condition holds, and fails if it does not within [`TIMEOUT`].
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
