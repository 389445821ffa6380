//! Many calls with one deadline: the responses that arrived by then are there, and the rest is not
//! awaited.

use crate::common::{builder, bytes, endpoint, eventually};
use cloudburst_net::{Config, Endpoint, SendError, SendOptions, Tuning};
use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

fn within(deadline: Duration) -> SendOptions {
    SendOptions::default().deadline(deadline)
}

/// Servers that echo requests.
fn servers(count: usize) -> (Vec<Endpoint>, Vec<SocketAddr>) {
    let servers: Vec<_> = (0..count).map(|_| endpoint()).collect();
    for server in &servers {
        let server = server.clone();
        thread::spawn(move || server.blocking_serve(1, |request| request.bytes));
    }
    let addresses = servers.iter().map(Endpoint::local_addr).collect();
    (servers, addresses)
}

#[tokio::test]
async fn every_peer_answers_its_own_request_once() {
    let client = endpoint();
    let (_servers, addresses) = servers(8);
    let requests = addresses.iter().zip(0..).map(|(to, seed)| (*to, bytes(5_000, seed)));
    let mut calls = client.call_many(requests).begin();
    let mut came = BTreeSet::new();
    while let Some(response) = calls.next().await {
        assert_eq!(response.peer, addresses[response.index]);
        assert!(response.result.unwrap() == bytes(5_000, response.index as u64));
        assert!(came.insert(response.index));
        assert_eq!(calls.left() + came.len(), 8);
    }
    assert_eq!(came.len(), 8);
    assert_eq!(calls.next().await, None);
}

#[test]
fn responses_arrive_while_other_peers_do_not_answer() {
    let client = endpoint();
    let (_servers, mut addresses) = servers(3);
    let slow = endpoint();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    addresses.insert(1, slow.local_addr());
    addresses.insert(2, silent.local_addr().unwrap());
    let requests = addresses.iter().map(|to| (*to, "query"));
    let mut calls = client.call_many(requests).options(within(Duration::from_millis(500))).begin();
    let mut next = || client.block_on(calls.next()).map(|came| came.index);
    let first: BTreeSet<_> = (0..3).map_while(|_| next()).collect();
    assert_eq!(first, [0, 3, 4].into());
    let results = client
        .call_many(addresses.iter().map(|to| (*to, "query")))
        .options(within(Duration::from_millis(500)))
        .wait();
    assert!([0, 3, 4].iter().all(|at| results[*at].as_deref() == Ok(&b"query"[..])));
    assert_eq!(results[1], Err(SendError::NoResponse));
    assert_eq!(results[2], Err(SendError::NoAnswer));
}

#[test]
fn dropping_calls_cancels_those_that_have_not_ended() {
    let client = endpoint();
    let silent: Vec<_> = (0..4).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let peers = silent.iter().map(|peer| (peer.local_addr().unwrap(), bytes(10_000, 1)));
    let calls = client.call_many(peers).begin();
    assert_eq!(calls.left(), 4);
    eventually("it sends handshakes", || client.counters().sender.handshakes_sent >= 4);
    drop(calls);
    assert_eq!(client.counters().sender.rejected, 4, "nothing of them had been sent");
}

#[test]
fn requests_beyond_the_limits_are_refused_at_once() {
    let config = Config {
        tuning: Tuning { send_messages: Some(2), ..Tuning::default() },
        ..Config::default()
    };
    let client = builder().config(config).build().unwrap();
    let (_servers, addresses) = servers(3);
    let requests: Vec<_> = addresses.iter().map(|to| (*to, "query")).collect();
    let results = client.call_many(requests.clone()).wait();
    assert_eq!(results[2], Err(SendError::TooManyCalls { calls: 2 }));
    assert!(results[..2].iter().all(Result::is_ok));
    client.blocking_shutdown(Duration::ZERO);
    let results = client.call_many(requests).wait();
    assert!(results.iter().all(|result| *result == Err(SendError::Closing)));
}
