//! Closing lets what is under way finish, within limits.

use crate::common::{PATIENCE, blocking, bytes, endpoint};
use cloudburst_net::{Closed, Refusal, SendError};
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

#[tokio::test]
async fn closing_drains_what_is_under_way() {
    let (client, server) = (endpoint(), endpoint());
    let to = server.local_addr();
    let sends: Vec<_> = (0..50).map(|n| client.try_send(to, bytes(20_000, n)).unwrap()).collect();
    assert!(client.close(PATIENCE).await, "all had ended");
    for send in sends {
        send.await.unwrap();
    }
    let late = client.send(to, "late").await;
    assert_eq!(late, Err(SendError::Refused(Refusal::Closing)));
    assert!(client.close(PATIENCE).await, "closing twice says the same");

    assert!(server.close(PATIENCE).await);
    for _ in 0..50 {
        assert_eq!(server.recv().await.unwrap().bytes.len(), 20_000);
    }
    assert_eq!(server.recv().await, Err(Closed));
    assert_eq!(server.try_recv(), Err(Closed));
    assert_eq!(server.counters().receiver.messages_delivered, 50);
}

#[test]
fn closing_wakes_whoever_waits_for_a_message() {
    let server = blocking();
    let waiting = server.clone();
    let waiter = thread::spawn(move || waiting.recv());
    assert!(server.close(PATIENCE));
    assert_eq!(waiter.join().unwrap(), Err(Closed));
    assert_eq!(server.recv_timeout(PATIENCE), Err(Closed));
}

#[test]
fn closing_gives_up_when_its_time_is_over() {
    let client = blocking();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sending = client.try_send(silent.local_addr().unwrap(), "nobody hears").unwrap();
    let start = Instant::now();
    assert!(!client.close(Duration::from_millis(100)));
    assert!(start.elapsed() >= Duration::from_millis(100) && start.elapsed() < PATIENCE);
    assert_eq!(sending.wait(), Err(SendError::Closed));
}

#[tokio::test]
async fn dropping_the_last_clone_ends_what_is_under_way() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = endpoint();
    let clone = client.clone();
    let sending = client.try_send(silent.local_addr().unwrap(), "nobody hears").unwrap();
    drop(client);
    drop(clone);
    assert_eq!(sending.await, Err(SendError::Closed));
}
