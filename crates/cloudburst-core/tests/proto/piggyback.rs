//! An answer leaves with symbols for the same peer.

use cloudburst_core::config::{Config, EcnMode, Fabric, ListenPorts, Security, Tuning};
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{SendOptions, Transceiver};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Kind;
use std::net::SocketAddr;

const NOW: Instant = Instant::from_nanos(1_000_000_000);

struct Host {
    endpoint: Transceiver,
    address: SocketAddr,
    egresses: u16,
}

impl Host {
    fn new(host: u8) -> Self {
        Self::with(host, 1, Config::default(), ListenPorts::one(7000))
    }

    fn with(host: u8, egresses: u16, config: Config, ports: ListenPorts) -> Self {
        let security = Security::pre_shared([7; 32]);
        let map = Box::new(Egresses(egresses));
        let endpoint =
            Transceiver::new(config, ports, &security, Seed::new([host; 32]), map).unwrap();
        Self { endpoint, address: SocketAddr::from(([10, 0, 0, host], 7000)), egresses }
    }

    fn send(&mut self, to: &Self, len: usize) {
        let options = SendOptions::default();
        self.endpoint.send(NOW, to.address, vec![7; len].into(), &options).unwrap();
    }

    /// The next batch: the kinds in each of its datagrams, in order, and its destination. The one
    /// of `hosts` with that address receives it.
    fn pass(&mut self, hosts: &mut [&mut Self]) -> Option<(Vec<Kind>, SocketAddr)> {
        let mut buffer = Vec::new();
        let batch = self.endpoint.poll_transmit(NOW, &mut buffer)?;
        let mut kinds = Vec::new();
        for packet in buffer.chunks_mut(batch.segment_size) {
            kinds.push(Kind::of(packet).unwrap());
            let to = batch.via.remote.ip();
            let host = hosts.iter_mut().find(|host| host.address.ip() == to).unwrap();
            let egress = batch.via.egress % host.egresses;
            let remote = SocketAddr::new(self.address.ip(), 7000 + batch.via.egress);
            host.endpoint.handle_datagram(NOW, Via { egress, local: None, remote }, packet);
            host.endpoint.check_invariants();
        }
        self.endpoint.check_invariants();
        Some((kinds, batch.via.remote))
    }

    fn pass_all(&mut self, to: &mut Self) -> Vec<Vec<Kind>> {
        core::iter::from_fn(|| self.pass(&mut [to])).map(|(kinds, _)| kinds).collect()
    }
}

/// Completes the handshake that `a` has begun with `b`.
fn meet(a: &mut Host, b: &mut Host) {
    for _ in 0..2 {
        a.pass_all(b);
        b.pass_all(a);
    }
}

/// A message of `len` bytes goes from `a` to `b`, which has not sent its STOP yet.
fn send_without_stop(a: &mut Host, b: &mut Host, len: usize) {
    a.send(b, len);
    meet(a, b);
    a.pass_all(b);
    assert!(b.endpoint.recv().is_some());
    assert_eq!(a.endpoint.counters().sender.delivered, 0);
}

#[test]
fn a_stop_is_the_short_last_datagram_of_a_batch_and_is_sent_once() {
    let mut a = Host::new(1);
    let mut b = Host::new(2);
    send_without_stop(&mut a, &mut b, 1_000);
    b.send(&a, 5_000);
    let (kinds, _) = b.pass(&mut [&mut a]).unwrap();
    let (stop, symbols) = kinds.split_last().unwrap();
    assert_eq!(*stop, Kind::Answer);
    assert!(!symbols.is_empty() && symbols.iter().all(|kind| *kind == Kind::Symbol));
    assert_eq!(a.endpoint.counters().sender.delivered, 1);
    assert_eq!(b.endpoint.counters().receiver.stops_sent, 1);
    assert!(b.pass_all(&mut a).concat().iter().all(|kind| *kind == Kind::Symbol));
}

#[test]
fn an_answer_that_cannot_leave_with_symbols_lets_one_batch_pass_and_no_more() {
    // Symbols of a message of one byte are shorter than a STOP that reports four paths.
    let config = Config { tuning: Tuning { train: 1, ..Tuning::default() }, ..Config::default() };
    let (mut a, mut b) =
        [1, 2].map(|host| Host::with(host, 4, config.clone(), ListenPorts::one(7000))).into();
    send_without_stop(&mut a, &mut b, 20_000);
    (0..3).for_each(|_| b.send(&a, 1));
    let sent: Vec<Kind> = b.pass_all(&mut a).concat();
    let symbol = Kind::Symbol;
    let answer = Kind::Answer;
    assert_eq!(sent, [symbol, answer, answer, symbol, symbol]);
}

#[test]
fn an_answer_that_left_with_symbols_counts_against_the_rate_of_answers() {
    // Less than two answers may leave at once.
    let slow = Config { capacity: 1_500_000.into(), ..Config::default() };
    let mut a = Host::new(1);
    let mut b = Host::with(2, 1, slow, ListenPorts::one(7000));
    a.send(&b, 1_000);
    // The answers to the handshake have used up the rate. Later there is room for more.
    meet(&mut a, &mut b);
    a.pass_all(&mut b);
    assert!(b.endpoint.recv().is_some());
    let later = NOW + core::time::Duration::from_secs(1);
    b.send(&a, 1_000);
    let mut buffer = Vec::new();
    let joined = b.endpoint.poll_transmit(later, &mut buffer).unwrap();
    assert!(joined.len > joined.segment_size, "the STOP left with a symbol");
    a.send(&b, 1_000);
    a.pass_all(&mut b);
    assert!(b.endpoint.recv().is_some());
    buffer.clear();
    assert_eq!(b.endpoint.poll_transmit(later, &mut buffer), None, "a STOP waits for the rate");
    b.endpoint.handle_timeout(later);
    assert!(b.endpoint.poll_timeout().unwrap() > later);
}

#[test]
fn no_answer_leaves_with_symbols_for_another_peer_or_with_a_handshake() {
    let mut a = Host::new(1);
    let mut b = Host::new(2);
    let mut c = Host::new(3);
    send_without_stop(&mut a, &mut b, 1_000);
    b.send(&c, 1_000);
    let (kinds, to) = b.pass(&mut [&mut a, &mut c]).unwrap();
    assert_eq!((kinds, to), (vec![Kind::Hello], c.address));
    while let Some((kinds, _)) = c.pass(&mut [&mut b]) {
        assert_eq!(kinds, [Kind::Retry]);
    }
    let mut sent = Vec::new();
    while !sent.contains(&Kind::Symbol) {
        while let Some((kinds, to)) = b.pass(&mut [&mut a, &mut c]) {
            let to_a = to == a.address;
            assert!(kinds.iter().all(|kind| (*kind == Kind::Answer) == to_a), "{kinds:?}");
            assert!(!kinds.contains(&Kind::Open) || kinds.len() == 1, "{kinds:?}");
            sent.extend(kinds);
        }
        assert!(c.pass_all(&mut b).len() <= 1);
    }
    assert!(sent.contains(&Kind::Answer) && sent.contains(&Kind::Symbol));
}

#[test]
fn answers_do_not_leave_with_symbols_that_switches_may_drop_on_purpose() {
    let config = Config {
        fabric: Fabric { ecn: EcnMode::Aeolus, ..Fabric::default() },
        ..Config::default()
    };
    let (mut a, mut b) =
        [1, 2].map(|host| Host::with(host, 1, config.clone(), ListenPorts::one(7000))).into();
    send_without_stop(&mut a, &mut b, 1_000);
    // Symbols of a message without an answer yet are not spared, and STOPs are.
    b.send(&a, 5_000);
    let batches = b.pass_all(&mut a);
    assert!(batches.contains(&vec![Kind::Answer]), "{batches:?}");
    assert!(batches.iter().filter(|batch| batch.contains(&Kind::Answer)).count() == 1);
}

#[test]
fn no_answer_leaves_with_symbols_to_a_shared_port() {
    let ports = ListenPorts { is_shared: true, ..ListenPorts::one(9000) };
    let mut a = Host::new(1);
    let mut b = Host::with(2, 1, Config::default(), ports);
    // A learns the port that only B has, to which answers with symbols go too.
    a.send(&b, 1_000);
    meet(&mut a, &mut b);
    a.pass_all(&mut b);
    b.send(&a, 1_000);
    b.pass_all(&mut a);
    assert!(a.endpoint.recv().is_some());
    a.send(&b, 1_000);
    let (kinds, to) = a.pass(&mut [&mut b]).unwrap();
    assert_eq!((kinds.last(), to.port()), (Some(&Kind::Answer), 9000));
}
