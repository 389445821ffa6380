//! What one event costs a sender with very many peers and messages: counted in peers and messages
//! that are looked at, not in time.

use crate::config::{Config, Security};
use crate::error::SendError;
use crate::id::{Incarnation, MessageId, PathId};
use crate::path::{Egresses, Via};
use crate::proto::steps::steps_of;
use crate::proto::{Contents, Endpoint, SendOptions};
use crate::rng::Seed;
use crate::time::Instant;
use crate::wire::hello::{Hello, HelloAck, HelloKey};
use crate::wire::keys::PresharedKey;
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;

const PEERS: u32 = 10_000;
const MESSAGES_PER_PEER: u64 = 10;
/// A peer, its messages, and the steps down a tree of all of them.
const FEW: u64 = 2 * MESSAGES_PER_PEER + 17;

/// A sender, and what it has asked of whom.
struct Crowd {
    sender: Endpoint,
    now: Instant,
    hellos: BTreeMap<SocketAddr, Hello>,
    key: PresharedKey,
}

fn peer(number: u32) -> SocketAddr {
    let [_, a, b, c] = number.to_be_bytes();
    SocketAddr::from(([10, a, b, c], 7000))
}

impl Crowd {
    fn new() -> Self {
        let key = [7; 32];
        let config = Config {
            port: 7000,
            max_peers: PEERS as usize,
            send_messages: 1_000_000,
            capacity: 1_000_000_000_000,
            deadline: Duration::from_secs(1_000),
            ..Config::default()
        };
        let (security, seed) = (Security::pre_shared(key), Seed::new([1; 32]));
        let sender = Endpoint::new(config, &security, seed, Box::new(Egresses(1))).unwrap();
        let now = Instant::from_nanos(1_000_000_000);
        Self { sender, now, hellos: BTreeMap::new(), key: PresharedKey::new(key) }
    }

    /// With ten messages for each of ten thousand peers.
    fn busy() -> Self {
        let mut crowd = Self::new();
        for _ in 0..MESSAGES_PER_PEER {
            (0..PEERS).for_each(|number| crowd.send(number).unwrap());
        }
        crowd.transmit();
        assert_eq!(crowd.hellos.len(), PEERS as usize);
        crowd
    }

    fn send(&mut self, number: u32) -> Result<(), SendError> {
        let options = SendOptions::default();
        let sent = self.sender.send(self.now, peer(number), vec![1; 100].into(), &options);
        sent.map(drop)
    }

    fn transmit(&mut self) {
        let (mut buffer, key) = (Vec::new(), self.key.hello_key());
        while let Some(transmit) = self.sender.poll_transmit(self.now, &mut buffer) {
            if let Contents::Hello(address) = transmit.contents {
                self.hellos.insert(address, Hello::parse(&key, &buffer).unwrap().unwrap());
            }
            buffer.clear();
        }
    }

    /// The answer of `number` to its HELLO.
    fn ack(&self, number: u32) -> Vec<u8> {
        let hello = &self.hellos[&peer(number)];
        self.ack_to(hello.nonce, hello.initiator, &self.key.hello_key())
    }

    fn ack_to(&self, nonce: u64, initiator: Incarnation, key: &HelloKey) -> Vec<u8> {
        let ack = HelloAck {
            path: PathId(0),
            initiator,
            nonce,
            responder: Incarnation([9; 16]),
            session_nonce: nonce.to_be_bytes().repeat(2).try_into().unwrap(),
            current_alive: false,
            more_ports: 0,
            port: 0,
        };
        let mut packet = Vec::new();
        ack.write(key, &mut packet);
        packet
    }

    fn take(&mut self, number: u32, packet: &mut [u8]) {
        let via = Via { egress: 0, remote: peer(number) };
        self.sender.handle_datagram(self.now, via, packet);
    }

    /// What `event` looks at.
    fn cost(&mut self, event: impl FnOnce(&mut Self)) -> u64 {
        let cost = steps_of(|| event(self));
        self.sender.check_invariants();
        cost
    }
}

#[test]
fn a_handshake_that_ends_looks_at_the_messages_of_its_peer_alone() {
    let mut crowd = Crowd::busy();
    for number in [0, 5_000, 9_999] {
        let mut ack = crowd.ack(number);
        let cost = crowd.cost(|crowd| crowd.take(number, &mut ack));
        println!("{cost} peers and messages");
        assert_eq!(crowd.sender.paths(peer(number)).len(), 1);
        assert!(cost <= FEW, "{cost}");
    }
    assert_eq!(crowd.sender.counters().sender.sessions_opened, 3);
}

#[test]
fn an_answer_to_no_handshake_looks_at_nobody() {
    let mut crowd = Crowd::busy();
    let initiator = crowd.hellos[&peer(0)].initiator;
    let mut ack = crowd.ack_to(12_345, initiator, &crowd.key.hello_key());
    let cost = crowd.cost(|crowd| crowd.take(0, &mut ack));
    assert_eq!(crowd.sender.counters().sender.late_answers, 1);
    assert_eq!(cost, 0);
}

#[test]
fn a_peer_that_takes_the_place_of_an_idle_one_does_not_cost_a_look_at_all() {
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
fn a_timer_looks_at_its_peer_alone() {
    let mut crowd = Crowd::busy();
    let cost = crowd.cost(|crowd| {
        crowd.now += Duration::from_millis(300);
        crowd.sender.handle_timeout(crowd.now);
    });
    println!("{cost} peers and messages for {PEERS} timers");
    assert!(cost <= u64::from(PEERS) * FEW, "{cost}");
}
