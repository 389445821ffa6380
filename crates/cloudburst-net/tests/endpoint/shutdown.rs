//! A shutdown waits for what is under way, within limits, and notifies peers of the rest.

use crate::common::{TIMEOUT, builder, bytes, endpoint, eventually};
use cloudburst_net::Request;
use cloudburst_net::{
    Bytes, Closed, Config, Endpoint, RejectReason, RequestParts, SendError, Sending, Tuning,
};
use std::future::{Future, IntoFuture};
use std::net::UdpSocket;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

#[tokio::test]
async fn a_shutdown_waits_for_messages_under_way() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let sends: Vec<_> =
        (0..50).map(|n| client.send(to, bytes(20_000, n)).begin().unwrap()).collect();
    assert!(client.shutdown(TIMEOUT).await, "all had ended");
    for send in sends {
        send.await.unwrap();
    }
    let late = client.send(to, "late").await;
    assert_eq!(late, Err(SendError::Closing));
    assert!(client.shutdown(TIMEOUT).await, "closing twice says the same");

    assert!(server.shutdown(TIMEOUT).await);
    for _ in 0..50 {
        assert_eq!(server.recv().await.unwrap().bytes.len(), 20_000);
    }
    assert_eq!(server.recv().await, Err(Closed));
    assert_eq!(server.try_recv(), Err(Closed));
    assert_eq!(server.counters().receiver.messages_delivered, 50);
}

#[test]
fn a_shutdown_wakes_receivers() {
    let server = endpoint();
    let waiting = server.clone();
    let waiter = thread::spawn(move || waiting.recv().wait());
    assert!(server.blocking_shutdown(TIMEOUT));
    assert_eq!(waiter.join().unwrap(), Err(Closed));
    assert_eq!(server.recv().wait_for(TIMEOUT), Some(Err(Closed)));
}

#[test]
fn a_shutdown_gives_up_when_its_time_is_over() {
    let client = endpoint();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sending = client.send(silent.local_addr().unwrap(), "nobody hears").begin().unwrap();
    let start = Instant::now();
    assert!(!client.blocking_shutdown(Duration::from_millis(100)));
    assert!(start.elapsed() >= Duration::from_millis(100) && start.elapsed() < TIMEOUT);
    assert_eq!(sending.wait(), Err(SendError::Closed));
}

#[tokio::test]
async fn dropping_the_last_clone_ends_sends_and_calls() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = endpoint();
    let clone = client.clone();
    let sending = client.send(silent.local_addr().unwrap(), "nobody hears").begin().unwrap();
    drop(client);
    drop(clone);
    assert_eq!(sending.await, Err(SendError::Closed));
}

/// An endpoint with capacity for one message, which is on its way to a peer that does not answer.
fn full(silent: &UdpSocket) -> (Endpoint, Sending) {
    let config = Config {
        tuning: Tuning { send_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let endpoint = builder().config(config).build().unwrap();
    let sending = endpoint.send(silent.local_addr().unwrap(), "nobody hears").begin().unwrap();
    (endpoint, sending)
}

fn is_waiting(future: Pin<&mut impl Future>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn a_shutdown_refuses_at_once_what_waits_for_capacity() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    let config = Config {
        tuning: Tuning { send_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let client = builder().config(config).build().unwrap();
    let mut under_way = pin!(client.call(to, "nobody hears").into_future());
    let mut call = pin!(client.call(to, "a call").into_future());
    let mut send = pin!(client.send(to, "a message").into_future());
    let mut connect = pin!(client.connect(to).into_future());
    assert!(is_waiting(under_way.as_mut()) && is_waiting(call.as_mut()));
    assert!(is_waiting(send.as_mut()) && is_waiting(connect.as_mut()));

    let mut shutdown = pin!(client.shutdown(TIMEOUT));
    assert!(is_waiting(shutdown.as_mut()));
    assert_eq!(call.await, Err(SendError::Closing));
    assert_eq!(send.await, Err(SendError::Closing));
    assert_eq!(connect.await, Err(SendError::Closing));
    assert!(is_waiting(under_way.as_mut()) && is_waiting(shutdown.as_mut()), "it has not ended");
}

#[test]
fn a_shutdown_refuses_at_once_a_blocking_caller_that_waits_for_capacity() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    let (client, sending) = full(&silent);
    let client = client.clone();
    thread::scope(|scope| {
        let call = scope.spawn(|| client.call(to, "a call").wait());
        let send = scope.spawn(|| client.send(to, "a message").wait());
        let shutdown = scope.spawn(|| client.blocking_shutdown(TIMEOUT));
        assert_eq!(call.join().unwrap(), Err(SendError::Closing));
        assert_eq!(send.join().unwrap(), Err(SendError::Closing));
        assert!(!shutdown.is_finished());
        drop(sending);
        assert!(shutdown.join().unwrap());
    });
}

#[test]
fn a_waker_may_shut_its_endpoint_down_when_a_send_ends() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (client, sending) = full(&silent);
    let nobody = silent.local_addr().unwrap();
    let send = client.send(nobody, "a message").deadline(Duration::from_millis(50));
    let mut send = pin!(send.into_future());
    let waker = Waker::from(Arc::new(ShutsDown(client.clone())));
    assert!(send.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // Frees capacity for the other send. At its deadline, a thread of the endpoint wakes it.
    drop(sending);
    eventually("it is closed", || client.is_closed());
}

struct ShutsDown(cloudburst_net::Endpoint);

impl Wake for ShutsDown {
    fn wake(self: Arc<Self>) {
        self.0.blocking_shutdown(Duration::ZERO);
    }
}

#[test]
fn a_shutdown_ends_one_that_a_waker_has_begun_on_a_thread_of_the_endpoint() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = endpoint();
    let endpoint = endpoint();
    let _sending = endpoint
        .send(silent.local_addr().unwrap(), "nobody hears")
        .deadline(Duration::from_secs(24 * 60 * 60))
        .begin()
        .unwrap();
    let mut receiving = pin!(endpoint.recv());
    let waker = Waker::from(Arc::new(WaitsLong(endpoint.clone())));
    assert!(receiving.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    other.send(endpoint.local_addr(), "wakes the receiver").wait().unwrap();
    eventually("the waker shuts it down", || endpoint.try_recv_request().is_err());
    assert!(!endpoint.blocking_shutdown(Duration::ZERO));
}

struct WaitsLong(cloudburst_net::Endpoint);

impl Wake for WaitsLong {
    fn wake(self: Arc<Self>) {
        self.0.blocking_shutdown(Duration::MAX);
    }
}

#[tokio::test]
async fn a_reply_that_waits_for_capacity_may_be_sent_until_the_shutdown_ends() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    for ends in [false, true] {
        let client = endpoint();
        let (server, sending) = full(&silent);
        let to = server.local_addr();
        let calling = tokio::spawn(async move { client.call(to, "a request").await });
        let request = server.recv_request().await.unwrap();
        let mut reply = pin!(request.reply("an answer").into_future());
        assert!(is_waiting(reply.as_mut()));
        let closing = server.clone();
        let time = if ends { Duration::from_millis(100) } else { TIMEOUT };
        let shutdown = tokio::spawn(async move { closing.shutdown(time).await });
        assert_eq!(server.send(to, "another").await, Err(SendError::Closing));
        if ends {
            assert!(!shutdown.await.unwrap());
            assert_eq!(reply.await, Err(SendError::Closing));
        } else {
            drop(sending);
            reply.await.unwrap();
            assert_eq!(calling.await.unwrap().unwrap(), "an answer");
        }
    }
}

#[tokio::test]
async fn a_reply_after_its_endpoint_was_dropped_was_not_sent() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    tokio::spawn(async move { client.call(to, "a request").await });
    let request = server.recv_request().await.unwrap();
    drop(server);
    assert_eq!(request.reply("late").await, Err(SendError::Closing));
}

/// The error that a caller gets for a request that the callee's application has not seen.
fn refused() -> SendError {
    SendError::Refused(RejectReason::Closing)
}

/// A call of `client` that its callee has, and one that waits in the callee's queue.
fn taken_and_queued(
    client: &Endpoint,
    server: &Endpoint,
) -> (Request, [JoinHandle<Result<Bytes, SendError>>; 2]) {
    let to = server.local_addr();
    let call = |request: &'static str| {
        let client = client.clone();
        thread::spawn(move || client.call(to, request).wait())
    };
    let first = call("taken");
    let request = server.recv_request().wait().unwrap();
    let second = call("queued");
    eventually("it is in the queue", || server.counters().receiver.messages_delivered == 2);
    (request, [first, second])
}

#[test]
fn a_shutdown_waits_for_replies_and_refuses_requests_that_were_not_taken() {
    let client = endpoint();
    let server = endpoint();
    let (request, [taken, queued]) = taken_and_queued(&client, &server);
    let closing = server.clone();
    let start = Instant::now();
    let shutdown = thread::spawn(move || closing.blocking_shutdown(TIMEOUT));
    // While the shutdown waits for the reply.
    assert_eq!(queued.join().unwrap(), Err(refused()));
    assert!(!refused().may_have_been_delivered());
    assert_eq!(client.call(server.local_addr(), "late").wait(), Err(refused()));
    assert!(matches!(server.try_recv_request(), Err(Closed)));
    assert!(!shutdown.is_finished());
    request.reply("an answer").wait().unwrap();
    assert_eq!(taken.join().unwrap().unwrap(), "an answer");
    assert!(shutdown.join().unwrap(), "all was drained");
    assert!(start.elapsed() < TIMEOUT);
    assert_eq!(server.counters().calls.requests_refused, 1);
}

#[test]
fn a_shutdown_that_gives_up_notifies_the_callers() {
    let client = endpoint();
    let server = endpoint();
    let (request, [taken, queued]) = taken_and_queued(&client, &server);
    let start = Instant::now();
    assert!(!server.blocking_shutdown(Duration::from_millis(100)));
    assert_eq!(taken.join().unwrap(), Err(SendError::Unanswered));
    assert_eq!(queued.join().unwrap(), Err(refused()));
    assert!(start.elapsed() < Duration::from_secs(5), "before the deadline");
    assert!(request.is_cancelled());
    assert!(request.reply("late").wait().is_err());
}

#[test]
fn dropping_an_endpoint_notifies_the_callers() {
    let client = endpoint();
    let server = endpoint();
    let (request, [taken, queued]) = taken_and_queued(&client, &server);
    let start = Instant::now();
    drop(server);
    assert_eq!(taken.join().unwrap(), Err(SendError::Unanswered));
    assert_eq!(queued.join().unwrap(), Err(refused()));
    assert!(start.elapsed() < Duration::from_secs(5), "before the deadline");
    assert!(request.is_cancelled());
}

#[test]
fn a_shutdown_that_gives_up_withdraws_the_requests_of_its_calls() {
    let client = endpoint();
    let server = endpoint();
    let caller = client.clone();
    let to = server.local_addr();
    let call = thread::spawn(move || caller.call(to, "abandoned").wait());
    let request = server.clone().recv_request().wait().unwrap();
    // Until the callee's STOP has arrived, the caller does not know that it has the request.
    eventually("the request is delivered", || client.counters().sender.delivered == 1);
    assert!(!client.clone().blocking_shutdown(Duration::ZERO));
    assert_eq!(call.join().unwrap(), Err(SendError::Closed));
    eventually("the callee knows that nobody waits", || request.is_cancelled());
    assert_eq!(server.counters().calls.requests_withdrawn, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_ends_with_the_shutdown_once_taken_requests_are_answered() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let gate = Arc::new(Semaphore::new(0));
    let service = server.clone();
    let opened = gate.clone();
    let serving = tokio::spawn(async move {
        let handler = |request: RequestParts| {
            let opened = opened.clone();
            async move {
                opened.acquire().await.unwrap().forget();
                request.bytes
            }
        };
        service.serve(2, handler).await;
    });
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call(to, "taken").await })
        })
        .collect();
    eventually("both are taken", || server.counters().calls.requests_received == 2);
    let shutdown = tokio::spawn(async move { server.shutdown(TIMEOUT).await });
    // No handler is free for it: it waits, and is refused when the shutdown begins.
    assert_eq!(client.call(to, "late").await, Err(refused()));
    gate.add_permits(2);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "taken");
    }
    assert!(shutdown.await.unwrap());
    serving.await.unwrap();
}

#[tokio::test]
async fn a_call_after_its_callee_has_shut_down_was_certainly_not_delivered() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let serving = server.clone();
    tokio::spawn(
        async move { serving.serve(1, async |request: RequestParts| request.bytes).await },
    );
    assert_eq!(client.call(to, "a request").await.unwrap(), "a request");
    let sent = client.counters().sender.symbols_sent;
    server.shutdown(TIMEOUT).await;
    // What it has not read yet, the client does not know.
    eventually("the end of the session has arrived", || {
        client.counters().io.datagrams_received == server.counters().io.datagrams_sent
    });
    let call = client.call(to, "another").deadline(Duration::from_millis(200)).await;
    assert_eq!(call, Err(SendError::NoAnswer));
    assert_eq!(client.counters().sender.symbols_sent, sent);
}

#[test]
fn callers_that_try_again_and_again_do_not_delay_a_shutdown() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let caller = client.clone();
    let over = Arc::new(AtomicBool::new(false));
    let until = over.clone();
    let calls = thread::spawn(move || {
        while !until.load(SeqCst) {
            let _ = caller.call(to, "again").wait();
        }
    });
    drop(server.recv_request().wait().unwrap());
    // It would not end before this time.
    assert!(server.blocking_shutdown(Duration::from_secs(24 * 60 * 60)));
    over.store(true, SeqCst);
    client.blocking_shutdown(Duration::ZERO);
    calls.join().unwrap();
}

#[tokio::test]
async fn closed_resolves_when_the_endpoint_is_shut_down() {
    let endpoint = endpoint();
    let mut closed = pin!(endpoint.closed());
    assert!(closed.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(!endpoint.is_closed());
    assert!(endpoint.shutdown(TIMEOUT).await);
    closed.await;
    endpoint.closed().await;
    assert!(endpoint.is_closed() && endpoint.is_closed());
}

#[test]
fn a_shutdown_after_traffic_does_not_linger() {
    for rounds in [1, 20] {
        let client = endpoint();
        let server = endpoint();
        let to = server.local_addr();
        let serving = server.clone();
        let service = thread::spawn(move || serving.blocking_serve(4, |request| request.bytes));
        for n in 0..rounds {
            client.call(to, bytes(5_000, n)).wait().unwrap();
            client.send(to, bytes(5_000, n)).wait().unwrap();
        }
        for endpoint in [server, client] {
            let start = Instant::now();
            assert!(endpoint.blocking_shutdown(TIMEOUT));
            assert!(start.elapsed() < Duration::from_millis(150), "{:?}", start.elapsed());
        }
        service.join().unwrap();
    }
}

/// Four servers restart one after the other, on the same ports, while callers repeat, at the next
/// server, the calls that were certainly not delivered.
#[test]
fn a_rolling_restart_fails_no_call_that_is_repeated_where_that_is_safe() {
    const SERVERS: usize = 4;
    const CALLERS: usize = 100;
    let start = |port: u16| {
        let to = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let server = builder().bind(to).build().expect("its port is free");
        let serving = server.clone();
        let service = thread::spawn(move || {
            serving.blocking_serve(8, |request| {
                // A handler that takes its time, now and then.
                if request.bytes.first().is_some_and(|byte| byte % 16 == 0) {
                    thread::sleep(Duration::from_millis(3));
                }
                request.bytes
            });
        });
        (server, service)
    };
    let mut servers: Vec<_> = (0..SERVERS).map(|_| start(0)).collect();
    let ports: Vec<_> = servers.iter().map(|(server, _)| server.local_addr()).collect();
    let over = AtomicBool::new(false);
    let (answered, repeated) = thread::scope(|scope| {
        let client = endpoint();
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let client = client.clone();
                let ports = &ports;
                let over = &over;
                scope.spawn(move || {
                    let mut answered = 0;
                    let mut repeated = 0;
                    let mut at = caller;
                    while !over.load(SeqCst) {
                        let request = bytes(100, (caller + answered * CALLERS) as u64);
                        loop {
                            let to = ports[at % SERVERS];
                            at += 1;
                            match client.call(to, request.clone()).wait() {
                                Ok(answer) => {
                                    assert_eq!(answer, request);
                                    break;
                                }
                                Err(error) if !error.may_have_been_delivered() => repeated += 1,
                                Err(error) => panic!("may have been delivered: {error:?}"),
                            }
                        }
                        answered += 1;
                    }
                    (answered, repeated)
                })
            })
            .collect();
        for _ in 0..2 {
            for (server, port) in servers.iter_mut().zip(&ports) {
                thread::sleep(Duration::from_millis(100));
                let (old, service) = server;
                assert!(old.blocking_shutdown(TIMEOUT));
                let next = std::mem::replace(service, thread::spawn(|| {}));
                next.join().unwrap();
                // Its ports are free once its last owner is gone.
                *old = endpoint();
                *server = start(port.port());
            }
        }
        over.store(true, SeqCst);
        let counts: Vec<(usize, usize)> =
            callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        counts.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    println!("{answered} calls were answered, {repeated} repeated");
    assert!(answered > CALLERS && repeated > 0);
    for (server, service) in servers {
        server.blocking_shutdown(TIMEOUT);
        service.join().unwrap();
    }
}
