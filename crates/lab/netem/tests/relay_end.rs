//! Dropping a relay ends its threads and closes its sockets. Alone in its process, so that no
//! other test takes the ports that it looks at.

use cloudburst_netem::{LinkConfig, Relay};
use core::time::Duration;
use std::net::UdpSocket;
use std::time::Instant;

#[test]
fn dropping_a_relay_ends_its_threads_and_frees_its_ports() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    // What is still under way does not keep the relay alive.
    let slow = LinkConfig { delay: Duration::from_secs(3_600), ..LinkConfig::default() };
    let links = vec![(LinkConfig::default(), slow)];
    let relay = Relay::start(target.local_addr().unwrap(), links, 1).unwrap();

    let mut ports = vec![relay.addr()];
    let mut buffer = [0; 16];
    for _ in 0..20 {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(b"hello", relay.addr()).unwrap();
        let (_, nat) = target.recv_from(&mut buffer).unwrap();
        target.send_to(b"under way for an hour", nat).unwrap();
        ports.push(nat);
    }
    assert!(ports.iter().all(|&port| UdpSocket::bind(port).is_err()));

    let start = Instant::now();
    drop(relay);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    // Each thread holds a share of its socket, so a free port is a thread that has ended.
    for port in ports {
        UdpSocket::bind(port).unwrap();
    }
}
