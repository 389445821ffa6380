//! Hosts with several addresses: packets to one of them are answered from that one.

use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{Contents, SendOptions, Transceiver, Transmit};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
/// Another address of the server.
const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 2));

fn endpoint(seed: u8, paths: u16) -> Transceiver {
    let config = Config::default();
    let security = Security::pre_shared([7; 32]);
    let map = Box::new(Egresses(paths));
    Transceiver::new(config, ListenPorts::one(7000), &security, Seed::new([seed; 32]), map).unwrap()
}

fn send(from: &mut Transceiver, to: IpAddr, len: usize) {
    let options = SendOptions::default();
    from.send(NOW, SocketAddr::new(to, 7000), vec![7; len].into(), &options).unwrap();
}

/// Delivers packets of `from` to `to`, with source address `source` and destination address
/// `local`.
fn pass(
    from: &mut Transceiver,
    source: IpAddr,
    to: &mut Transceiver,
    local: Option<IpAddr>,
) -> Vec<Transmit> {
    let mut batches = Vec::new();
    let mut buffer = Vec::new();
    while let Some(batch) = from.poll_transmit(NOW, &mut buffer) {
        let remote = SocketAddr::new(source, 7000 + batch.via.egress);
        for packet in buffer.chunks_mut(batch.segment_size) {
            to.handle_datagram(NOW, Via { egress: 0, local, remote }, packet);
            to.check_invariants();
        }
        buffer.clear();
        batches.push(batch);
    }
    batches
}

/// The source addresses of a server's answers and symbols, for a client that knows it as [`SERVER`] and
/// sends its packets to `arrive_at`.
fn sources(
    client: &mut Transceiver,
    server: &mut Transceiver,
    arrive_at: IpAddr,
) -> [BTreeSet<Option<IpAddr>>; 2] {
    let mut sources = [BTreeSet::new(), BTreeSet::new()];
    for _ in 0..4 {
        pass(client, CLIENT, server, Some(arrive_at));
        for sent in pass(server, arrive_at, client, None) {
            let symbols = matches!(sent.contents, Contents::Symbols { .. });
            sources[usize::from(symbols)].insert(sent.via.local);
        }
    }
    sources
}

#[test]
fn the_peer_gets_everything_from_the_address_that_it_knows() {
    let mut client = endpoint(1, 2);
    let mut server = endpoint(2, 4);
    send(&mut client, SERVER, 1_000);
    let [answers, _] = sources(&mut client, &mut server, SERVER);
    assert_eq!(answers, [Some(SERVER)].into());
    assert!(server.recv().is_some());
    send(&mut server, CLIENT, 20_000);
    let [_, symbols] = sources(&mut client, &mut server, SERVER);
    assert_eq!(symbols, [Some(SERVER)].into());
    assert_eq!(server.paths((CLIENT, 7000).into()).len(), 4, "the paths of its own");
    server.set_path_resolver(Arc::new(Egresses(2))).unwrap();
    send(&mut server, CLIENT, 20_000);
    let [_, symbols] = sources(&mut client, &mut server, SERVER);
    assert_eq!(symbols, [Some(SERVER)].into());
    assert_eq!(client.counters().sender.delivered, 1);
    assert_eq!(server.counters().sender.delivered, 2);
}

#[test]
fn a_peer_that_was_sent_to_before_is_sent_to_from_the_address_that_it_knows() {
    let mut client = endpoint(1, 1);
    let mut server = endpoint(2, 1);
    send(&mut server, CLIENT, 1_000);
    let mut lost = Vec::new();
    assert_eq!(server.poll_transmit(NOW, &mut lost).unwrap().via.local, None);
    send(&mut client, SERVER, 1_000);
    let [_, symbols] = sources(&mut client, &mut server, SERVER);
    assert_eq!(symbols, [Some(SERVER)].into());
}

#[test]
fn an_address_of_one_path_is_answered_from_and_takes_no_answers_to_messages() {
    let mut client = endpoint(1, 1);
    let mut server = endpoint(2, 1);
    send(&mut client, SERVER, 1_000);
    let [answers, _] = sources(&mut client, &mut server, OTHER);
    assert_eq!(answers, [Some(OTHER)].into());
    send(&mut server, CLIENT, 20_000);
    let [_, symbols] = sources(&mut client, &mut server, OTHER);
    assert_eq!(symbols, [None].into());
}

#[test]
fn an_initiator_leaves_its_source_address_to_the_system() {
    let mut client = endpoint(1, 2);
    let mut server = endpoint(2, 2);
    send(&mut client, SERVER, 20_000);
    let mut symbols = 0;
    for _ in 0..4 {
        for sent in pass(&mut client, CLIENT, &mut server, Some(SERVER)) {
            assert_eq!(sent.via.local, None);
            symbols += usize::from(matches!(sent.contents, Contents::Symbols { .. }));
        }
        // Answers arrive there, whichever address was picked.
        pass(&mut server, SERVER, &mut client, Some(CLIENT));
    }
    assert!(symbols > 0);
    assert_eq!(client.counters().sender.delivered, 1);
}
