//! Tests of what one event costs a sender with very many peers and messages, counted in peers and
//! messages that are visited, not in time.

use crate::config::{Config, ListenPorts, Security, Tuning};
use crate::error::StartError;
use crate::id::{Incarnation, MessageId, SessionId};
use crate::path::{Egresses, Via};
use crate::proto::steps::steps_of;
use crate::proto::{Contents, SendOptions, Transceiver};
use crate::rng::Seed;
use crate::time::Instant;
use crate::wire::Capabilities;
use crate::wire::handshake::{Accept, AcceptFields, Hello, HelloKey, Open, Retry, Token};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;

const KEY: [u8; 32] = [7; 32];
const PEERS: u32 = 10_000;
const MESSAGES_PER_PEER: u64 = 10;
/// A peer and its messages, and a few more.
const FEW: u64 = 2 * MESSAGES_PER_PEER + 17;

/// A sender, and the handshakes that it has begun.
struct Crowd {
    sender: Transceiver,
    now: Instant,
    /// The last packet of each handshake.
    handshakes: BTreeMap<SocketAddr, Vec<u8>>,
    keys: [HelloKey; 1],
}

fn peer(number: u32) -> SocketAddr {
    let [_, a, b, c] = number.to_be_bytes();
    SocketAddr::from(([10, a, b, c], 7000))
}

impl Crowd {
    fn new() -> Self {
        let config = Config {
            capacity: 1_000_000_000_000.into(),
            deadline: Duration::from_secs(1_000),
            tuning: Tuning {
                max_peers: Some(PEERS as usize),
                send_messages: Some(1_000_000),
                ..Tuning::default()
            },
            ..Config::default()
        };
        let security = Security::pre_shared(KEY);
        let seed = Seed::new([1; 32]);
        let now = Instant::from_nanos(1_000_000_000);
        let resolver = Box::new(Egresses(1));
        let sender =
            Transceiver::new(config, ListenPorts::one(7000), &security, seed, resolver).unwrap();
        Self { sender, now, handshakes: BTreeMap::new(), keys: [HelloKey::new(&KEY)] }
    }

    /// With ten messages for each of ten thousand peers.
    fn busy() -> Self {
        let mut crowd = Self::new();
        for _ in 0..MESSAGES_PER_PEER {
            (0..PEERS).for_each(|number| crowd.send(number).unwrap());
        }
        crowd.transmit();
        assert_eq!(crowd.handshakes.len(), PEERS as usize);
        crowd
    }

    fn send(&mut self, number: u32) -> Result<(), StartError> {
        let options = SendOptions::default().wait(false);
        let sent = self.sender.send(self.now, peer(number), vec![1; 100].into(), &options);
        sent.map(drop)
    }

    fn transmit(&mut self) {
        let mut buffer = Vec::new();
        while let Some(transmit) = self.sender.poll_transmit(self.now, &mut buffer) {
            if let Contents::Handshake(address) = transmit.contents {
                self.handshakes.insert(address, core::mem::take(&mut buffer));
            }
            buffer.clear();
        }
    }

    /// The answer of `number` to its HELLO.
    fn retry(&self, number: u32) -> Vec<u8> {
        let (_, hello) =
            Hello::parse(&self.keys, &self.handshakes[&peer(number)]).unwrap().unwrap();
        let observed = peer(number);
        let Hello { path, nonce, .. } = hello;
        let token = Token([1; 16]);
        let retry = Retry { path, token_refused: false, nonce, return_path: 0, token, observed };
        let mut packet = Vec::new();
        retry.write(&self.keys[0], &mut packet);
        packet
    }

    /// The answer of `number` to its OPEN.
    fn accept(&self, number: u32) -> Vec<u8> {
        let (_, open) = Open::parse(&self.keys, &self.handshakes[&peer(number)]).unwrap().unwrap();
        let (_, response) = open.read(&KEY, [8; 32]).unwrap();
        let (message, _) = response.accept(&AcceptFields {
            incarnation: Incarnation([9; 16]),
            session: SessionId(number + 1),
            capabilities: Capabilities::default(),
            port: 0,
            more_ports: 0,
        });
        let mut packet = Vec::new();
        Accept { path: open.path, nonce: open.nonce, message }.write(&self.keys[0], &mut packet);
        packet
    }

    fn handle(&mut self, number: u32, packet: &mut [u8]) {
        let via = Via { egress: 0, local: None, remote: peer(number) };
        self.sender.handle_datagram(self.now, via, packet);
    }

    /// The number of peers and messages that `event` visits.
    fn cost(&mut self, event: impl FnOnce(&mut Self)) -> u64 {
        let cost = steps_of(|| event(self));
        self.sender.check_invariants();
        cost
    }
}

#[test]
fn a_handshake_visits_only_the_messages_of_its_peer() {
    let mut crowd = Crowd::busy();
    for number in [0, 5_000, 9_999] {
        let mut retry = crowd.retry(number);
        let cost = crowd.cost(|crowd| crowd.handle(number, &mut retry));
        assert!(cost <= FEW, "{cost}");
        crowd.transmit();
        let mut accept = crowd.accept(number);
        let cost = crowd.cost(|crowd| crowd.handle(number, &mut accept));
        println!("{cost} peers and messages");
        assert_eq!(crowd.sender.paths(peer(number)).len(), 1);
        assert!(cost <= FEW, "{cost}");
    }
    assert_eq!(crowd.sender.counters().sender.sessions_opened, 3);
}

#[test]
fn an_answer_to_no_handshake_visits_nobody() {
    let mut crowd = Crowd::busy();
    let [mut first, mut again] = [(); 2].map(|()| crowd.retry(0));
    crowd.handle(0, &mut first);
    let cost = crowd.cost(|crowd| crowd.handle(0, &mut again));
    assert_eq!(crowd.sender.counters().sender.late_answers, 1);
    assert_eq!(cost, 0);
}

#[test]
fn replacing_an_idle_peer_does_not_visit_all_peers() {
    let mut crowd = Crowd::new();
    for number in 0..PEERS {
        crowd.send(number).unwrap();
    }
    let cost = crowd.cost(|crowd| assert!(crowd.send(PEERS).is_err(), "all have messages"));
    println!("{cost} peers and messages for a refusal");
    assert!(cost <= FEW, "{cost}");
    for id in 0..u64::from(PEERS) {
        crowd.sender.cancel(MessageId(id));
    }
    for number in PEERS..PEERS + 100 {
        let cost = crowd.cost(|crowd| crowd.send(number).unwrap());
        assert!(cost <= FEW, "{cost}");
    }
    assert_eq!(crowd.sender.peers().len(), PEERS as usize);
}

#[test]
fn a_start_from_a_long_line_visits_few_of_those_that_wait() {
    const WAITING: u32 = 100_000;
    let mut crowd = Crowd::new();
    (0..PEERS).for_each(|number| crowd.send(number).unwrap());
    for number in 0..WAITING {
        // To peers for which there is no place.
        let to = peer(PEERS + number);
        let long = vec![1; 1_000 + number as usize % 3];
        let options = SendOptions::default().priority(number as u8 % 8);
        crowd.sender.send(crowd.now, to, long.into(), &options).unwrap();
    }
    crowd.transmit();
    for id in 0..4 {
        let cost = crowd.cost(|crowd| {
            crowd.sender.cancel(MessageId(id));
            crowd.transmit();
        });
        assert!(cost <= FEW, "{cost} visited");
        let started = peer(PEERS + id as u32);
        assert!(crowd.handshakes.contains_key(&started), "one has started");
    }
}

#[test]
fn a_timer_visits_only_its_peer() {
    let mut crowd = Crowd::busy();
    let cost = crowd.cost(|crowd| {
        crowd.now += Duration::from_millis(300);
        crowd.sender.handle_timeout(crowd.now);
    });
    println!("{cost} peers and messages for {PEERS} timers");
    assert!(cost <= u64::from(PEERS) * FEW, "{cost}");
}
