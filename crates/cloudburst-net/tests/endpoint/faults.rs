//! Over links that lose, reorder, duplicate and damage packets, each message arrives exactly once.

use crate::common::{behind_relay, builder, bytes};
use cloudburst_net::{Builder, BurstPolicy, Config, Endpoint, Fabric};
use cloudburst_netem::{LinkConfig, Loss, Trim};
use std::collections::BTreeMap;
use std::time::Duration;

const MESSAGES: u64 = 120;

/// Slow enough for the relay, which reads with default buffers.
fn slow(trim_dscp: Option<u8>) -> Builder {
    let fabric = Fabric { trim_dscp, ..Fabric::default() };
    builder().config(Config { capacity: 200_000_000.into(), fabric, ..Config::default() })
}

/// Sends messages of many sizes through links like `link`, some at a time, both ways.
async fn exactly_once_through(link: LinkConfig) -> (Endpoint, Endpoint) {
    let client = slow(None).build().expect("an endpoint");
    let (server, relay) = behind_relay(slow(None), vec![(link.clone(), link)], 11);
    let to = relay.addr();

    let sends: Vec<_> = (0..MESSAGES)
        .map(|n| {
            let client = client.clone();
            let len = [0, 1, 700, 1_500, 5_000, 20_000, 93_000][n as usize % 7];
            tokio::spawn(async move { client.send(to, numbered(n, len)).await })
        })
        .collect();
    let mut came: BTreeMap<u64, usize> = BTreeMap::new();
    for _ in 0..MESSAGES {
        let next = tokio::time::timeout(crate::common::TIMEOUT, server.recv());
        let message = next.await.expect("in time").expect("the server is open");
        let (number, _) = message.bytes.split_at(8);
        let number = u64::from_be_bytes(number.try_into().expect("eight bytes"));
        assert!(message.bytes == numbered(number, message.bytes.len() - 8));
        *came.entry(number).or_default() += 1;
    }
    for send in sends {
        send.await.expect("no panic").expect("delivered");
    }
    assert!((0..MESSAGES).all(|n| came.get(&n) == Some(&1)), "{came:?}");
    assert_eq!(server.try_recv(), Ok(None));
    assert_eq!(client.counters().sender.delivered, MESSAGES);
    assert_eq!(relay.paths(), 4, "every socket of the pool sends");
    (client, server)
}

fn numbered(n: u64, len: usize) -> Vec<u8> {
    [n.to_be_bytes().to_vec(), bytes(len, n)].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_once_despite_loss() {
    let link = LinkConfig { loss: Loss::Independent(0.2), ..LinkConfig::default() };
    let (client, _server) = exactly_once_through(link).await;
    let sender = client.counters().sender;
    assert!(sender.symbols_sent > sender.delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_once_despite_bursty_loss() {
    let loss = Loss::Bursty { to_bad: 0.02, to_good: 0.1, loss_good: 0.0, loss_bad: 0.9 };
    exactly_once_through(LinkConfig { loss, ..LinkConfig::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_once_despite_reordering() {
    let link = LinkConfig {
        delay: Duration::from_millis(1),
        reorder: 0.3,
        reorder_by: Duration::from_millis(5),
        ..LinkConfig::default()
    };
    exactly_once_through(link).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_once_despite_duplication() {
    let link = LinkConfig { duplicate: 0.5, ..LinkConfig::default() };
    let (_client, server) = exactly_once_through(link).await;
    assert!(server.counters().receiver.replayed > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_once_despite_damage() {
    let link = LinkConfig { corrupt: 0.2, truncate: 0.05, extend: 0.05, ..LinkConfig::default() };
    let (_client, server) = exactly_once_through(link).await;
    let receiver = server.counters().receiver;
    assert!(receiver.forged + receiver.malformed + receiver.unknown_session > 0);
    assert_eq!(receiver.corrupt_blocks, 0, "damaged packets do not reach the decoder");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_once_despite_all_faults_at_once() {
    let link = LinkConfig {
        loss: Loss::Independent(0.1),
        delay: Duration::from_micros(300),
        jitter: Duration::from_millis(1),
        reorder: 0.1,
        reorder_by: Duration::from_millis(3),
        duplicate: 0.1,
        corrupt: 0.1,
        ..LinkConfig::default()
    };
    exactly_once_through(link).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_once_despite_trimming() {
    // The relay sends each trimmed packet as a datagram of its own, so all lengths are right.
    let trim = Some(Trim { header: 96, queue: 1_000 });
    let link = LinkConfig { rate: Some(20_000_000), queue: 2, trim, ..LinkConfig::default() };
    let trimmable = || slow(Some(44));
    let client = trimmable().build().expect("an endpoint");
    let (server, relay) = behind_relay(trimmable(), vec![(link, LinkConfig::default())], 11);
    let policy = BurstPolicy::Pulled { window: Some(32) };
    for n in 0..5 {
        client.send(relay.addr(), numbered(n, 90_000)).policy(policy).await.expect("delivered");
        assert!(server.recv().await.expect("the server is open").bytes == numbered(n, 90_000));
    }
    let receiver = server.counters().receiver;
    assert!(receiver.symbols_trimmed > 0, "{receiver:?}");
    assert_eq!((receiver.forged, receiver.malformed), (0, 0), "{receiver:?}");
}
