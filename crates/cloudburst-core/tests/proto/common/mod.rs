//! Two endpoints, emulated links between them, and a virtual clock.
//!
//! A link carries what goes from one lane of one side to one of the other. It is on the path whose
//! number is the sum of theirs, modulo the number of paths: so from lane `k` to lane 0, and back,
//! is path `k`. Nothing here is random but by the seed.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses its part of this harness"
)]

use bytes::Bytes;
use cloudburst_core::config::{Config, Security};
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::id::MessageId;
use cloudburst_core::path::{Lanes, Via};
use cloudburst_core::proto::{
    CallFailure, CallId, Counters, Endpoint, Event, Marking, Message, Request, SendOptions,
};
use cloudburst_core::rng::{Seed, SplitMix64};
use cloudburst_core::time::Instant;
use cloudburst_netem::{Link, LinkConfig, LinkStats, Loss};
use core::time::Duration;
use std::collections::BTreeMap;
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

    pub fn address(self, lane: u16) -> SocketAddr {
        let host = if self == Self::A { 1 } else { 2 };
        SocketAddr::from(([10, 0, 0, host], 7000 + lane))
    }
}

/// What the pair is made of.
#[derive(Clone)]
pub struct Setup {
    pub seed: u64,
    pub paths: u16,
    pub a: Config,
    pub b: Config,
    pub key_a: Security,
    pub key_b: Security,
    /// Both directions of each link.
    pub link: LinkConfig,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            paths: 4,
            a: Config { port: 7000, ..Config::default() },
            b: Config { port: 7000, ..Config::default() },
            key_a: Security::pre_shared(KEY),
            key_b: Security::pre_shared(KEY),
            link: LinkConfig { delay: Duration::from_micros(50), ..LinkConfig::default() },
        }
    }
}

pub fn lossy(share: f64) -> LinkConfig {
    LinkConfig { loss: Loss::Independent(share), ..Setup::default().link }
}

pub struct Host {
    pub endpoint: Endpoint,
    /// Messages that were put into the application's queue, taken or not.
    pub readable: usize,
    /// Plain messages that the application has taken, in order.
    pub inbox: Vec<Message>,
    /// Requests that it has taken.
    pub requests: Vec<Request>,
    /// How calls ended.
    pub answers: BTreeMap<CallId, Result<Bytes, CallFailure>>,
    /// How sends ended.
    pub outcomes: BTreeMap<MessageId, Outcome>,
    /// Whether the application takes each message at once.
    pub takes: bool,
    incarnations: u8,
}

pub struct Pair {
    pub now: Instant,
    pub a: Host,
    pub b: Host,
    setup: Setup,
    links: BTreeMap<(Side, u16, u16), Link>,
    /// When the last packet left.
    wire_free: Instant,
    /// Every datagram that was put on a link, where a test wants to see them.
    pub tap: Option<Vec<(Side, Via, Vec<u8>)>>,
    /// The marking of each of them, in the same order.
    pub markings: Vec<Marking>,
    buffer: Vec<u8>,
}

impl Pair {
    pub fn new(setup: Setup) -> Self {
        let mut pair = Self {
            now: Instant::from_nanos(1_000_000_000),
            a: Host::new(&setup, Side::A, 0),
            b: Host::new(&setup, Side::B, 0),
            links: BTreeMap::new(),
            wire_free: Instant::ZERO,
            setup,
            tap: None,
            markings: Vec::new(),
            buffer: Vec::new(),
        };
        for side in [Side::A, Side::B] {
            for lane in 0..pair.setup.paths {
                for to in 0..pair.setup.paths {
                    pair.link(side, lane, to);
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

    /// The link on which packets leave `side` by `lane` for lane `to` of the other.
    pub fn link(&mut self, side: Side, lane: u16, to: u16) -> &mut Link {
        let (config, seed) = (&self.setup.link, self.setup.seed);
        self.links.entry((side, lane, to)).or_insert_with(|| {
            let place = u64::from(lane) << 16 | u64::from(to) << 32 | (side as u64) << 48;
            Link::new(config.clone(), SplitMix64::new(seed ^ place).next_u64()).unwrap()
        })
    }

    /// Reconfigures path `path`, or all, in one direction.
    pub fn set_links(&mut self, from: Side, path: Option<u16>, config: &LinkConfig) {
        let paths = self.setup.paths;
        for (&(side, lane, to), link) in &mut self.links {
            if side == from && path.is_none_or(|path| path == (lane + to) % paths) {
                link.reconfigure(config.clone()).unwrap();
            }
        }
    }

    /// Black-holes or heals path `path` in both directions.
    pub fn set_down(&mut self, path: u16, down: bool) {
        let paths = self.setup.paths;
        for (&(_, lane, to), link) in &mut self.links {
            if path == (lane + to) % paths {
                link.set_down(down);
            }
        }
    }

    /// What happened on all links that leave `side`.
    pub fn link_stats(&self, side: Side) -> LinkStats {
        let mut sum = LinkStats::default();
        for link in self.links.iter().filter(|((from, ..), _)| *from == side).map(|(_, l)| l) {
            let stats = link.stats();
            sum.sent += stats.sent;
            sum.delivered += stats.delivered;
            sum.lost += stats.lost;
            sum.duplicated += stats.duplicated;
            sum.reordered += stats.reordered;
            sum.corrupted += stats.corrupted;
            sum.truncated += stats.truncated;
            sum.extended += stats.extended;
            sum.blackholed += stats.blackholed;
        }
        sum
    }

    /// Kills a side and starts it again as a new incarnation. What it had is gone.
    pub fn restart(&mut self, side: Side) {
        let incarnations = self.host(side).incarnations + 1;
        *self.host(side) = Host::new(&self.setup, side, incarnations);
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
        let (now, to) = (self.now, side.other().address(0));
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

    /// Runs until `done`, at most ten minutes of virtual time.
    pub fn run(&mut self, done: impl Fn(&Self) -> bool) {
        let limit = self.now + Duration::from_secs(600);
        loop {
            self.drain();
            if done(self) {
                return;
            }
            assert!(self.now < limit, "nothing came of it in ten minutes");
            assert!(self.advance(limit), "everybody waits for nothing");
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

    /// Goes to the next moment at which something happens, at most to `limit`.
    fn advance(&mut self, limit: Instant) -> bool {
        let timeouts = [self.a.endpoint.poll_timeout(), self.b.endpoint.poll_timeout()];
        let arrivals = self.links.values().filter_map(Link::next_at).min().map(instant);
        let next = timeouts.into_iter().flatten().chain(arrivals).min();
        self.now = next.unwrap_or(limit).clamp(self.now, limit);
        for side in [Side::A, Side::B] {
            for (&(from, lane, to), link) in &mut self.links {
                if from != side.other() {
                    continue;
                }
                while let Some(mut packet) = link.poll(duration(self.now)) {
                    let via = Via { lane: to, remote: from.address(lane) };
                    let host = if side == Side::A { &mut self.a } else { &mut self.b };
                    host.endpoint.handle_datagram(self.now, via, &mut packet);
                }
            }
            let now = self.now;
            self.host(side).endpoint.handle_timeout(now);
        }
        next.is_some()
    }

    /// Drains the outputs of both sides.
    pub fn drain(&mut self) {
        for side in [Side::A, Side::B] {
            loop {
                self.buffer.clear();
                let mut buffer = core::mem::take(&mut self.buffer);
                let now = self.now;
                let transmit = self.host(side).endpoint.poll_transmit(now, &mut buffer);
                self.buffer = buffer;
                let Some(transmit) = transmit else { break };
                assert_eq!(self.buffer.len(), transmit.len);
                // What goes to anybody else's port leaves the pair.
                let Some(to) = transmit.via.remote.port().checked_sub(7000) else { continue };
                let buffer = core::mem::take(&mut self.buffer);
                for packet in buffer.chunks(transmit.segment_size) {
                    // One after the other, if only by nanoseconds: equal links keep their order.
                    self.wire_free = (self.wire_free + Duration::from_nanos(1)).max(now);
                    let now = self.wire_free;
                    if let Some(tap) = &mut self.tap {
                        tap.push((side, transmit.via, packet.to_vec()));
                        self.markings.push(transmit.marking);
                    }
                    self.link(side, transmit.via.lane, to).send(duration(now), packet);
                }
                self.buffer = buffer;
            }
            let now = self.now;
            let host = self.host(side);
            if host.endpoint.unfinished() < 64 {
                host.endpoint.check_invariants();
            }
            let before = host.readable;
            while let Some(event) = host.endpoint.poll_event() {
                match event {
                    Event::Ended(id, outcome) => {
                        assert!(host.outcomes.insert(id, outcome).is_none(), "ended twice");
                    }
                    Event::Answered(call, answer) => {
                        assert!(host.answers.insert(call, answer).is_none(), "ended twice");
                    }
                    Event::Readable(_) => host.readable += 1,
                }
            }
            if host.takes && host.readable > before {
                host.take_all(now);
                // Taking may have made more to say.
                self.drain();
                return;
            }
        }
    }
}

impl Host {
    fn new(setup: &Setup, side: Side, incarnations: u8) -> Self {
        let (config, security) = match side {
            Side::A => (&setup.a, &setup.key_a),
            Side::B => (&setup.b, &setup.key_b),
        };
        let mut secret = [side as u8 + 1; 32];
        secret[1] = incarnations;
        secret[2..10].copy_from_slice(&setup.seed.to_be_bytes());
        let map = Box::new(Lanes(setup.paths));
        Self {
            endpoint: Endpoint::new(config.clone(), security, Seed::new(secret), map).unwrap(),
            readable: 0,
            inbox: Vec::new(),
            requests: Vec::new(),
            answers: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            takes: true,
            incarnations,
        }
    }

    /// The application takes everything that was delivered.
    pub fn take_all(&mut self, now: Instant) {
        self.inbox.extend(core::iter::from_fn(|| self.endpoint.recv()));
        self.requests.extend(core::iter::from_fn(|| self.endpoint.recv_request(now)));
    }

    pub fn counters(&self) -> Counters {
        self.endpoint.counters()
    }

    pub fn delivered(&self) -> usize {
        self.outcomes.values().filter(|o| matches!(o, Outcome::Delivered(_))).count()
    }
}

/// `length` bytes that differ from message to message.
pub fn message(length: usize, seed: u64) -> Bytes {
    let mut rng = SplitMix64::new(seed);
    (0..length).map(|_| rng.next_u64() as u8).collect::<Vec<u8>>().into()
}

fn duration(now: Instant) -> Duration {
    Duration::from_nanos(now.as_nanos())
}

fn instant(at: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos() as u64)
}
