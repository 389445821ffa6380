//! A client, several endpoints behind one port, and a network that deals handshakes out among them.

use bytes::Bytes;
use cloudburst_core::config::{Config, Security};
use cloudburst_core::error::Outcome;
use cloudburst_core::id::MessageId;
use cloudburst_core::path::{Lanes, Via};
use cloudburst_core::proto::{Endpoint, Event, Message, SendOptions};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Kind;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

pub(crate) const KEY: [u8; 32] = [7; 32];
/// What the shards share.
pub(crate) const PORT: u16 = 7000;
const CLIENT_PORT: u16 = 5000;
const SHARED_LANE: u16 = 99;
const DELAY: Duration = Duration::from_micros(50);

pub(crate) fn service() -> SocketAddr {
    ([10, 0, 0, 2], PORT).into()
}

/// The first port of the shard `number` itself.
pub(crate) fn own_port(number: usize) -> u16 {
    9000 + 10 * number as u16
}

pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    addr: SocketAddr,
    pub(crate) alive: bool,
    pub(crate) inbox: Vec<Message>,
    pub(crate) outcomes: BTreeMap<MessageId, Outcome>,
}

struct Flying {
    at: Instant,
    from: SocketAddr,
    to: SocketAddr,
    packet: Vec<u8>,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    /// The client, then all others.
    pub(crate) hosts: Vec<Host>,
    /// Those who share the port.
    pub(crate) shards: Vec<usize>,
    flying: VecDeque<Flying>,
    /// Ports that packets do not get to.
    pub(crate) dark: fn(u16) -> bool,
    /// What left: its kind, the port that it left from and the address that it was for.
    pub(crate) tap: Vec<(Kind, u16, SocketAddr)>,
}

pub(crate) fn endpoint(seed: usize, lanes: u16, config: Config) -> Endpoint {
    let (security, seed) = (Security::pre_shared(KEY), Seed::new([seed as u8; 32]));
    Endpoint::new(config, &security, seed, Box::new(Lanes(lanes))).expect("a sound configuration")
}

pub(crate) fn client() -> Endpoint {
    endpoint(200, 4, Config { port: CLIENT_PORT, capacity: 100_000_000, ..Config::default() })
}

impl World {
    /// A client, which is host 0, and hosts 1 to `shards` behind one port.
    pub(crate) fn new(shards: usize) -> Self {
        let mut world = Self {
            now: Instant::from_nanos(1_000_000_000),
            hosts: Vec::new(),
            shards: (1..=shards).collect(),
            flying: VecDeque::new(),
            dark: |_| false,
            tap: Vec::new(),
        };
        world.add(client(), ([10, 0, 0, 1], CLIENT_PORT).into());
        for number in 1..=shards {
            world.add_at(own_port(number), true);
        }
        world
    }

    /// One more endpoint of the service's host, at a port of its own.
    pub(crate) fn add_at(&mut self, port: u16, reuse_port: bool) {
        let config = Config { port, reuse_port, ..Config::default() };
        let endpoint = endpoint(self.hosts.len(), 2, config);
        self.add(endpoint, ([10, 0, 0, 2], port).into());
    }

    fn add(&mut self, endpoint: Endpoint, addr: SocketAddr) {
        let (inbox, outcomes) = (Vec::new(), BTreeMap::new());
        self.hosts.push(Host { endpoint, addr, alive: true, inbox, outcomes });
    }

    pub(crate) fn kill(&mut self, number: usize) {
        self.hosts[number].alive = false;
        self.shards.retain(|&shard| shard != number);
    }

    pub(crate) fn send(&mut self, from: usize, to: SocketAddr, bytes: Bytes) -> MessageId {
        let options = SendOptions::default();
        self.hosts[from].endpoint.send(self.now, to, bytes, &options).expect("room")
    }

    /// Sends to the service and runs until that has ended.
    pub(crate) fn ask(&mut self, bytes: Bytes) -> Outcome {
        let id = self.send(0, service(), bytes);
        self.outcome(id)
    }

    pub(crate) fn outcome(&mut self, id: MessageId) -> Outcome {
        self.run_until(|world| world.hosts[0].outcomes.contains_key(&id));
        self.hosts[0].outcomes[&id].clone()
    }

    /// The only host that has messages of the client.
    pub(crate) fn taker(&self) -> usize {
        let takers: Vec<usize> =
            (1..self.hosts.len()).filter(|&host| !self.hosts[host].inbox.is_empty()).collect();
        assert_eq!(takers.len(), 1, "{takers:?}");
        takers[0]
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        self.drain();
        while self.advance(until) {
            self.drain();
        }
    }

    pub(crate) fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        let until = self.now + Duration::from_secs(60);
        self.drain();
        while !done(self) {
            assert!(self.advance(until), "nothing came of it in a minute");
            self.drain();
        }
    }

    /// Goes to the next moment at which something happens; `false` if that is not before `until`.
    fn advance(&mut self, until: Instant) -> bool {
        let alive = self.hosts.iter().filter(|host| host.alive);
        let timeouts = alive.filter_map(|host| host.endpoint.poll_timeout());
        let next = timeouts.chain(self.flying.front().map(|flying| flying.at)).min();
        self.now = next.unwrap_or(until).clamp(self.now, until);
        if self.now == until {
            return false;
        }
        while let Some(mut flying) = self.flying.pop_front_if(|flying| flying.at <= self.now) {
            if let Some((host, lane)) = self.receiver_of(&flying) {
                let via = Via { lane, remote: flying.from };
                let endpoint = &mut self.hosts[host].endpoint;
                endpoint.handle_datagram(self.now, via, &mut flying.packet);
            }
        }
        for host in self.hosts.iter_mut().filter(|host| host.alive) {
            host.endpoint.handle_timeout(self.now);
        }
        true
    }

    /// Who gets a packet, and by which lane.
    fn receiver_of(&self, flying: &Flying) -> Option<(usize, u16)> {
        if flying.to == service() {
            let dealt = usize::from(flying.from.port()).checked_rem(self.shards.len())?;
            return Some((self.shards[dealt], SHARED_LANE));
        }
        self.hosts.iter().enumerate().rev().find_map(|(number, host)| {
            let lane = flying.to.port().checked_sub(host.addr.port())?;
            (host.alive && lane < 10 && host.addr.ip() == flying.to.ip()).then_some((number, lane))
        })
    }

    fn drain(&mut self) {
        for host in self.hosts.iter_mut().filter(|host| host.alive) {
            let mut buffer = Vec::new();
            while let Some(transmit) = host.endpoint.poll_transmit(self.now, &mut buffer) {
                let Via { lane, remote: to } = transmit.via;
                let mut from = host.addr;
                from.set_port(if lane == SHARED_LANE { PORT } else { from.port() + lane });
                for packet in buffer.chunks(transmit.segment_size) {
                    self.tap.push((Kind::of(packet).expect("a packet"), from.port(), to));
                    let last = self.flying.back().map_or(Instant::ZERO, |last| last.at);
                    let at = (self.now + DELAY).max(last + Duration::from_nanos(1));
                    if !(self.dark)(to.port()) {
                        self.flying.push_back(Flying { at, from, to, packet: packet.to_vec() });
                    }
                }
                buffer.clear();
            }
            while let Some(event) = host.endpoint.poll_event() {
                match event {
                    Event::Ended(id, outcome) => {
                        assert!(host.outcomes.insert(id, outcome).is_none(), "ended twice");
                    }
                    Event::Readable(_) => host.inbox.extend(host.endpoint.recv()),
                    Event::Answered(..) => {}
                }
            }
        }
    }
}
