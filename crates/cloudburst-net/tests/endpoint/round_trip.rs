//! Messages of all sizes arrive as they were sent, and are answered.

use crate::common::{TIMEOUT, builder, builder_on, bytes, endpoint};
use cloudburst_net::{Bytes, Config, Endpoint, PathMap, Security};
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

#[tokio::test]
async fn async_endpoints_exchange_messages_both_ways() {
    let client = endpoint();
    let server = endpoint();
    let receipt = client.send(server.local_addr(), "question").await.unwrap();
    assert_eq!((receipt.bytes, receipt.blocks), (8, 1));

    let question = server.recv().await.unwrap();
    assert_eq!(question.peer, client.local_addr(), "answers go to the port that was bound");
    assert_eq!(question.bytes, "question");
    server.send(question.peer, "answer").await.unwrap();
    assert_eq!(client.recv().await.unwrap().bytes, "answer");
    assert_eq!(server.try_recv(), Ok(None));
}

#[tokio::test]
async fn operations_can_be_spawned_and_outlive_their_handle() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let message = tokio::spawn(server.recv());
    let request = tokio::spawn(server.recv_request());
    let connect = tokio::spawn(client.connect(to));
    let send = tokio::spawn(client.send(to, "a message").priority(7));
    let call = tokio::spawn(client.call(to, "a request"));
    drop(client);
    connect.await.unwrap().unwrap();
    send.await.unwrap().unwrap();
    assert_eq!(message.await.unwrap().unwrap().bytes, "a message");
    tokio::spawn(request.await.unwrap().unwrap().reply("an answer")).await.unwrap().unwrap();
    assert_eq!(call.await.unwrap().unwrap(), "an answer");
}

/// What a function does whose errors are those of the standard library.
async fn echo(client: Endpoint) -> io::Result<Bytes> {
    let server = builder().build()?;
    client.send(server.local_addr(), "a message").await?;
    let message = server.recv().await?;
    server.send(message.peer, message).await?;
    Ok(client.recv().await?.into())
}

#[tokio::test]
async fn errors_and_messages_convert_to_the_types_of_others() {
    assert_eq!(echo(endpoint()).await.unwrap(), "a message");
    let closed = endpoint();
    closed.blocking_shutdown(Duration::ZERO);
    let error = echo(closed).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotConnected);
}

#[test]
fn blocking_endpoints_exchange_messages_both_ways_over_ipv4_and_ipv6() {
    for ip in ["127.0.0.1", "::1"] {
        let client = builder_on(ip).build().unwrap();
        let server = builder_on(ip).build().unwrap();
        client.send(server.local_addr(), "question").wait().unwrap();
        let question = server.recv().wait().unwrap();
        let answer = server.send(question.peer, "answer").begin().unwrap();
        assert_eq!(client.recv().wait_for(TIMEOUT).unwrap().unwrap().bytes, "answer");
        answer.wait().unwrap();
    }
}

#[test]
fn a_message_of_93_kb_needs_66_packets_over_ipv4_and_67_over_ipv6() {
    for (ip, needed) in [("127.0.0.1", 66), ("::1", 67)] {
        let client = builder_on(ip).build().unwrap();
        let server = builder_on(ip).build().unwrap();
        let receipt = client.send(server.local_addr(), bytes(93_000, 1)).wait().unwrap();
        assert_eq!(receipt.source_symbols, needed, "{receipt:?}");
    }
}

#[test]
fn a_dual_stack_endpoint_exchanges_messages_with_ipv4_peers() {
    let server = builder_on("::").build().unwrap();
    for ip in ["127.0.0.1", "::1"] {
        let client = builder_on(ip).build().unwrap();
        let here = SocketAddr::new(ip.parse().unwrap(), server.local_addr().port());
        client.send(here, "question").wait().unwrap();
        let question = server.recv().wait().unwrap();
        assert_eq!(question.peer, client.local_addr());
        server.send(question.peer, "answer").wait().unwrap();
        assert_eq!(client.recv().wait().unwrap().bytes, "answer");
    }
}

#[test]
fn every_size_arrives_byte_for_byte() {
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let sizes: Vec<usize> = (0..40)
        .chain([1_339, 1_340, 1_341, 1_400, 2_719, 5_000, 14_000, 64_000, 65_507, 65_536])
        .chain((0..=93_000).step_by(3_100))
        .chain([92_999, 171_000, 180_000, 3_000_000])
        .collect();
    let expected = sizes.clone();
    let reader = thread::spawn(move || {
        for (seed, len) in expected.into_iter().enumerate() {
            let message = server.recv().wait_for(TIMEOUT).expect("it was sent").unwrap();
            assert!(message.bytes == bytes(len, seed as u64), "{len} bytes changed on the way");
        }
        assert_eq!(server.try_recv(), Ok(None));
    });
    for (seed, len) in sizes.into_iter().enumerate() {
        let receipt = client.send(to, bytes(len, seed as u64)).wait().unwrap();
        assert_eq!(receipt.bytes, len);
        assert!(receipt.packets >= receipt.source_symbols);
        let arrived: usize = receipt.arrivals.iter().map(|on| usize::from(on.count)).sum();
        assert!(arrived <= receipt.packets, "{arrived} arrived of {}", receipt.packets);
        // At the scale of a symbol: the last of a block may have come over several paths.
        assert!(arrived >= receipt.source_symbols, "{receipt:?}");
        assert!(receipt.redundancy() >= 1.0);
        assert!(receipt.waited < TIMEOUT && receipt.completed_in < TIMEOUT);
        assert_eq!(receipt.blocks > 1, len > 180_000 || receipt.source_symbols > 128);
    }
    reader.join().unwrap();
    let counters = client.counters();
    assert_eq!(counters.sender.rejected + counters.sender.unknown, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_messages_at_once_arrive_once_each() {
    const MESSAGES: u64 = 500;
    let client = endpoint();
    let server = endpoint();
    let to = server.local_addr();
    let sends: Vec<_> = (0..MESSAGES)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.send(to, bytes(8 + n as usize * 37, n)).await })
        })
        .collect();
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for _ in 0..MESSAGES {
        seen.push(server.recv().await.unwrap().bytes.to_vec());
    }
    for send in sends {
        send.await.unwrap().unwrap();
    }
    seen.sort();
    let mut sent: Vec<Vec<u8>> = (0..MESSAGES).map(|n| bytes(8 + n as usize * 37, n)).collect();
    sent.sort();
    assert!(seen == sent);
    assert_eq!(server.try_recv(), Ok(None));
    assert_eq!(server.counters().receiver.messages_delivered, MESSAGES);
}

#[test]
fn threads_share_an_endpoint_in_both_directions() {
    let one = endpoint();
    let other = endpoint();
    thread::scope(|scope| {
        for seed in 0..4 {
            for (from, to) in [(one.clone(), other.clone()), (other.clone(), one.clone())] {
                scope.spawn(move || {
                    for n in 0..25 {
                        from.send(to.local_addr(), bytes(3_000, seed * 100 + n)).wait().unwrap();
                    }
                });
            }
            for endpoint in [one.clone(), other.clone()] {
                scope.spawn(move || {
                    for _ in 0..25 {
                        let message =
                            endpoint.recv().wait_for(TIMEOUT).expect("a message").unwrap();
                        assert_eq!(message.bytes.len(), 3_000);
                    }
                });
            }
        }
    });
    assert_eq!((one.try_recv(), other.try_recv()), (Ok(None), Ok(None)));
}

#[test]
fn a_trusted_network_needs_no_key() {
    let build = || {
        Endpoint::builder()
            .bind("127.0.0.1:0".parse().unwrap())
            .paths(PathMap::ecmp(1))
            .security(Security::trusted_network())
            .build()
            .unwrap()
    };
    let client = build();
    let server = build();
    client.send(server.local_addr(), "hello").wait().unwrap();
    assert_eq!(server.recv().wait().unwrap().bytes, "hello");
}

#[test]
fn an_endpoint_may_send_to_itself() {
    let endpoint = endpoint();
    let sending = endpoint.send(endpoint.local_addr(), bytes(50_000, 3)).begin().unwrap();
    assert_eq!(endpoint.recv().wait_for(TIMEOUT).unwrap().unwrap().bytes, bytes(50_000, 3));
    sending.wait().unwrap();
}

#[test]
fn busy_polling_threads_receive_messages_and_the_shutdown() {
    let build = || {
        builder()
            .config(Config { busy_poll: Duration::from_millis(2), ..Config::default() })
            .build()
            .unwrap()
    };
    let one = build();
    let other = build();
    let echo = thread::spawn({
        let other = other.clone();
        move || {
            while let Ok(message) = other.recv().wait() {
                other.send(message.peer, message.bytes).wait().unwrap();
            }
        }
    });
    for seed in 0..20 {
        let message = bytes(5_000, seed);
        one.send(other.local_addr(), message.clone()).wait().unwrap();
        assert_eq!(one.recv().wait().unwrap().bytes, message);
    }
    assert_eq!(one.recv().wait_for(Duration::from_millis(5)), None);
    other.blocking_shutdown(TIMEOUT);
    echo.join().unwrap();
}

#[test]
fn a_caller_that_only_calls_try_recv_receives() {
    let from = endpoint();
    let to = endpoint();
    let address = to.local_addr();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| (0..20).all(|_| from.send(address, "hello").wait().is_ok()));
        let mut came = 0;
        while came < 20 {
            came += to.recv().wait_for(Duration::ZERO).map_or(0, |_| 1);
        }
        // STOPs leave even while no caller waits.
        assert!(sender.join().unwrap());
    });
}
