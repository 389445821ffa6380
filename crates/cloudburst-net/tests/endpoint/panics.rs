//! Callbacks and tasks that panic: their callers get an error at once, and nothing else is
//! affected.

use crate::common::{TIMEOUT, bytes, endpoint, eventually};
use cloudburst_net::{Bytes, Closed, Endpoint, SendError, SendOptions};
use std::net::{SocketAddr, UdpSocket};
use std::panic::panic_any;
use std::thread::panicking;
use std::time::Duration;

fn soon() -> SendOptions {
    SendOptions::default().deadline(Duration::from_millis(100))
}

fn silent() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Checks that messages, calls and deadlines of `endpoint` still work.
fn assert_alive(endpoint: &Endpoint) {
    let (_socket, nobody) = silent();
    let this = endpoint.clone();
    let other = crate::common::endpoint();
    this.send(other.local_addr(), bytes(20_000, 1)).wait().unwrap();
    other.send(this.local_addr(), "back").wait().unwrap();
    assert_eq!(this.recv().wait_for(TIMEOUT).unwrap().unwrap().bytes, "back");
    let rejected = SendError::NoAnswer;
    assert_eq!(this.send(nobody, "hello").options(soon()).wait(), Err(rejected));
    let late = this.call(other.local_addr(), "nobody serves").options(soon()).wait();
    assert_eq!(late, Err(SendError::NoResponse));
    assert!(this.blocking_shutdown(TIMEOUT), "nothing is left under way");
}

/// A payload whose owner uses the endpoint when it is dropped, and panics.
struct Owner(Endpoint);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        b"a payload"
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.counters();
        panic!("as asked");
    }
}

#[test]
fn the_owner_of_a_payload_may_use_the_endpoint_and_panic() {
    let other = endpoint();
    let endpoint = endpoint();
    let (_socket, nobody) = silent();
    let payload = || Bytes::from_owner(Owner(endpoint.clone()));
    drop(endpoint.send(nobody, payload()).begin().unwrap());
    // `send` might itself hold the last reference.
    endpoint.send(other.local_addr(), payload()).begin().unwrap().wait().unwrap();
    let late = endpoint.send(nobody, payload()).options(soon()).begin().unwrap();
    assert_eq!(late.wait(), Err(SendError::NoAnswer));
    assert_alive(&endpoint);
}

#[test]
fn the_owner_of_a_payload_may_panic_when_an_endpoint_closes() {
    let endpoint = endpoint();
    let (_socket, nobody) = silent();
    let payload = Bytes::from_owner(Owner(endpoint.clone()));
    let sending = endpoint.send(nobody, payload).begin().unwrap();
    assert!(!endpoint.blocking_shutdown(Duration::ZERO));
    assert_eq!(endpoint.recv().wait(), Err(Closed));
    drop(sending);
}

/// A payload whose owner panics with something that panics when it is dropped.
struct Bomb;

impl AsRef<[u8]> for Bomb {
    fn as_ref(&self) -> &[u8] {
        b"a payload"
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if !panicking() {
            panic_any(Self);
        }
    }
}

#[test]
fn a_panic_payload_may_panic_when_it_is_dropped() {
    let endpoint = endpoint();
    let (_socket, nobody) = silent();
    let payload = Bytes::from_owner(Bomb);
    let sending = endpoint.send(nobody, payload).options(soon()).begin().unwrap();
    eventually("the send ends", || endpoint.counters().sender.rejected == 1);
    assert_alive(&endpoint);
    drop(sending);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_panics_releases_its_operations() {
    let client = endpoint();
    let server = endpoint();
    let (_socket, nobody) = silent();
    let to = server.local_addr();
    let sender = client.clone();
    let sending = tokio::spawn(async move {
        let _sending = sender.send(nobody, bytes(100_000, 1)).begin().unwrap();
        let _calls = sender.call_many([(nobody, "hello")]).begin();
        panic!("as asked");
    });
    // The endpoint stays: one that is dropped together with the request may not be able to tell the
    // caller.
    let receiver = server.clone();
    let taking = tokio::spawn(async move {
        let _request = receiver.recv_request().await.unwrap();
        panic!("as asked");
    });
    assert_eq!(client.call(to, "a request").await, Err(SendError::Unanswered));
    assert!(sending.await.is_err() && taking.await.is_err());
    assert_eq!(client.counters().sender.rejected, 2, "both bursts have stopped");
    tokio::task::spawn_blocking(move || assert_alive(&client)).await.unwrap();
}
