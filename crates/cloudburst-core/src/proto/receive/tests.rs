//! Tests of what the receiver's work depends on, counted in entries that it visits.

use super::Receiver;
use crate::code::Code;
use crate::config::{Parameters, Security};
use crate::id::{Digest, Incarnation, MessageId, PathId, SessionId};
use crate::path::{Egresses, Via};
use crate::proto::session::Identity;
use crate::proto::steps::steps_of;
use crate::rng::{Ratchet, Seed};
use crate::time::Instant;
use crate::wire::handshake::{OpenFields, shake_hands};
use crate::wire::keys::DigestKey;
use crate::wire::packet::Prefix;
use crate::wire::seal::Sealer;
use crate::wire::{Capabilities, Kind, Role, SymbolHeader};
use core::time::Duration;
use std::sync::Arc;

const KEY: [u8; 32] = [7; 32];
const START: Instant = Instant::from_nanos(1_000_000_000);
/// More steps than a lookup in a tree of that many entries needs.
const LOGARITHMIC: u64 = 40;

/// A peer, with its keys for symbols.
struct Peer {
    via: Via,
    sealer: Sealer,
    digest: DigestKey,
}

struct Crowd {
    receiver: Receiver,
}

impl Crowd {
    fn new(max_peers: usize) -> Self {
        // Nothing waits for the link.
        let mut config = Parameters { capacity: 1_000_000_000_000, ..Parameters::default() };
        config.limits.max_peers = max_peers;
        let security = Security::pre_shared(KEY);
        let identity = Identity::new(&security, &Seed::new([3; 32]));
        Self {
            receiver: Receiver::new(config, identity, Ratchet::new([4; 32]), Arc::new(Egresses(1))),
        }
    }

    fn meet(&mut self, now: Instant, who: u32) -> Peer {
        let mut name = [1; 16];
        name[..4].copy_from_slice(&who.to_be_bytes());
        let fields = OpenFields {
            incarnation: Incarnation(name),
            addressed: ([10, 0, 0, 1], 7000).into(),
            session: SessionId(2),
            capabilities: Capabilities::default(),
            port: 7000,
            more_ports: 0,
            translated: false,
        };
        let (_, keys) = shake_hands(&KEY, 1, &fields, |packet| {
            if Kind::of(&packet) == Ok(Kind::Hello) {
                self.receiver.handle_hello(now, via(who), &packet);
            } else {
                self.receiver.handle_open(now, via(who), &packet);
            }
            let mut answer = Vec::new();
            self.receiver.poll_transmit(now, &mut answer).unwrap();
            answer
        });
        let flow = keys.forward;
        Peer { via: via(who), sealer: Sealer::new(flow.symbols), digest: flow.digest }
    }

    /// Takes the first of two symbols of message `id`, or the only one.
    fn take(&mut self, now: Instant, peer: &mut Peer, id: u64, age: u32, length: usize) {
        let message = MessageId(id);
        let header = SymbolHeader {
            message,
            path_number: 0,
            length: length as u32,
            age,
            block: 0,
            symbol: 0,
            symbol_size: 17,
            code: Code::Rlf256.to_wire(),
            unscheduled: 0,
        };
        let prefix = Prefix {
            kind: Kind::Symbol,
            ack_request: false,
            partial: false,
            again: false,
            pulled: false,
            probe: false,
            is_final: false,
            role: Role::Plain,
            class: 1,
            path: PathId(0),
            session: peer.sealer.session(),
            number: peer.sealer.next_number(),
        };
        let mut packet = Vec::new();
        header.write(&prefix, None, &[], &mut packet);
        let payload_at = packet.len();
        packet.push(0);
        let Digest(digest) = peer.digest.block(message, 0, &[0]);
        packet.extend(if length == 1 { digest } else { [0; 16] });
        peer.sealer.seal(&mut packet, 0, payload_at);
        let _ = self.receiver.handle_symbol(now, peer.via, false, &mut packet);
        while self.receiver.poll_transmit(now, &mut packet).is_some() {}
        self.receiver.events.clear();
    }
}

fn via(who: u32) -> Via {
    let [_, a, b, c] = who.to_be_bytes();
    Via { egress: 0, local: None, remote: ([10, a, b, c], 7000).into() }
}

#[test]
fn a_step_of_the_low_watermark_costs_what_it_frees() {
    let mut crowd = Crowd::new(Parameters::default().limits.max_peers);
    let mut peer = crowd.meet(START, 1);
    const MESSAGES: u64 = 60_000;
    for id in 0..MESSAGES {
        let length = 1 + (id % 2) as usize;
        crowd.take(START, &mut peer, id, id as u32, length);
    }
    for step in 1..=10 {
        let age = (MESSAGES - step) as u32;
        let steps = steps_of(|| crowd.take(START, &mut peer, MESSAGES, age, 1));
        assert!(steps <= LOGARITHMIC, "{steps} for one message of {MESSAGES}");
    }
    let steps = steps_of(|| crowd.take(START, &mut peer, MESSAGES, 0, 1));
    assert!(steps <= MESSAGES + LOGARITHMIC, "{steps}");
}

#[test]
fn a_refusal_costs_the_same_however_many_sessions_there_are() {
    const PEERS: u32 = 10_000;
    let mut crowd = Crowd::new(PEERS as usize / 2);
    for who in 0..PEERS {
        let mut peer = crowd.meet(START, who);
        crowd.take(START, &mut peer, 0, 0, 1);
    }
    assert_eq!(crowd.receiver.sessions.len(), PEERS as usize);
    let mut stranger = crowd.meet(START, PEERS);
    let steps = steps_of(|| crowd.take(START, &mut stranger, 0, 0, 1));
    assert_eq!(crowd.receiver.counters.peers_refused, 1);
    assert!(steps <= LOGARITHMIC, "{steps} for {PEERS} sessions");
}

#[test]
fn a_timeout_costs_what_is_due() {
    const PEERS: u32 = 10_000;
    let mut crowd = Crowd::new(PEERS as usize);
    for who in 0..PEERS {
        let mut peer = crowd.meet(START, who);
        for id in 0..10 {
            crowd.take(START, &mut peer, id, id as u32, 2);
        }
    }
    let mut late = crowd.meet(START, PEERS);
    for second in 1..10 {
        let now = START + Duration::from_secs(second);
        crowd.take(now, &mut late, second, 0, 2);
        let steps = steps_of(|| crowd.receiver.handle_timeout(now));
        assert!(steps <= LOGARITHMIC, "{steps} where nothing is due of 100,000 messages");
    }
    let steps = steps_of(|| crowd.receiver.handle_timeout(START + Duration::from_secs(16)));
    assert_eq!(crowd.receiver.counters.decoders_expired, 100_000);
    assert!(steps <= 2 * 100_000, "{steps}");
}
