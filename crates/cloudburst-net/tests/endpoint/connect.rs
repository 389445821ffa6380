//! Connecting opens a session before the first message.

use crate::common::{TIMEOUT, builder, bytes, endpoint, eventually};
use cloudburst_net::{Config, Endpoint, SendError, SendOptions, Tuning};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_millis(300);

fn within_deadline() -> SendOptions {
    SendOptions::default().deadline(DEADLINE)
}

/// A socket that answers nothing, and its address.
fn nobody() -> (UdpSocket, SocketAddr) {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    (silent, address)
}

#[tokio::test]
async fn messages_after_a_connect_find_the_session_open() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    client.connect(to).await.unwrap();
    let sender = client.counters().sender;
    assert_eq!((sender.sessions_opened, sender.symbols_sent), (1, 0));
    client.connect(to).await.unwrap();
    client.send(to, bytes(5_000, 1)).await.unwrap();
    assert_eq!(server.recv().await.unwrap().bytes, bytes(5_000, 1));
    assert_eq!(client.counters().sender.sessions_opened, 1);
    assert!(client.shutdown(TIMEOUT).await);
}

#[tokio::test]
async fn several_tasks_connect_to_one_peer_and_to_their_own_endpoint() {
    let client = endpoint();
    let server = endpoint();
    for to in [server.local_addr(), client.local_addr()] {
        let connects = [(); 8].map(|()| {
            let client = client.clone();
            tokio::spawn(async move { client.connect(to).await })
        });
        for connect in connects {
            connect.await.unwrap().unwrap();
        }
    }
    let own = client.local_addr();
    client.send(own, "to myself").await.unwrap();
    assert_eq!(client.recv().await.unwrap().bytes, "to myself");
}

#[tokio::test]
async fn a_connect_to_a_silent_port_ends_with_no_answer() {
    let (_silent, address) = nobody();
    let client = endpoint();
    let start = Instant::now();
    let result = client.connect(address).deadline(DEADLINE).await;
    assert_eq!(result, Err(SendError::NoAnswer));
    assert!(start.elapsed() >= DEADLINE && start.elapsed() < DEADLINE + TIMEOUT);
    assert!(client.shutdown(Duration::ZERO).await, "nothing is under way");
}

#[tokio::test]
async fn an_address_without_a_path_is_refused() {
    let client = endpoint();
    let v6 = "[::1]:9".parse().unwrap();
    let refused = client.connect(v6).await;
    assert_eq!(refused, Err(SendError::NoPath { peer: v6 }));
}

#[tokio::test]
async fn dropping_a_connect_cancels_it_and_frees_capacity() {
    let (_silent, address) = nobody();
    let config = Config {
        tuning: Tuning { send_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let client: Endpoint = builder().config(config).build().unwrap();
    let server = endpoint();
    let waiting = client.clone();
    let to = server.local_addr();
    let mut connect = client.connect(address).into_future();
    let pending = tokio::time::timeout(Duration::from_millis(20), &mut connect).await;
    assert!(pending.is_err());
    // Only one message or connect may be under way: these wait until it is dropped.
    let full = client.send(to, "full").begin().map(drop);
    assert!(matches!(full, Err(SendError::Full { messages: 1, .. })), "{full:?}");
    let next = tokio::spawn(async move {
        waiting.connect(to).await?;
        waiting.send(to, "next").await
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!next.is_finished());
    drop(connect);
    next.await.unwrap().unwrap();
    assert!(client.shutdown(TIMEOUT).await);
}

#[tokio::test]
async fn a_closed_endpoint_does_not_connect() {
    let (_silent, address) = nobody();
    let client = endpoint();
    let server = endpoint();
    client.connect(server.local_addr()).await.unwrap();
    let connecting = client.clone();
    let connect = tokio::spawn(async move { connecting.connect(address).await });
    let is_connecting = || client.peer(address).is_some_and(|peer| peer.sent.handshakes_sent > 0);
    while !is_connecting() {
        tokio::task::yield_now().await;
    }
    assert!(!client.shutdown(Duration::from_millis(50)).await, "a connect is under way");
    assert_eq!(connect.await.unwrap(), Err(SendError::Closed));
    let late = client.connect(server.local_addr()).await;
    assert_eq!(late, Err(SendError::Closing));
}

#[test]
fn a_blocking_connect_fails_if_no_peer_answers() {
    let client = endpoint();
    let server = endpoint();
    client.connect(server.local_addr()).wait().unwrap();
    client.send(server.local_addr(), "hello").wait().unwrap();
    assert_eq!(client.counters().sender.sessions_opened, 1);
    let (_silent, address) = nobody();
    let result = client.connect(address).options(within_deadline()).wait();
    assert_eq!(result, Err(SendError::NoAnswer));
}

#[test]
fn a_shutdown_waits_for_a_connect_that_can_still_succeed() {
    let client = endpoint();
    let (silent, address) = nobody();
    let connecting = client.clone();
    let thread = thread::spawn(move || connecting.connect(address).wait());
    eventually("it sends a handshake", || {
        client.peer(address).is_some_and(|peer| peer.sent.handshakes_sent > 0)
    });
    let closing = client.clone();
    let closed = thread::spawn(move || closing.blocking_shutdown(TIMEOUT));
    let unsendable = SendOptions::default().priority(8);
    eventually("it closes", || {
        let refused = client.send(address, "late").options(unsendable).begin().map(drop);
        refused == Err(SendError::Closing)
    });
    // An endpoint appears at that address.
    drop(silent);
    let key = cloudburst_net::Security::pre_shared(crate::common::KEY);
    let server = Endpoint::builder().bind(address).security(key).build().unwrap();
    assert_eq!(thread.join().unwrap(), Ok(()));
    assert!(closed.join().unwrap(), "the connect has ended");
    drop(server);
}
