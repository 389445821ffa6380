//! Futures that are dropped before they are done: nothing that they waited for is lost. Those of
//! sends and calls are in `cancel.rs`.

use crate::common::{TIMEOUT, builder, bytes, endpoint, eventually};
use cloudburst_net::{Bytes, Config, RejectReason, SendError};
use std::collections::BTreeSet;
use std::future::Future;
use std::net::UdpSocket;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;
use tokio::time::timeout;

const MESSAGES: u64 = 1_000;

/// A time limit that varies from zero to longer than a message takes.
fn impatience(round: u64) -> Duration {
    Duration::from_micros(round * 37 % 300)
}

/// Polls `future` once, and drops it.
fn begin_and_drop(future: impl Future) {
    let mut future = Box::pin(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_is_lost_with_a_receiver_that_gives_up() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let sending = tokio::spawn(async move {
        for n in 0..MESSAGES {
            client.send(to, n.to_be_bytes().to_vec()).await.unwrap();
        }
    });
    let receivers: Vec<_> = (0..3)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move {
                let mut came = Vec::new();
                let mut gave_up = 0;
                loop {
                    match timeout(impatience(gave_up), server.recv()).await {
                        Ok(Ok(message)) => came.push(message.bytes),
                        Ok(Err(_)) => return (came, gave_up),
                        Err(_) => gave_up += 1,
                    }
                }
            })
        })
        .collect();
    sending.await.unwrap();
    server.shutdown(TIMEOUT).await;
    let mut all = Vec::new();
    let mut gave_up = 0;
    for receiver in receivers {
        let (came, times) = receiver.await.unwrap();
        all.extend(came);
        gave_up += times;
    }
    assert!(gave_up > 0, "nobody gave up");
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (1_000, 1_000));
}

#[test]
fn no_message_is_lost_with_a_blocking_receiver_that_gives_up() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let sending = thread::spawn(move || {
        for n in 0..MESSAGES {
            client.send(to, n.to_be_bytes().to_vec()).wait().unwrap();
        }
    });
    // Two: one takes the packets, the other waits for it.
    let receivers: Vec<_> = (0..2)
        .map(|_| {
            let server = server.clone();
            thread::spawn(move || {
                let mut came = Vec::new();
                let mut round = 0;
                while let Ok(message) = server.recv().wait_for(impatience(round)).transpose() {
                    came.extend(message.map(|message| message.bytes));
                    round += 1;
                }
                came
            })
        })
        .collect();
    sending.join().unwrap();
    server.blocking_shutdown(TIMEOUT);
    let came: Vec<_> = receivers.into_iter().flat_map(|taking| taking.join().unwrap()).collect();
    assert_eq!((came.len(), came.iter().collect::<BTreeSet<_>>().len()), (1_000, 1_000));
}

#[test]
fn no_request_is_lost_with_a_receiver_that_gives_up() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let service = server.clone();
    let serving = thread::spawn(move || {
        let mut round = 0;
        loop {
            match service.recv_request().wait_for(impatience(round)).transpose() {
                Ok(Some(request)) => drop(request.reply("done").wait().unwrap()),
                Ok(None) => round += 1,
                Err(_) => return,
            }
        }
    });
    for _ in 0..300 {
        assert_eq!(client.call(to, "a request").wait().unwrap(), "done");
    }
    server.blocking_shutdown(TIMEOUT);
    serving.join().unwrap();
}

#[test]
fn a_shutdown_continues_when_its_future_is_dropped() {
    let client = endpoint();
    let server = endpoint();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr();
    let sending = client.send(to, bytes(100_000, 1)).begin().unwrap();
    let stuck = client.send(silent.local_addr().unwrap(), "nobody hears").begin().unwrap();
    begin_and_drop(client.shutdown(Duration::from_millis(300)));
    eventually("no more is taken", || {
        client.send(to, "late").begin().is_err_and(|error| error == SendError::Closing)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        sending.await.unwrap();
        assert_eq!(stuck.await, Err(SendError::Closed));
    });
}

#[tokio::test]
async fn a_caller_learns_of_a_reply_that_is_dropped_half_way() {
    let slow = builder()
        .config(Config { capacity: 10_000_000.into(), ..Config::default() })
        .build()
        .unwrap();
    let client = endpoint();
    let to = slow.local_addr();
    let calling = tokio::spawn(async move { client.call(to, "a request").await });
    let request = slow.recv_request().await.unwrap();
    let reply = request.reply(bytes(10_000_000, 1));
    assert!(timeout(Duration::from_millis(20), reply).await.is_err(), "it takes seconds");
    assert!(slow.counters().sender.symbols_sent > 0);
    assert_eq!(calling.await.unwrap(), Err(SendError::Unanswered));
    assert_eq!(slow.counters().calls.responses_failed, 1);
}

#[tokio::test]
async fn replies_that_do_not_get_through_in_time_are_counted() {
    let slow = builder()
        .config(Config { capacity: 10_000_000.into(), ..Config::default() })
        .build()
        .unwrap();
    let client = endpoint();
    let to = slow.local_addr();
    let soon = Duration::from_millis(200);
    let call = async || client.call(to, "a request").deadline(soon).await;
    let failed = || slow.counters().calls.responses_failed;
    // Made before, because it may take longer than the deadline.
    let response = Bytes::from(bytes(10_000_000, 1));
    let reply = async || {
        let request = slow.recv_request().await.unwrap();
        request.reply(response.clone()).await.unwrap_err()
    };
    assert_eq!(tokio::join!(call(), reply()).0, Err(SendError::NoResponse));
    assert_eq!(failed(), 1);
    tokio::select! {
        () = slow.serve(1, async |_| response.clone()) => panic!("nobody has shut it down"),
        result = call() => assert_eq!(result, Err(SendError::NoResponse)),
    }
    eventually("both are counted", || failed() == 2);
}

#[tokio::test]
async fn a_caller_learns_that_its_response_is_too_large() {
    let config = Config { max_message: 10_000, ..Config::default() };
    let client = builder().config(config).build().unwrap();
    let server = endpoint();
    let to = server.local_addr();
    let caller = client.clone();
    let calling = tokio::spawn(async move { caller.call(to, "a request").await });
    let replied = server.recv_request().await.unwrap().reply(bytes(10_001, 1)).await;
    assert_eq!(replied, Err(SendError::Refused(RejectReason::TooLarge)));
    assert_eq!(calling.await.unwrap(), Err(SendError::Unanswered));

    tokio::spawn(async move { server.serve(1, |_| async { bytes(10_001, 1) }).await });
    assert_eq!(client.call(to, "a request").await, Err(SendError::Unanswered));
}
