//! The relay on real loopback sockets.

use cloudburst_netem::{LinkConfig, LinkStats, Loss, Relay, RelayError};
use core::time::Duration;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

/// Long enough for a busy machine; reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(10);

fn perfect() -> (LinkConfig, LinkConfig) {
    (LinkConfig::default(), LinkConfig::default())
}

fn with_loss(p: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Independent(p), ..LinkConfig::default() }
}

fn socket(ip: &str) -> UdpSocket {
    let socket = UdpSocket::bind((ip, 0)).expect("loopback has free ports");
    socket.set_read_timeout(Some(PATIENCE)).expect("the timeout is not zero");
    socket
}

fn start(target: &UdpSocket, links: Vec<(LinkConfig, LinkConfig)>) -> Relay {
    let target = target.local_addr().expect("the socket is bound");
    Relay::start(target, links, 1).expect("loopback has free ports")
}

/// The next packet, or nothing if none comes in time.
fn receive(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut buffer = vec![0; 1 << 16];
    let (len, from) = socket.recv_from(&mut buffer).ok()?;
    buffer.truncate(len);
    Some((buffer, from))
}

/// Sends `text` from `client` to `target` and back. All of it must get through.
fn ping(client: &UdpSocket, relay: &Relay, target: &UdpSocket, text: &[u8]) -> SocketAddr {
    client.send_to(text, relay.addr()).expect("loopback takes packets");
    let (got, nat) = receive(target).expect("the packet gets through");
    assert_eq!(got, text);
    target.send_to(text, nat).expect("loopback takes packets");
    assert_eq!(receive(client), Some((text.to_vec(), relay.addr())));
    nat
}

/// Waits for a counter that another thread is about to raise.
fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "the condition never came true");
        std::thread::yield_now();
    }
}

#[test]
fn packets_pass_in_both_directions_over_ipv4_and_ipv6() {
    for ip in ["127.0.0.1", "::1"] {
        let target = socket(ip);
        let client = socket(ip);
        let relay = start(&target, vec![perfect()]);
        assert_eq!((relay.paths(), relay.stats(0)), (0, None));
        ping(&client, &relay, &target, b"hello");
        ping(&client, &relay, &target, b"");
        ping(&client, &relay, &target, &[7; 20_000]);
        assert_eq!((relay.paths(), relay.ignored()), (1, 0));
        let (up, down) = relay.stats(0).unwrap();
        assert_eq!((up.sent, up.delivered, down.sent, down.delivered), (3, 3, 3, 3));
    }
}

#[test]
fn replies_return_to_the_client_that_sent_the_request() {
    let target = socket("127.0.0.1");
    let relay = start(&target, vec![perfect()]);
    let clients: Vec<UdpSocket> = (0..5).map(|_| socket("127.0.0.1")).collect();
    let mut asked = Vec::new();
    for (k, client) in (0_u8..).zip(&clients) {
        client.send_to(&[k], relay.addr()).unwrap();
        let (got, nat) = receive(&target).unwrap();
        assert_eq!(got, [k]);
        assert_eq!(relay.path_of(client.local_addr().unwrap()), Some(usize::from(k)));
        asked.push(nat);
    }
    // Each path is an address of its own to the target.
    assert!((1..asked.len()).all(|k| !asked[..k].contains(&asked[k])));
    for (k, nat) in (0..5_u8).zip(&asked).rev() {
        target.send_to(&[k, k], nat).unwrap();
    }
    for (k, client) in (0_u8..).zip(&clients) {
        assert_eq!(receive(client), Some((vec![k, k], relay.addr())));
    }
    assert_eq!(relay.paths(), 5);
}

#[test]
fn only_packets_from_the_target_reach_clients() {
    let target = socket("127.0.0.1");
    let client = socket("127.0.0.1");
    let stranger = socket("127.0.0.1");
    let relay = start(&target, vec![perfect()]);
    let nat = ping(&client, &relay, &target, b"1");
    stranger.send_to(b"forged", nat).unwrap();
    ping(&client, &relay, &target, b"2");
    assert_eq!(relay.stats(0).unwrap().1.sent, 2);
}

#[test]
fn each_path_has_the_faults_of_its_own_links() {
    let target = socket("127.0.0.1");
    let dead = (with_loss(1.0), LinkConfig::default());
    let relay = start(&target, vec![perfect(), dead]);
    let clients: Vec<UdpSocket> = (0..4).map(|_| socket("127.0.0.1")).collect();
    for round in 0..50_u8 {
        for (k, client) in (0_u8..).zip(&clients) {
            client.send_to(&[k, round], relay.addr()).unwrap();
        }
        // The links take turns: paths 0 and 2 are perfect, 1 and 3 lose all.
        assert_eq!(receive(&target).unwrap().0, [0, round]);
        assert_eq!(receive(&target).unwrap().0, [2, round]);
    }
    wait_until(|| relay.stats(3).is_some_and(|(up, _)| up.sent == 50));
    for path in 0..4 {
        let (up, down) = relay.stats(path).unwrap();
        let lost = if path % 2 == 0 { 0 } else { 50 };
        assert_eq!((up.sent, up.lost, up.delivered, down.sent), (50, lost, 50 - lost, 0));
    }
}

#[test]
fn a_black_hole_heals() {
    let target = socket("127.0.0.1");
    let client = socket("127.0.0.1");
    let relay = start(&target, vec![perfect()]);
    let nat = ping(&client, &relay, &target, b"before");

    relay.set_down(0, true).unwrap();
    client.send_to(b"gone", relay.addr()).unwrap();
    target.send_to(b"gone too", nat).unwrap();
    let swallowed = |(up, down): (LinkStats, LinkStats)| (up.blackholed, down.blackholed) == (1, 1);
    wait_until(|| relay.stats(0).is_some_and(swallowed));

    relay.set_down(0, false).unwrap();
    ping(&client, &relay, &target, b"after");
}

#[test]
fn one_direction_alone_can_fail() {
    let target = socket("127.0.0.1");
    let client = socket("127.0.0.1");
    let relay = start(&target, vec![perfect()]);
    let nat = ping(&client, &relay, &target, b"before");
    relay.reconfigure(0, LinkConfig::default(), with_loss(1.0)).unwrap();
    client.send_to(b"one way", relay.addr()).unwrap();
    assert_eq!(receive(&target), Some((b"one way".to_vec(), nat)));
    target.send_to(b"lost", nat).unwrap();
    wait_until(|| relay.stats(0).is_some_and(|(_, down)| down.lost == 1));
    relay.reconfigure(0, LinkConfig::default(), LinkConfig::default()).unwrap();
    ping(&client, &relay, &target, b"after");
}

#[test]
fn delayed_packets_arrive_later_and_in_order() {
    let target = socket("127.0.0.1");
    let client = socket("127.0.0.1");
    let delay = Duration::from_millis(20);
    let slow = LinkConfig { delay, jitter: delay, ..LinkConfig::default() };
    let relay = start(&target, vec![(slow.clone(), slow)]);
    let start = Instant::now();
    let nat = ping(&client, &relay, &target, b"0");
    assert!(start.elapsed() >= 2 * delay);
    for k in 0..50_u8 {
        client.send_to(&[k], relay.addr()).unwrap();
        target.send_to(&[k], nat).unwrap();
    }
    for k in 0..50_u8 {
        assert_eq!(receive(&target).unwrap().0, [k]);
        assert_eq!(receive(&client).unwrap().0, [k]);
    }
}

#[test]
fn a_target_that_starts_late_or_restarts_is_reached() {
    let early = socket("127.0.0.1");
    let client = socket("127.0.0.1");
    let addr = early.local_addr().unwrap();
    let relay = start(&early, vec![perfect()]);
    ping(&client, &relay, &early, b"1");
    drop(early);
    for k in 0..5 {
        client.send_to(b"refused", relay.addr()).unwrap();
        wait_until(|| relay.stats(0).is_some_and(|(up, _)| up.delivered == 2 + k));
    }
    let late = UdpSocket::bind(addr).unwrap();
    late.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send_to(b"2", relay.addr()).unwrap();
    // The last of the others may have been counted and not yet sent when the target came back.
    while receive(&late).unwrap().0 != b"2" {}
    ping(&client, &relay, &late, b"3");
}

#[test]
fn clients_beyond_the_limit_are_ignored_and_counted() {
    let target = socket("127.0.0.1");
    let relay = start(&target, vec![perfect()]);
    let clients: Vec<UdpSocket> = (0..=Relay::MAX_PATHS).map(|_| socket("127.0.0.1")).collect();
    for client in &clients[..Relay::MAX_PATHS] {
        ping(client, &relay, &target, b"in");
    }
    clients[Relay::MAX_PATHS].send_to(b"out", relay.addr()).unwrap();
    wait_until(|| relay.ignored() == 1);
    ping(&clients[0], &relay, &target, b"still served");
    assert_eq!(relay.paths(), Relay::MAX_PATHS);
}

#[test]
fn invalid_relays_are_refused() {
    let target = socket("127.0.0.1");
    let client = socket("127.0.0.1");
    let addr = target.local_addr().unwrap();
    let error = Relay::start(addr, Vec::new(), 1).unwrap_err();
    assert_eq!(error.to_string(), "a relay needs links, got 0");
    let error = Relay::start(addr, vec![perfect(), (LinkConfig::default(), with_loss(2.0))], 1);
    let refused = "`loss` must be a probability from 0 to 1, got 2";
    assert_eq!(error.unwrap_err().to_string(), refused);

    let relay = start(&target, vec![perfect()]);
    assert_eq!(relay.set_down(0, true), Err(RelayError::UnknownPath { path: 0, paths: 0 }));
    ping(&client, &relay, &target, b"1");
    let error = relay.reconfigure(1, LinkConfig::default(), LinkConfig::default()).unwrap_err();
    assert_eq!(error.to_string(), "there is no path 1: 1 client addresses have been seen");
    let error = relay.reconfigure(0, with_loss(1.0), with_loss(2.0)).unwrap_err();
    assert_eq!(error.to_string(), refused);
    ping(&client, &relay, &target, b"both links are as they were");
}
