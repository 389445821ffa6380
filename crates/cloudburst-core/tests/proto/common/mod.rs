//! Two hosts of `cloudburst-world`, links between them, and a clock, for most tests.
//!
//! A link carries packets from one egress of one side to one of the other. Its path has the sum of
//! their numbers, modulo the number of paths: from egress `k` to egress 0 and back is path `k`. All
//! randomness comes from the seed.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses its part of this harness"
)]

use bytes::Bytes;
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::id::MessageId;
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{SendOptions, Transceiver, Transmit};
use cloudburst_core::rng::{Seed, SplitMix64};
use cloudburst_core::time::Instant;
use cloudburst_netem::{Link, LinkConfig, LinkStats, Loss};
use cloudburst_world::drive::{self, Watch};
use cloudburst_world::{Departure, Hop, Host, Network, Recipe};
use core::time::Duration;
use std::net::SocketAddr;

pub mod peer;

pub use peer::KEY;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    A,
    B,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    pub fn address(self, egress: u16) -> SocketAddr {
        let host = if self == Self::A { 1 } else { 2 };
        SocketAddr::from(([10, 0, 0, host], 7000 + egress))
    }
}

/// An endpoint at port 7000 whose incarnation follows from `seed`, with this many egresses.
pub fn endpoint(config: &Config, seed: u8, egresses: u16) -> Transceiver {
    let security = Security::pre_shared(KEY);
    let paths = Box::new(Egresses(egresses));
    let seed = Seed::new([seed; 32]);
    Transceiver::new(config.clone(), ListenPorts::one(7000), &security, seed, paths).unwrap()
}

/// The parameters of a pair.
#[derive(Clone)]
pub struct Setup {
    pub seed: u64,
    pub paths: u16,
    pub a: Config,
    pub b: Config,
    pub ports_a: ListenPorts,
    pub ports_b: ListenPorts,
    pub key_a: Security,
    pub key_b: Security,
    /// Both directions of each link.
    pub link: LinkConfig,
    /// The MTU of the interfaces of both.
    pub interface_mtu: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            paths: 4,
            a: Config::default(),
            b: Config::default(),
            ports_a: ListenPorts::one(7000),
            ports_b: ListenPorts::one(7000),
            key_a: Security::pre_shared(KEY),
            key_b: Security::pre_shared(KEY),
            link: LinkConfig { delay: Duration::from_micros(50), ..LinkConfig::default() },
            interface_mtu: 1_500,
        }
    }
}

impl Setup {
    fn recipe(&self, side: Side) -> Recipe {
        let (config, listen, security) = match side {
            Side::A => (&self.a, self.ports_a, &self.key_a),
            Side::B => (&self.b, self.ports_b, &self.key_b),
        };
        let mut secret = [side as u8 + 1; 32];
        secret[2..10].copy_from_slice(&self.seed.to_be_bytes());
        Recipe {
            config: config.clone(),
            listen,
            security: security.clone(),
            secret,
            egresses: self.paths,
            addr: side.address(0),
            ports: 1_000,
            shared: None,
            interface_mtu: self.interface_mtu,
        }
    }
}

pub fn lossy(share: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Independent(share), ..Setup::default().link }
}

pub struct Pair {
    pub now: Instant,
    pub a: Host,
    pub b: Host,
    paths: u16,
    network: Network,
    /// Every datagram that was put on a link, if a test taps them.
    pub tap: Option<Vec<(Side, Via, Vec<u8>)>>,
    /// The batch of each of them, in the same order.
    pub batches: Vec<Transmit>,
}

/// Records the datagrams that are put on links.
struct Tap<'a>(&'a mut Option<Vec<(Side, Via, Vec<u8>)>>, &'a mut Vec<Transmit>);

impl Watch for Tap<'_> {
    fn on_departure(&mut self, departure: &Departure, hop: Option<Hop>) -> Option<Hop> {
        if let (Some(tap), Some(hop)) = (&mut self.0, hop) {
            let side = if hop.from == 0 { Side::A } else { Side::B };
            tap.push((side, departure.transmit.via, departure.packet.clone()));
            self.1.push(departure.transmit);
        }
        hop
    }
}

impl Pair {
    pub fn new(setup: Setup) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let mut pair = Self {
            now,
            a: Host::new(setup.recipe(Side::A)),
            b: Host::new(setup.recipe(Side::B)),
            paths: setup.paths,
            network: Network::new(setup.seed, setup.link),
            tap: None,
            batches: Vec::new(),
        };
        for side in [Side::A, Side::B] {
            for egress in 0..pair.paths {
                for to in 0..pair.paths {
                    pair.link(side, egress, to);
                }
            }
        }
        pair
    }

    pub fn host(&mut self, side: Side) -> &mut Host {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }

    /// The link for packets that leave `side` by `egress` for egress `to` of the other side.
    pub fn link(&mut self, side: Side, egress: u16, to: u16) -> &mut Link {
        let from = side as usize;
        let other = side.other() as usize;
        self.network.link(Hop { from, to: other, egress: to, source: side.address(egress) })
    }

    /// The links of path `path`, or all, in one direction, or both.
    fn links(&mut self, from: Option<Side>, path: Option<u16>) -> impl Iterator<Item = &mut Link> {
        let paths = self.paths;
        let is_on = move |hop: &Hop| {
            let egress = hop.source.port() - Side::A.address(0).port();
            from.is_none_or(|from| hop.from == from as usize)
                && path.is_none_or(|path| path == (egress + hop.egress) % paths)
        };
        self.network.links().filter(move |(hop, _)| is_on(hop)).map(|(_, link)| link)
    }

    /// Reconfigures path `path`, or all, in one direction.
    pub fn set_links(&mut self, from: Side, path: Option<u16>, config: &LinkConfig) {
        self.links(Some(from), path).for_each(|link| link.reconfigure(config.clone()).unwrap());
    }

    /// Black-holes or heals path `path` in both directions.
    pub fn set_down(&mut self, path: u16, down: bool) {
        self.links(None, Some(path)).for_each(|link| link.set_down(down));
    }

    /// The counters of all links that leave `side`.
    pub fn link_stats(&self, side: Side) -> LinkStats {
        self.network.stats(side as usize)
    }

    /// Kills a side and starts it again as a new incarnation, without its former state.
    pub fn restart(&mut self, side: Side) {
        self.host(side).restart();
    }

    /// Sends from A to B.
    pub fn send(&mut self, bytes: impl Into<Bytes>) -> MessageId {
        self.send_from(Side::A, bytes, SendOptions::default())
    }

    pub fn send_from(
        &mut self,
        side: Side,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> MessageId {
        let now = self.now;
        let to = side.other().address(0);
        let now = self.host(side).clock.read(now);
        self.host(side).endpoint.send(now, to, bytes.into(), &options).unwrap()
    }

    /// Sends from A to B and runs until the send has ended.
    pub fn deliver(&mut self, bytes: impl Into<Bytes>) -> Receipt {
        let id = self.send(bytes);
        match self.outcome(id) {
            Outcome::Delivered(receipt) => receipt,
            other => panic!("not delivered: {other:?}; {:?}", self.b.endpoint.counters()),
        }
    }

    /// Runs until A's send `id` has ended.
    pub fn outcome(&mut self, id: MessageId) -> Outcome {
        self.run(|pair| pair.a.outcomes.contains_key(&id));
        self.a.outcomes[&id].clone()
    }

    /// Runs until all sends of both sides have ended.
    pub fn settle(&mut self) {
        self.run(|pair| pair.a.endpoint.unfinished() + pair.b.endpoint.unfinished() == 0);
    }

    /// Runs until `done`, for at most ten minutes of virtual time.
    pub fn run(&mut self, done: impl Fn(&Self) -> bool) {
        let limit = self.now + Duration::from_secs(600);
        loop {
            self.drain();
            if done(self) {
                return;
            }
            assert!(self.now < limit, "not done within ten minutes");
            assert!(self.advance(limit), "neither side has a timer or a packet");
        }
    }

    pub fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.drain();
            if self.now >= until {
                return;
            }
            self.advance(until);
        }
    }

    /// Advances to the time of the next event, or to `limit` if that is earlier.
    fn advance(&mut self, limit: Instant) -> bool {
        let next = drive::next_at(&[&mut self.a, &mut self.b], &self.network);
        self.now = next.unwrap_or(limit).clamp(self.now, limit);
        let watch = &mut Tap(&mut self.tap, &mut self.batches);
        let hosts = &mut [&mut self.a, &mut self.b];
        drive::run_moment(hosts, &mut self.network, self.now, watch);
        next.is_some()
    }

    /// Drains the outputs of both sides.
    pub fn drain(&mut self) {
        let watch = &mut Tap(&mut self.tap, &mut self.batches);
        for number in 0..2 {
            let hosts = &mut [&mut self.a, &mut self.b];
            drive::drain(hosts, &mut self.network, self.now, number, watch);
        }
    }
}

/// `length` bytes that differ from message to message.
pub fn message(length: usize, seed: u64) -> Bytes {
    let mut rng = SplitMix64::new(seed);
    let mut bytes = vec![0; length];
    bytes
        .chunks_mut(8)
        .for_each(|chunk| chunk.copy_from_slice(&rng.next_u64().to_le_bytes()[..chunk.len()]));
    bytes.into()
}
