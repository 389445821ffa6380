//! Callbacks and tasks that panic: their callers get an error at once, and nothing else is
//! affected.

use crate::common::{TIMEOUT, bytes, endpoint, eventually};
use cloudburst_net::{Bytes, Closed, Endpoint, SendError, SendOptions};
use std::future::Future;
use std::mem::ManuallyDrop;
use std::net::{SocketAddr, UdpSocket};
use std::panic::panic_any;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::panicking;
use std::time::Duration;

/// A waker that panics, and counts how often.
#[derive(Default)]
struct Panicking(AtomicUsize);

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("as asked");
    }
}

impl Panicking {
    /// Has `future` wake this when it is done.
    fn wait_for<F: Future + ?Sized>(self: &Arc<Self>, future: Pin<&mut F>) {
        let waker = Waker::from(self.clone());
        assert!(future.poll(&mut Context::from_waker(&waker)).is_pending());
    }

    fn woken(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

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
    let this = endpoint.blocking();
    let other = crate::common::blocking();
    this.send(other.local_addr(), bytes(20_000, 1)).unwrap();
    other.send(this.local_addr(), "back").unwrap();
    assert_eq!(this.recv_timeout(TIMEOUT).unwrap().unwrap().bytes, "back");
    let rejected = SendError::NoAnswer;
    assert_eq!(this.with(soon()).send(nobody, "hello"), Err(rejected));
    let late = this.with(soon()).call(other.local_addr(), "nobody serves");
    assert_eq!(late, Err(SendError::NoResponse));
    assert!(this.shutdown(TIMEOUT), "nothing is left under way");
}

#[test]
fn a_waker_of_a_send_may_panic() {
    let endpoint = endpoint();
    let (_socket, nobody) = silent();
    let panicking = Arc::<Panicking>::default();
    let mut sending =
        std::pin::pin!(endpoint.send(nobody, "hello").options(soon()).begin().unwrap());
    panicking.wait_for(sending.as_mut());
    eventually("the send ends", || panicking.woken() == 1);
    assert_alive(&endpoint);
}

#[test]
fn a_waker_of_a_receiver_may_panic() {
    let endpoint = endpoint();
    let other = crate::common::blocking();
    let panicking = Arc::<Panicking>::default();
    let mut receiving = Box::pin(endpoint.recv());
    panicking.wait_for(receiving.as_mut());
    other.send(endpoint.local_addr(), "it is the application's").unwrap();
    assert_eq!(panicking.woken(), 1);
    drop(receiving);
    let message = endpoint.blocking().recv_timeout(TIMEOUT).unwrap().unwrap();
    assert_eq!(message.bytes, "it is the application's", "it was reported as delivered");
    assert_alive(&endpoint);
}

#[test]
fn a_waker_of_a_call_may_panic() {
    let endpoint = endpoint();
    let other = crate::common::blocking();
    let panicking = Arc::<Panicking>::default();
    let mut late = endpoint.call(other.local_addr(), "no answer").options(soon()).into_future();
    panicking.wait_for(late.as_mut());
    let unanswered = other.recv_request_timeout(TIMEOUT).unwrap().expect("its caller waits");
    eventually("its deadline ends it", || panicking.woken() == 1);
    let mut answered = endpoint.call(other.local_addr(), "a request").into_future();
    panicking.wait_for(answered.as_mut());
    let request = other.recv_request_timeout(TIMEOUT).unwrap().expect("its caller waits");
    request.reply("a response").unwrap();
    assert_eq!(panicking.woken(), 2);
    drop(unanswered);
    assert_alive(&endpoint);
}

#[test]
fn wakers_may_panic_when_an_endpoint_closes() {
    let endpoint = endpoint();
    let (_socket, nobody) = silent();
    let panicking = Arc::<Panicking>::default();
    let mut waiting = [(); 2].map(|()| endpoint.send(nobody, "hello").into_future());
    let mut receivers = [(); 2].map(|()| Box::pin(endpoint.recv()));
    let mut calls = [(); 2].map(|()| endpoint.call(nobody, "hello").into_future());
    waiting.iter_mut().for_each(|send| panicking.wait_for(send.as_mut()));
    calls.iter_mut().for_each(|call| panicking.wait_for(call.as_mut()));
    receivers.iter_mut().for_each(|receiver| panicking.wait_for(receiver.as_mut()));
    assert!(!endpoint.blocking().shutdown(Duration::ZERO));
    assert_eq!(panicking.woken(), 6, "each is woken");
    let mut context = Context::from_waker(Waker::noop());
    for mut send in waiting {
        assert_eq!(send.as_mut().poll(&mut context), Poll::Ready(Err(SendError::Closed)));
    }
    for mut receiver in receivers {
        assert_eq!(receiver.as_mut().poll(&mut context), Poll::Ready(Err(Closed)));
    }
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
    endpoint.blocking().try_send(other.local_addr(), payload()).unwrap().wait().unwrap();
    let late = endpoint.blocking().with(soon()).try_send(nobody, payload()).unwrap();
    assert_eq!(late.wait(), Err(SendError::NoAnswer));
    assert_alive(&endpoint);
}

#[test]
fn a_waker_and_the_owner_of_a_payload_may_panic_when_an_endpoint_closes() {
    let endpoint = endpoint();
    let (_socket, nobody) = silent();
    let panicking = Arc::<Panicking>::default();
    let payload = Bytes::from_owner(Owner(endpoint.clone()));
    let mut sending = pin!(endpoint.send(nobody, payload).begin().unwrap());
    panicking.wait_for(sending.as_mut());
    assert!(!endpoint.blocking().shutdown(Duration::ZERO));
    assert_eq!(panicking.woken(), 1);
}

/// A waker whose panic carries something that panics when it is dropped.
struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic_any(Self);
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if !panicking() {
            panic!("as asked");
        }
    }
}

#[test]
fn a_panic_payload_may_panic_when_it_is_dropped() {
    let endpoint = endpoint();
    let (_socket, nobody) = silent();
    let waker = ManuallyDrop::new(Waker::from(Arc::new(Bomb)));
    let mut sending = pin!(endpoint.send(nobody, "hello").options(soon()).begin().unwrap());
    assert!(sending.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    eventually("the send ends", || endpoint.counters().sender.rejected == 1);
    assert_alive(&endpoint);
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
