//! Messages that cannot be delivered are reported as such, in time.

use crate::common::{TIMEOUT, builder, builder_on, bytes, endpoint, eventually};
use cloudburst_net::{
    Bytes, Closed, Config, Endpoint, LocalError, RejectReason, Security, SendError, SendOptions,
    Tuning,
};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_millis(300);

/// Where nobody listens. Not a port that was free a moment ago: tests beside this one take such
/// ports.
fn closed() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9))
}

fn within_deadline() -> SendOptions {
    SendOptions::default().deadline(DEADLINE)
}

#[test]
fn an_endpoint_with_another_key_gets_no_answer() {
    let server = endpoint();
    let stranger = Endpoint::builder()
        .bind("127.0.0.1:0".parse().unwrap())
        .security(Security::pre_shared([8; 32]))
        .build()
        .unwrap();
    let start = Instant::now();
    let result = stranger.send(server.local_addr(), "let me in").options(within_deadline()).wait();
    assert_eq!(result, Err(SendError::NoAnswer));
    assert!(start.elapsed() >= DEADLINE && start.elapsed() < DEADLINE + TIMEOUT);
    let receiver = server.counters().receiver;
    assert!(receiver.refused_handshakes > 0);
    assert_eq!((receiver.sessions_confirmed, receiver.messages_delivered), (0, 0));
    let from = server.refused_from().expect("there was one");
    assert!(stranger.local_addrs().contains(&from), "{from}");
    assert_eq!(server.counters().io.datagrams_sent, 0, "strangers are not answered");
}

#[test]
fn a_send_to_a_closed_port_ends_with_no_answer() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    for nobody in [silent.local_addr().unwrap(), closed()] {
        let start = Instant::now();
        let result = endpoint().send(nobody, "hello").options(within_deadline()).wait();
        assert_eq!(result, Err(SendError::NoAnswer));
        assert!(start.elapsed() >= DEADLINE && start.elapsed() < DEADLINE + TIMEOUT);
    }
}

/// The server knows no key: it returns what this endpoint has sent.
#[test]
fn packets_that_an_echo_server_returns_deliver_nothing() {
    let echo = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = echo.local_addr().unwrap();
    let serve = move || {
        let mut packet = [0; 2_048];
        while let Ok((len @ 1.., from)) = echo.recv_from(&mut packet) {
            echo.send_to(&packet[..len], from).unwrap();
        }
    };
    let server = thread::spawn(serve);
    let client = endpoint();
    for len in [0, 100, 50_000] {
        let result = client.send(addr, bytes(len, 1)).options(within_deadline()).wait();
        let certain = result.as_ref().is_err_and(|error| !error.may_have_been_delivered());
        assert!(certain, "{len} bytes: {result:?}");
    }
    // An empty datagram ends it.
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[], addr).unwrap();
    server.join().unwrap();
    assert_eq!(client.try_recv(), Ok(None));
    let counters = client.counters();
    assert!(counters.receiver.misdirected > 0, "its own handshakes came back");
    assert_eq!((counters.sender.symbols_sent, counters.receiver.sessions_confirmed), (0, 0));
}

#[test]
fn a_dead_peer_does_not_hold_up_another() {
    let client = endpoint();
    let server = endpoint();
    let doomed =
        client.send(closed(), bytes(50_000, 1)).options(within_deadline()).begin().unwrap();
    for n in 0..20 {
        client.send(server.local_addr(), bytes(5_000, n)).wait().unwrap();
    }
    assert_eq!(doomed.wait(), Err(SendError::NoAnswer));
}

#[test]
fn a_message_that_cannot_be_sent_is_refused_at_once() {
    let client = endpoint();
    let too_long = Bytes::from(vec![0; Config::default().max_message + 1]);
    let v6 = "[::1]:9".parse().unwrap();
    let port_0 = "127.0.0.1:0".parse().unwrap();
    let len = too_long.len();
    let result = client.send("127.0.0.1:9", too_long).wait();
    assert_eq!(result, Err(SendError::TooLarge { len, max: len - 1 }));
    let no_path = |peer| Err(SendError::NoPath { peer });
    assert_eq!(client.send(v6, "hello").wait(), no_path(v6));
    assert_eq!(client.send(port_0, "hello").wait(), no_path(port_0));
    let v4 = "127.0.0.1:9".parse().unwrap();
    let six = builder_on("::1").build().unwrap();
    assert_eq!(six.send(v4, "hello").wait(), no_path(v4));
}

#[test]
fn a_receiver_refuses_messages_beyond_its_own_limit() {
    let client = endpoint();
    let config = Config { max_message: 10_000, ..Config::default() };
    let server = builder().config(config).build().unwrap();
    let result = client.send(server.local_addr(), bytes(10_001, 1)).wait();
    assert_eq!(result, Err(SendError::Refused(RejectReason::TooLarge)));
    client.send(server.local_addr(), bytes(10_000, 1)).wait().unwrap();
    assert_eq!(server.recv().wait().unwrap().bytes.len(), 10_000);
}

#[tokio::test]
async fn a_send_to_a_receiver_that_restarts_is_indeterminate() {
    // Capacity for one message: the second is under way when the receiver goes.
    let config = Config {
        tuning: Tuning { receive_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let first = builder().config(config).build().unwrap();
    let addr = first.local_addr();
    let client = endpoint();
    client.send(addr, "first").await.unwrap();
    let in_flight = client.send(addr, bytes(9_000, 2)).begin().unwrap();
    eventually("the receiver is busy", || first.counters().receiver.busy_sent > 0);
    drop(first);

    let second = cloudburst_net::Endpoint::builder()
        .bind(addr)
        .security(Security::pre_shared(crate::common::KEY))
        .build()
        .unwrap();
    let outcome = in_flight.await;
    let third = client.send(addr, "third").await;
    // It may have begun at the moment of the restart.
    if third == Err(SendError::PeerRestarted) {
        client.send(addr, "third").await.unwrap();
    }
    let mut came = Vec::new();
    loop {
        let message = second.recv().await.unwrap();
        if message.bytes == "third" {
            break;
        }
        came.push(message.bytes);
    }
    match outcome {
        Ok(_) => assert_eq!(came, [bytes(9_000, 2)]),
        Err(error) if error.may_have_been_delivered() => assert!(came.len() <= 1),
        // Dropping an endpoint notifies its peers, once.
        Err(SendError::Refused(RejectReason::Closing)) => {
            assert!(came.is_empty());
        }
        other => panic!("delivered, indeterminate or refused, not {other:?}"),
    }
    assert_eq!(second.try_recv(), Ok(None));
}

#[tokio::test]
async fn a_sender_that_restarts_opens_a_session_of_its_own() {
    let server = endpoint();
    let client = endpoint();
    let addr = client.local_addr();
    client.send(server.local_addr(), "one").await.unwrap();
    drop(client);
    let again = Endpoint::builder()
        .bind(addr)
        .security(Security::pre_shared(crate::common::KEY))
        .build()
        .unwrap();
    again.send(server.local_addr(), "two").await.unwrap();
    assert_eq!(server.recv().await.unwrap().bytes, "one");
    let two = server.recv().await.unwrap();
    assert_eq!(two.bytes, "two");
    server.send(two.peer, "answer").await.unwrap();
    assert_eq!(again.recv().await.unwrap().bytes, "answer");
    server.shutdown(TIMEOUT).await;
    assert_eq!(server.recv().await, Err(Closed));
}

#[test]
fn an_unreachable_address_is_reported_as_such() {
    for (peer, why) in [("127.0.0.1:0", "cannot be 0"), ("[::1]:7", "of the other family")] {
        let error = endpoint().send(peer, "hello").wait().unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_broadcast_address_is_not_reported_as_a_firewall() {
    let broadcast = "127.255.255.255:9";
    let result = endpoint().send(broadcast, "hello").options(within_deadline()).wait();
    assert_eq!(result, Err(SendError::NotSent(LocalError::Prohibited)));
}

#[test]
fn a_message_with_a_deadline_of_zero_is_not_delivered() {
    let client = endpoint();
    let server = endpoint();
    client.send(server.local_addr(), "a session").wait().unwrap();
    let no_time = SendOptions::default().deadline(Duration::ZERO);
    let result = client.send(server.local_addr(), "hello").options(no_time).wait();
    assert_eq!(result, Err(SendError::NotStarted));
    assert_eq!(server.recv().wait().unwrap().bytes, "a session");
    assert_eq!(server.try_recv(), Ok(None));
}

#[test]
fn a_send_continues_while_its_caller_polls_it() {
    let client = endpoint();
    let server = endpoint();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut lost = client.send(silent.local_addr().unwrap(), "hello").begin().unwrap();
    assert_eq!(lost.wait_for(Duration::ZERO), None);
    assert_eq!(lost.wait_for(Duration::from_millis(5)), None);

    let mut sending = client.send(server.local_addr(), bytes(1_000, 1)).begin().unwrap();
    let receipt = sending.wait_for(TIMEOUT).expect("it arrives").unwrap();
    assert_eq!(receipt.bytes, 1_000);

    client.blocking_shutdown(Duration::ZERO);
    assert_eq!(lost.wait(), Err(SendError::Closed));
}
