//! A client, several endpoints behind one port, and a network that distributes handshakes among
//! them.

use bytes::Bytes;
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::Outcome;
use cloudburst_core::id::MessageId;
use cloudburst_core::path::Egresses;
use cloudburst_core::proto::{SendOptions, Transceiver};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Kind;
use cloudburst_netem::LinkConfig;
use cloudburst_world::drive::{self, Watch};
use cloudburst_world::{Departure, Hop, Host, Network, Recipe};
use core::time::Duration;
use std::net::SocketAddr;

pub(crate) const KEY: [u8; 32] = [7; 32];
/// The port that the shards share.
pub(crate) const PORT: u16 = 7000;
const CLIENT_PORT: u16 = 5000;
const SHARED_EGRESS: u16 = 99;
const DELAY: Duration = Duration::from_micros(50);

pub(crate) fn service() -> SocketAddr {
    ([10, 0, 0, 2], PORT).into()
}

/// The first port of its own of the shard `number`.
pub(crate) fn own_port(number: usize) -> u16 {
    9000 + 10 * number as u16
}

pub(crate) struct World {
    pub(crate) now: Instant,
    /// The client, then all other hosts.
    pub(crate) hosts: Vec<Host>,
    /// The hosts that share the port.
    pub(crate) shards: Vec<usize>,
    network: Network,
    /// Whether packets to a port are lost.
    pub(crate) dark: fn(u16) -> bool,
    /// The packets sent: kind, source port and destination.
    pub(crate) tap: Vec<(Kind, u16, SocketAddr)>,
}

struct Tap<'a>(&'a mut Vec<(Kind, u16, SocketAddr)>, fn(u16) -> bool);

impl Watch for Tap<'_> {
    fn on_departure(&mut self, departure: &Departure, hop: Option<Hop>) -> Option<Hop> {
        let to = departure.transmit.via.remote;
        let kind = Kind::of(&departure.packet).expect("a packet");
        self.0.push((kind, departure.source.port(), to));
        hop.filter(|_| !(self.1)(to.port()))
    }
}

pub(crate) fn endpoint(
    seed: usize,
    egresses: u16,
    config: Config,
    ports: ListenPorts,
) -> Transceiver {
    let security = Security::pre_shared(KEY);
    let seed = Seed::new([seed as u8; 32]);
    Transceiver::new(config, ports, &security, seed, Box::new(Egresses(egresses)))
        .expect("the configuration is valid")
}

fn client_config() -> Config {
    Config { capacity: 100_000_000.into(), ..Config::default() }
}

pub(crate) fn client() -> Transceiver {
    endpoint(200, 4, client_config(), ListenPorts::one(CLIENT_PORT))
}

impl World {
    /// A client, which is host 0, and hosts 1 to `shards` behind one port.
    pub(crate) fn new(shards: usize) -> Self {
        let link = LinkConfig { delay: DELAY, ..LinkConfig::default() };
        let mut world = Self {
            now: Instant::from_nanos(1_000_000_000),
            hosts: Vec::new(),
            shards: (1..=shards).collect(),
            network: Network::new(1, link),
            dark: |_| false,
            tap: Vec::new(),
        };
        let client = ([10, 0, 0, 1], CLIENT_PORT).into();
        world.add(200, 4, client_config(), ListenPorts::one(CLIENT_PORT), client);
        for number in 1..=shards {
            world.add_at(own_port(number), true);
        }
        world
    }

    /// Adds an endpoint of the service's host, at a port of its own.
    pub(crate) fn add_at(&mut self, port: u16, reuse_port: bool) {
        let listen = ListenPorts { is_shared: reuse_port, ..ListenPorts::one(port) };
        self.add(self.hosts.len(), 2, Config::default(), listen, ([10, 0, 0, 2], port).into());
    }

    fn add(
        &mut self,
        seed: usize,
        egresses: u16,
        config: Config,
        listen: ListenPorts,
        addr: SocketAddr,
    ) {
        let shared = listen.is_shared.then(|| (SHARED_EGRESS, service()));
        let security = Security::pre_shared(KEY);
        let secret = [seed as u8; 32];
        let interface_mtu = 1_500;
        let recipe = Recipe {
            config,
            listen,
            security,
            secret,
            egresses,
            addr,
            ports: 10,
            shared,
            interface_mtu,
        };
        self.hosts.push(Host::new(recipe));
    }

    pub(crate) fn kill(&mut self, number: usize) {
        self.hosts[number].kill();
        self.shards.retain(|&shard| shard != number);
    }

    pub(crate) fn send(&mut self, from: usize, to: SocketAddr, bytes: Bytes) -> MessageId {
        let options = SendOptions::default();
        self.hosts[from].endpoint.send(self.now, to, bytes, &options).expect("room")
    }

    /// Sends to the service, and runs until the send has ended.
    pub(crate) fn ask(&mut self, bytes: Bytes) -> Outcome {
        let id = self.send(0, service(), bytes);
        self.outcome(id)
    }

    pub(crate) fn outcome(&mut self, id: MessageId) -> Outcome {
        self.run_until(|world| world.hosts[0].outcomes.contains_key(&id));
        self.hosts[0].outcomes[&id].clone()
    }

    /// The only host that has received messages of the client.
    pub(crate) fn taker(&self) -> usize {
        let takers: Vec<usize> =
            (1..self.hosts.len()).filter(|&host| !self.hosts[host].inbox.is_empty()).collect();
        assert_eq!(takers.len(), 1, "{takers:?}");
        takers[0]
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        self.drain();
        while self.advance(until) {}
    }

    pub(crate) fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        let until = self.now + Duration::from_secs(60);
        self.drain();
        while !done(self) {
            assert!(self.advance(until), "not done within a minute");
        }
    }

    /// Advances to the time of the next event. Returns `false` if that is not before `until`.
    fn advance(&mut self, until: Instant) -> bool {
        let next = drive::next_at(&self.hosts, &self.network);
        self.now = next.unwrap_or(until).clamp(self.now, until);
        if self.now == until {
            return false;
        }
        let watch = &mut Tap(&mut self.tap, self.dark);
        drive::run_moment(&mut self.hosts, &mut self.network, self.now, watch);
        true
    }

    fn drain(&mut self) {
        let watch = &mut Tap(&mut self.tap, self.dark);
        for number in 0..self.hosts.len() {
            drive::drain(&mut self.hosts, &mut self.network, self.now, number, watch);
        }
    }
}
