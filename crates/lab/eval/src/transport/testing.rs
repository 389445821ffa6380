//! Helpers for the tests of all transports.

use super::{Call, HEADER, LONGEST, Peer, Transport};
use core::time::Duration;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Instant;

/// Longer than any operation that ends at all, and shorter than the deadline of calls, so that a call
/// that only its deadline ends fails the test.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const WITHIN: Duration = Duration::from_secs(120);

/// Hosts on loopback, numbered from 1.
pub(super) fn peers(hosts: &[&dyn Transport]) -> Vec<Peer> {
    let peer = |host: &&dyn Transport| Peer {
        address: Ipv4Addr::LOCALHOST.into(),
        path_addresses: Vec::new(),
        listening: host.listening(),
    };
    hosts.iter().map(peer).collect()
}

pub(super) fn call_to(to: u16, id: u32) -> Call {
    Call { from: 1, to, id, request: 1500, response: 20_000, within: WITHIN }
}

/// Connects two hosts, and expects each to respond to the other, for several lengths.
pub(super) fn expect_responses(one: &dyn Transport, two: &dyn Transport) {
    let peers = peers(&[one, two]);
    one.connect(&peers).unwrap();
    two.connect(&peers).unwrap();
    for (request, response) in [(HEADER, 1), (1500, 93_000), (LONGEST, LONGEST)] {
        one.call(Call { request, response, ..call_to(2, 7) }).unwrap();
        two.call(Call { from: 2, request, response, ..call_to(1, 7) }).unwrap();
    }
}

/// Calls host 2 from `threads` threads at once, `each` times from each.
pub(super) fn call_from_many(host: &dyn Transport, threads: u32, each: u32) {
    thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                (0..each).for_each(|call| host.call(call_to(2, thread * each + call)).unwrap());
            });
        }
    });
}

/// The error of a call, which must fail well before its deadline.
pub(super) fn failure(host: &dyn Transport, call: Call) -> String {
    thread::scope(|scope| {
        let call = scope.spawn(|| host.call(call).unwrap_err());
        wait_until("the call's end", || call.is_finished());
        call.join().unwrap()
    })
}

/// Headers that every host must reject.
pub(super) fn lies() -> [Vec<u8>; 3] {
    let honest = call_to(1, 0);
    let header = |call: Call| Call { request: 0, ..call }.encode();
    let with_request = |request: u32| {
        let mut bytes = header(honest);
        bytes[..4].copy_from_slice(&request.to_be_bytes());
        bytes
    };
    let mut response = with_request(HEADER as u32);
    response[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    [with_request(u32::MAX), with_request(HEADER as u32 - 1), response]
}

/// Waits for an effect of another thread.
pub(super) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        thread::yield_now();
    }
}
