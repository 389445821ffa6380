//! Hosts on loopback, and peers that misbehave.

use super::*;
use crate::transport::testing::{call_from_many, call_to, expect_responses, failure, lies, peers};
use std::net::{Ipv4Addr, UdpSocket};

fn pair() -> (Quic, Quic) {
    let one = Quic::open().unwrap();
    let two = Quic::open().unwrap();
    one.connect(&peers(&[&one, &two])).unwrap();
    (one, two)
}

fn kept(host: &Quic) -> Connection {
    let remote = &host.remotes.get().unwrap()[1];
    host.runtime.block_on(remote.connection(&host.endpoint)).unwrap()
}

#[test]
fn a_call_gets_its_response() {
    expect_responses(&Quic::open().unwrap(), &Quic::open().unwrap());
}

#[test]
fn many_threads_share_one_connection() {
    let (one, two) = pair();
    call_from_many(&one, 8, 25);
    assert_eq!(one.endpoint.open_connections(), 1);
    assert_eq!(two.endpoint.open_connections(), 1);
}

#[test]
fn a_lost_connection_is_opened_again() {
    let (one, _two) = pair();
    one.call(call_to(2, 1)).unwrap();
    kept(&one).close(STOPPED, b"lost");
    one.call(call_to(2, 2)).unwrap();
}

#[test]
fn a_call_to_a_dead_peer_fails_with_its_reason() {
    let (one, two) = pair();
    one.call(call_to(2, 1)).unwrap();
    let lost = kept(&one);
    let port = two.listening().ports[0];
    drop(two);
    // The close arrives before the idle timeout.
    let reason = one.runtime.block_on(lost.closed());
    assert!(reason.to_string().contains("the host stops"), "{reason}");

    let reason = one.call(Call { within: Duration::from_millis(50), ..call_to(2, 2) }).unwrap_err();
    assert_eq!(reason, format!("host 2 at 127.0.0.1:{port}: not connected within 50ms"));
}

#[test]
fn a_stream_that_carries_no_request_is_reset() {
    let (one, _two) = pair();
    let honest = call_to(2, 1).encode();
    let longer = [&honest[..], &[0]].concat();
    let shorter = honest[..honest.len() - 1].to_vec();
    for request in lies().into_iter().chain([longer, shorter]) {
        let connection = kept(&one);
        let outcome = one.runtime.block_on(async {
            let (mut sending, mut receiving) = connection.open_bi().await.unwrap();
            sending.write_all(&request).await.unwrap();
            sending.finish().unwrap();
            receiving.read_to_end(LONGEST).await
        });
        assert_eq!(outcome, Err(quinn::ReadError::Reset(NO_REQUEST).into()));
    }
    one.call(call_to(2, 2)).unwrap();
}

#[test]
fn a_peer_with_another_certificate_is_refused() {
    let one = Quic::open().unwrap();
    let two = Quic::open().unwrap();
    let mut others = peers(&[&one, &two]);
    others[1].listening.certificate = one.listening().certificate;
    one.connect(&others).unwrap();
    let reason = failure(&one, call_to(2, 1));
    assert!(reason.contains("not connected") && reason.contains("certificate"), "{reason}");
}

#[test]
fn an_invalid_certificate_is_refused() {
    let one = Quic::open().unwrap();
    let mut others = peers(&[&one]);
    others[0].listening.certificate = vec![1, 2, 3];
    let reason = one.connect(&others).unwrap_err().to_string();
    assert!(reason.starts_with("QUIC: host 1: its certificate is unusable"), "{reason}");
}

#[test]
fn dropping_the_transport_closes_its_port() {
    let (one, two) = pair();
    one.call(call_to(2, 1)).unwrap();
    for host in [one, two] {
        let port = host.listening().ports[0];
        drop(host);
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
    }
}
