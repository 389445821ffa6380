//! Dropping a send stops its burst at once.

use crate::common::{behind_relay, builder, bytes, eventually};
use cloudburst_net::{Config, Endpoint, SendError, Tuning};
use cloudburst_netem::{LinkConfig, Relay};
use std::time::Duration;

/// A client whose packets to the server are lost from now on, and the server's address.
fn cut_off() -> (Endpoint, Endpoint, Relay) {
    let config = Config {
        tuning: Tuning { send_messages: Some(1), ..Tuning::default() },
        ..Config::default()
    };
    let client = builder().config(config).build().expect("a client");
    let links = vec![(LinkConfig::default(), LinkConfig::default())];
    let (server, relay) = behind_relay(builder(), links, 7);
    client.send(relay.addr(), bytes(90_000, 1)).wait().expect("a way through");
    eventually("all sockets have sent", || relay.paths() == 4);
    for path in 0..relay.paths() {
        relay.set_down(path, true).expect("it exists");
    }
    (client, server, relay)
}

/// Asserts that nothing is under way. That nothing more is then sent is tested in virtual time, by
/// `cancelling_stops_a_burst_that_nobody_answers` of the core.
async fn assert_idle(client: &Endpoint) {
    assert!(client.shutdown(Duration::ZERO).await, "nothing is under way");
}

#[tokio::test]
async fn dropping_a_sending_stops_it() {
    let (client, _server, relay) = cut_off();
    let before = client.counters().sender.symbols_sent;
    let sending = client.send(relay.addr(), bytes(1_000_000, 2)).begin().unwrap();
    eventually("it bursts", || client.counters().sender.symbols_sent > before);
    assert!(client.send(relay.addr(), "another").begin().is_err(), "there is capacity for one");
    drop(sending);
    assert_eq!(client.counters().sender.unknown, 1);
    let next = client.send(relay.addr(), "another").begin().expect("the capacity is free again");
    drop(next);
    assert_idle(&client).await;
}

#[tokio::test]
async fn dropping_a_send_future_stops_it() {
    let (client, _server, relay) = cut_off();
    let before = client.counters().sender.symbols_sent;
    let send = client.send(relay.addr(), bytes(1_000_000, 2));
    let timed_out = tokio::time::timeout(Duration::from_millis(50), send).await;
    assert!(timed_out.is_err());
    assert!(client.counters().sender.symbols_sent > before);
    assert_eq!(client.counters().sender.unknown, 1);
    assert_idle(&client).await;
}

#[tokio::test]
async fn dropping_a_send_that_waits_for_capacity_sends_nothing() {
    let (client, _server, relay) = cut_off();
    let sending = client.send(relay.addr(), bytes(1_000, 2)).begin().unwrap();
    let waiting = client.send(relay.addr(), "waits");
    assert!(tokio::time::timeout(Duration::from_millis(20), waiting).await.is_err());
    assert_eq!(client.counters().sender.unknown, 0);
    drop(sending);
    assert_idle(&client).await;
    assert!(matches!(client.send(relay.addr(), "late").begin(), Err(SendError::Closing)));
}

#[tokio::test]
async fn dropping_a_call_stops_its_request() {
    let (client, _server, relay) = cut_off();
    let before = client.counters().sender.symbols_sent;
    let call = client.call(relay.addr(), bytes(1_000_000, 2));
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    assert!(client.counters().sender.symbols_sent > before);
    assert_eq!(client.counters().sender.unknown, 1);
    let next = client.send(relay.addr(), "another").begin().expect("the capacity is free again");
    drop(next);
    assert_idle(&client).await;
}
