//! Trains that carry symbols of several messages to one peer.

use crate::common::{KEY, message};
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::{Indeterminate, LocalError, Outcome};
use cloudburst_core::id::MessageId;
use cloudburst_core::proto::{Contents, SendOptions, Transmit};
use cloudburst_core::time::Instant;
use cloudburst_core::wire::symbol::{SYMBOL_OVERHEAD, SymbolView};
use cloudburst_netem::LinkConfig;
use cloudburst_world::drive::{self, Nobody};
use cloudburst_world::{Host, Network, Recipe};
use core::time::Duration;
use std::net::SocketAddr;

/// Four symbols of 1,254 bytes, as those of 10,016 bytes are eight and of 2,492 bytes two.
const SHORT: usize = 5_000;
/// Shorter than the RTO, after which symbols are sent again.
const DEADLINE: Duration = Duration::from_micros(200);

/// A host and its peers, to each of which it sends full trains.
struct Star {
    now: Instant,
    hosts: Vec<Host>,
}

/// A train: the messages of its packets.
struct Train {
    transmit: Transmit,
    packets: Vec<MessageId>,
}

impl Train {
    /// Its messages, in order.
    fn messages(&self) -> Vec<MessageId> {
        let mut messages = self.packets.clone();
        messages.dedup();
        messages
    }
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 7000))
}

impl Star {
    fn new(peers: usize) -> Self {
        let mut now = Instant::from_nanos(1_000_000_000);
        let config = Config { capacity: 100_000_000_000.into(), ..Config::default() };
        let host = |number| {
            let recipe = Recipe {
                config: config.clone(),
                listen: ListenPorts::one(7000),
                security: Security::pre_shared(KEY),
                secret: [number as u8 + 1; 32],
                egresses: 1,
                addr: address(number),
                ports: 1,
                shared: None,
                interface_mtu: 1_500,
            };
            Host::new(recipe)
        };
        let mut hosts: Vec<Host> = (0..=peers).map(host).collect();
        let delay = Duration::from_micros(50);
        let mut network = Network::new(1, LinkConfig { delay, ..LinkConfig::default() });
        // One at a time, so that trains grow and the host knows that nothing is lost.
        for (peer, seed) in (1..=peers).flat_map(|peer| (0..20).map(move |seed| (peer, seed))) {
            let endpoint = &mut hosts[0].endpoint;
            let bytes = message(93_000, seed);
            endpoint.send(now, address(peer), bytes, &SendOptions::default()).unwrap();
            drive::drain(&mut hosts, &mut network, now, 0, &mut Nobody);
            while hosts[0].endpoint.unfinished() > 0 {
                now = drive::next_at(&hosts, &network).expect("a message is under way");
                drive::run_moment(&mut hosts, &mut network, now, &mut Nobody);
            }
        }
        let trains = |peer| hosts[0].endpoint.paths(address(peer))[0].train;
        assert!((1..=peers).all(|peer| trains(peer) == 64));
        Self { now, hosts }
    }

    fn send(&mut self, peer: usize, length: usize, priority: u8) -> MessageId {
        let options = SendOptions::default().priority(priority).deadline(DEADLINE);
        let bytes = message(length, 1);
        self.hosts[0].endpoint.send(self.now, address(peer), bytes, &options).unwrap()
    }

    /// The trains that are sent now. They are lost.
    fn trains(&mut self) -> Vec<Train> {
        let mut trains = Vec::new();
        let mut buffer = Vec::new();
        while let Some(transmit) = self.hosts[0].endpoint.poll_transmit(self.now, &mut buffer) {
            let id = |packet| SymbolView::parse(packet).unwrap().header.message;
            let packets = buffer.chunks(transmit.segment_size).map(id).collect();
            trains.push(Train { transmit, packets });
            buffer.clear();
            self.hosts[0].endpoint.check_invariants();
        }
        trains
    }

    /// How the messages end if no peer answers.
    fn outcome(&mut self, id: MessageId) -> &Outcome {
        self.now += DEADLINE;
        let now = self.now;
        self.hosts[0].handle_timeout(now, &mut |_, _| {});
        &self.hosts[0].outcomes[&id]
    }
}

#[test]
fn messages_that_are_sent_together_leave_in_few_trains() {
    let mut star = Star::new(1);
    let ids = [(); 16].map(|()| star.send(1, SHORT, 4));
    let trains = star.trains();
    let most = 64_035 / (1_254 + SYMBOL_OVERHEAD);
    let lengths: Vec<usize> = trains.iter().map(|train| train.packets.len()).collect();
    assert_eq!(lengths, [most, 64 - most]);
    for id in ids {
        let packets = trains.iter().flat_map(|train| &train.packets);
        assert_eq!(packets.filter(|packet| **packet == id).count(), 4);
    }
    assert_eq!(trains[0].messages(), ids[..most.div_ceil(4)], "the oldest first");
}

#[test]
fn the_most_urgent_go_first_and_then_the_shortest() {
    let mut star = Star::new(1);
    let [usual, long, short, urgent, background] =
        [(SHORT, 4), (10_016, 4), (2_492, 4), (SHORT, 7), (2_492, 0)]
            .map(|(length, priority)| star.send(1, length, priority));
    let trains = star.trains();
    let [train] = &trains[..] else { panic!("{} trains", trains.len()) };
    assert_eq!(train.messages(), [urgent, short, usual, long, background]);
    assert_eq!(train.packets.len(), 4 + 2 + 4 + 8 + 2);
}

#[test]
fn another_peer_and_another_length_of_symbols_have_trains_of_their_own() {
    let mut star = Star::new(2);
    for _ in 0..4 {
        star.send(1, SHORT, 4);
        star.send(2, SHORT, 4);
        star.send(1, 4_000, 4);
    }
    let trains = star.trains();
    let mut kinds = Vec::new();
    for Train { transmit, packets } in &trains {
        assert!(matches!(transmit.contents, Contents::Symbols { .. }), "{transmit:?}");
        kinds.push((transmit.via.remote, transmit.segment_size, packets.len()));
    }
    // A message of 4,000 bytes has three symbols.
    let [large, usual] = [4_016 / 3 + 1, 5_016 / 4].map(|symbol| symbol + SYMBOL_OVERHEAD);
    let expected = [(address(1), large, 12), (address(1), usual, 16), (address(2), usual, 16)];
    assert_eq!(kinds, expected);
}

#[test]
fn a_local_send_error_is_blamed_only_by_messages_in_the_failed_train() {
    for refused in [0, 1] {
        let mut star = Star::new(1);
        let ids = [(); 16].map(|()| star.send(1, SHORT, 4));
        let trains = star.trains();
        star.hosts[0].endpoint.not_sent(&trains[refused].transmit, LocalError::Denied);
        for id in ids {
            let local = trains[refused].packets.contains(&id);
            let expected = if local {
                Indeterminate::Local(LocalError::Denied)
            } else {
                Indeterminate::Deadline
            };
            assert_eq!(*star.outcome(id), Outcome::Unknown(expected), "{refused}: {id}");
        }
    }
}

#[test]
fn a_message_that_continued_in_another_train_does_not_blame_the_failed_one() {
    for (refused, is_blamed) in [(0, false), (1, true)] {
        let mut star = Star::new(1);
        // 66 symbols are two trains.
        let id = star.send(1, 93_000, 4);
        let trains = star.trains();
        assert_eq!(trains.len(), 2);
        star.hosts[0].endpoint.not_sent(&trains[refused].transmit, LocalError::Denied);
        let local = Outcome::Unknown(Indeterminate::Local(LocalError::Denied));
        assert_eq!(*star.outcome(id) == local, is_blamed);
    }
}
