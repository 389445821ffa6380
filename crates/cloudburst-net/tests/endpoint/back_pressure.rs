//! Full queues make senders wait, at both ends, and nothing is dropped.

use crate::common::{TIMEOUT, builder, bytes, endpoint, eventually};
use cloudburst_net::{Config, SendError, Tuning};
use std::collections::BTreeSet;
use std::future::Future;
use std::net::UdpSocket;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn begin_refuses_beyond_the_limits_with_the_numbers() {
    let config = Config {
        tuning: Tuning { send_messages: Some(2), ..Tuning::default() },
        ..Config::default()
    };
    let client = builder().config(config).build().unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    let one = client.send(to, bytes(100, 1)).begin().unwrap();
    let two = client.send(to, bytes(100, 2)).begin().unwrap();
    assert_ne!(one.id(), two.id());
    match client.send(to, bytes(100, 3)).begin() {
        Err(SendError::Full { messages: 2, bytes: 200 }) => {}
        other => panic!("full, not {other:?}"),
    }
    drop(one);
    client.send(to, bytes(100, 3)).begin().map(drop).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_that_wait_for_capacity_are_all_delivered() {
    const MESSAGES: u64 = 400;
    // Capacity for three messages, or for fewer long ones.
    let config = Config {
        tuning: Tuning { send_messages: Some(3), send_bytes: Some(30_000), ..Tuning::default() },
        ..Config::default()
    };
    let client = builder().config(config).build().unwrap();
    let server = endpoint();
    let to = server.local_addr();
    let sends: Vec<_> = (0..MESSAGES)
        .map(|n| {
            let client = client.clone();
            let len = if n % 7 == 0 { 25_000 } else { 100 };
            tokio::spawn(async move {
                if n % 11 == 0 {
                    // Gives up while it waits, or right after: the others must not be affected.
                    let soon = Duration::from_micros(n);
                    let _ = tokio::time::timeout(soon, client.send(to, bytes(len, n))).await;
                    return;
                }
                client.send(to, bytes(len, n)).await.expect("the server takes everything");
            })
        })
        .collect();
    let reader = tokio::spawn(async move { while server.recv().await.is_ok() {} });
    for send in sends {
        tokio::time::timeout(TIMEOUT, send).await.expect("no wake-up is lost").unwrap();
    }
    reader.abort();
}

#[test]
fn senders_that_are_never_polled_again_hold_nobody_up() {
    const ASLEEP: u64 = 12;
    let config = Config {
        tuning: Tuning { send_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let client = builder().config(config).build().unwrap();
    let server = endpoint();
    let to = server.local_addr();
    let mut asleep: Vec<_> = (0..ASLEEP).map(|n| client.send(to, bytes(1_000, n))).collect();
    let mut context = Context::from_waker(Waker::noop());
    for send in &mut asleep {
        assert!(Pin::new(send).poll(&mut context).is_pending());
    }
    let start = Instant::now();
    client.send(to, bytes(1_000, ASLEEP)).wait().unwrap();
    assert!(start.elapsed() < TIMEOUT / 2, "not when they have ended");
    for n in 0..=ASLEEP {
        let message = server.recv().wait_for(TIMEOUT).expect("theirs are sent, too");
        assert_eq!(message.unwrap().bytes, bytes(1_000, n), "in order of arrival");
    }
}

#[test]
fn a_slow_application_makes_its_senders_wait() {
    const MESSAGES: u64 = 60;
    let config = Config {
        tuning: Tuning { receive_messages: Some(4), ..Tuning::default() },
        ..Config::default()
    };
    let server = builder().config(config).build().unwrap();
    let client = endpoint();
    let to = server.local_addr();
    let sends: Vec<_> =
        (0..MESSAGES).map(|n| client.send(to, bytes(2_000, n)).begin().unwrap()).collect();
    eventually("the receiver says that it is busy", || client.counters().sender.busy_received > 0);
    assert!(server.counters().receiver.messages_delivered <= 4);

    let reader = thread::spawn(move || {
        let mut came = BTreeSet::new();
        for _ in 0..MESSAGES {
            let message = server.recv().wait_for(TIMEOUT).expect("all are delivered").unwrap();
            assert!(came.insert(message.bytes), "each once");
        }
        (server.try_recv(), came)
    });
    for send in sends {
        send.wait().unwrap();
    }
    let (rest, came) = reader.join().unwrap();
    assert_eq!(rest, Ok(None));
    assert!((0..MESSAGES).all(|n| came.contains(&*bytes(2_000, n))));
}

#[test]
fn a_service_that_stalls_makes_its_callers_wait() {
    const CALLS: u64 = 60;
    let config = Config {
        tuning: Tuning { receive_messages: Some(4), ..Tuning::default() },
        ..Config::default()
    };
    let server = builder().config(config).build().unwrap();
    let client = endpoint();
    let requests = (0..CALLS).map(|n| (server.local_addr(), bytes(2_000, n)));
    let calls = client.call_many(requests).begin();
    eventually("the service is busy", || client.counters().sender.busy_received > 0);
    assert!(server.counters().receiver.messages_delivered <= 4);

    let service = server.clone();
    let serving = thread::spawn(move || service.blocking_serve(1, |request| request.bytes));
    for (n, result) in (0..CALLS).zip(client.block_on(calls.results())) {
        assert!(result.unwrap() == bytes(2_000, n), "that is another's");
    }
    assert_eq!(server.counters().calls.requests_received, CALLS, "each once");
    server.blocking_shutdown(Duration::ZERO);
    serving.join().unwrap();
}
