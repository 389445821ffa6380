//! Four senders at once through switches with tiny queues: trains of learned length cost no more than
//! short ones.
//!
//! ```text
//!   hosts 0..4 -- leaf == spines == leaf -- hosts 4..8
//! ```
//!
//! Every port of a switch has a queue of eight packets, and all links are as fast as the hosts. Answers
//! have queues of their own, without other traffic.

use crate::common::{KEY, message};
use cloudburst_core::config::{Config, ListenPorts, Security, Tuning};
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::id::MessageId;
use cloudburst_core::path::Via;
use cloudburst_core::proto::{Contents, SendOptions, Transmit};
use cloudburst_core::rng::SplitMix64;
use cloudburst_core::time::Instant;
use cloudburst_netem::{Link, LinkConfig};
use cloudburst_world::{Host, Recipe};
use core::time::Duration;
use std::net::SocketAddr;

/// The number of sending hosts. As many receive.
const SENDERS: usize = 4;
const RATE: u64 = 10_000_000_000;
const DELAY: Duration = Duration::from_micros(2);
/// The packets that a port of a switch holds.
const TINY: usize = 8;
/// The bytes of IP and UDP headers. The fabric stores there the source, the destination, the egress of
/// each, the number of links passed, and whether the packet has a symbol.
const HEADERS: usize = 28;
/// The messages of each sender from which train lengths are learned, and the messages that are
/// measured.
const WARM_UP: usize = 200;
const MESSAGES: usize = 200;
const SEED: u64 = 1;
/// The cost of trying longer trains, in packets per packet needed.
const TRIES: f64 = 0.001;

/// The traffic of the senders.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Whether all senders have the same receiver, or each its own.
    incast: bool,
    paths: u16,
    bytes: usize,
    /// The mean gap between messages.
    gap: Duration,
}

/// The measurements.
#[derive(Debug, Default)]
struct Totals {
    times: Vec<Duration>,
    packets: usize,
    needed: usize,
    dropped: u64,
    longest: usize,
}

impl Totals {
    fn percentile(&mut self, percent: usize) -> Duration {
        self.times.sort_unstable();
        self.times[(self.times.len() * percent).div_ceil(100) - 1]
    }

    /// Packets dropped per packet needed.
    fn drops(&self) -> f64 {
        self.dropped as f64 / self.needed as f64
    }
}

/// An application that sends one message after the other.
struct Client {
    rng: SplitMix64,
    under_way: Option<MessageId>,
    next_at: Instant,
    sent: usize,
}

struct Fabric {
    now: Instant,
    load: Load,
    hosts: Vec<Host>,
    /// The timeout of each.
    timeouts: Vec<Option<Instant>>,
    clients: Vec<Client>,
    /// The links of each host, of each spine upwards and downwards, and to each host.
    links: Vec<Link>,
    /// When each has its next event.
    dues: Vec<Option<Duration>>,
    longest: usize,
}

fn address(host: usize, egress: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 7000 + egress))
}

impl Fabric {
    fn new(load: Load, train: usize, seed: u64) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let config = Config {
            capacity: RATE.into(),
            tuning: Tuning { train, ..Tuning::default() },
            ..Config::default()
        };
        let host = |number| {
            let mut secret = [number as u8 + 1; 32];
            secret[2..10].copy_from_slice(&seed.to_be_bytes());
            let recipe = Recipe {
                config: config.clone(),
                listen: ListenPorts::one(7000),
                security: Security::pre_shared(KEY),
                secret,
                egresses: load.paths,
                addr: address(number, 0),
                ports: load.paths,
                shared: None,
                interface_mtu: 1_500,
            };
            Host::new(recipe)
        };
        let client = |number| Client {
            rng: SplitMix64::new(seed << 8 | number as u64),
            under_way: None,
            next_at: now,
            sent: 0,
        };
        let link = |number: usize, queue| {
            // Otherwise the same host would always find a free place first.
            let jitter = DELAY / 2;
            let rate = Some(RATE);
            let config = LinkConfig { delay: DELAY, jitter, rate, queue, ..LinkConfig::default() };
            Link::new(config, seed << 8 | number as u64).unwrap()
        };
        let hosts = 2 * SENDERS;
        let ports = 2 * usize::from(load.paths) + hosts;
        let free = LinkConfig { delay: 4 * DELAY, ..LinkConfig::default() };
        Self {
            now,
            load,
            clients: (0..SENDERS).map(client).collect(),
            links: (0..hosts)
                .map(|host| link(host, 100_000))
                .chain((0..ports).map(|port| link(hosts + port, TINY)))
                .chain([Link::new(free, 0).unwrap()])
                .collect(),
            hosts: (0..hosts).map(host).collect(),
            timeouts: vec![None; hosts],
            dues: vec![None; hosts + ports + 1],
            longest: 0,
        }
    }

    /// The links on the path of a symbol.
    fn way(&self, packet: &[u8]) -> [usize; 4] {
        let [from, to, spine] = [0, 1, 2].map(|at| usize::from(packet[at]));
        let hosts = self.hosts.len();
        let paths = usize::from(self.load.paths);
        let up = hosts + spine % paths;
        [from, up, up + paths, hosts + 2 * paths + to]
    }

    /// Adds headers to a packet, and puts it on its first link.
    fn put(&mut self, from: usize, transmit: Transmit, packet: &[u8]) {
        let SocketAddr::V4(remote) = transmit.via.remote else { return };
        let mut bytes = vec![0; HEADERS];
        let to = remote.ip().octets()[3] - 1;
        let is_symbol = matches!(transmit.contents, Contents::Symbols { .. });
        bytes[..6].copy_from_slice(&[
            from as u8,
            to,
            transmit.via.egress as u8,
            (remote.port() - 7000) as u8,
            0,
            is_symbol.into(),
        ]);
        bytes.extend_from_slice(packet);
        self.forward(bytes);
    }

    /// Puts a packet on its next link, or delivers it after the last.
    fn forward(&mut self, mut packet: Vec<u8>) {
        let stage = usize::from(packet[4]);
        packet[4] += 1;
        let is_symbol = packet[5] != 0;
        match (is_symbol, stage) {
            (true, 0..4) => self.enter(self.way(&packet)[stage], &packet),
            (false, 0) => self.enter(self.links.len() - 1, &packet),
            _ => {
                let to = usize::from(packet[1]);
                let remote = address(packet[0].into(), packet[2].into());
                let via = Via { egress: packet[3].into(), local: None, remote };
                let now = self.now;
                self.serve(to, |host, out| host.handle(now, via, packet[HEADERS..].to_vec(), out));
            }
        }
    }

    fn enter(&mut self, link: usize, packet: &[u8]) {
        self.links[link].send(self.now.saturating_since(Instant::ZERO), packet);
        self.dues[link] = self.links[link].next_at();
    }

    fn serve(
        &mut self,
        number: usize,
        input: impl FnOnce(&mut Host, &mut dyn FnMut(Transmit, &[u8])),
    ) {
        let mut sent = Vec::new();
        input(&mut self.hosts[number], &mut |transmit, packet| {
            sent.push((transmit, packet.to_vec()));
        });
        self.timeouts[number] = self.hosts[number].poll_timeout();
        for (transmit, packet) in sent {
            if matches!(transmit.contents, Contents::Symbols { .. }) {
                self.longest = self.longest.max(transmit.len / transmit.segment_size);
            }
            self.put(number, transmit, &packet);
        }
    }

    /// Has each client send `count` more messages, and runs until all have ended.
    fn run(&mut self, count: usize) -> Totals {
        let before = self.dropped();
        let mut totals = Totals::default();
        let wanted = self.clients[0].sent + count;
        self.longest = 0;
        loop {
            for number in 0..self.clients.len() {
                self.run_client(number, wanted, &mut totals);
            }
            let done = |client: &Client| client.under_way.is_none() && client.sent == wanted;
            if self.clients.iter().all(done) {
                totals.dropped = self.dropped() - before;
                totals.longest = self.longest;
                self.hosts.iter().for_each(|host| host.endpoint.check_invariants());
                return totals;
            }
            self.advance(wanted);
        }
    }

    fn run_client(&mut self, number: usize, wanted: usize, totals: &mut Totals) {
        let client = &mut self.clients[number];
        if let Some(id) = client.under_way
            && let Some(outcome) = self.hosts[number].outcomes.remove(&id)
        {
            let Outcome::Delivered(receipt) = outcome else { panic!("{outcome:?}") };
            let Receipt { packets, source_symbols, .. } = receipt;
            totals.times.push(receipt.total());
            totals.packets += packets;
            totals.needed += source_symbols;
            client.under_way = None;
            let gap = self.load.gap.as_nanos() as u64;
            client.next_at = self.now + Duration::from_nanos(client.rng.below(2 * gap + 1));
        }
        if client.under_way.is_none() && client.sent < wanted && client.next_at <= self.now {
            client.sent += 1;
            let to = if self.load.incast { SENDERS } else { SENDERS + number };
            let bytes = message(self.load.bytes, client.sent as u64);
            let now = self.now;
            let endpoint = &mut self.hosts[number].endpoint;
            let id = endpoint.send(now, address(to, 0), bytes, &SendOptions::default()).unwrap();
            client.under_way = Some(id);
            self.serve(number, |host, out| host.drain(now, out));
        }
    }

    /// Advances to the time of the next event.
    fn advance(&mut self, wanted: usize) {
        let timeouts = self.timeouts.iter().copied().flatten();
        let arrivals = self.dues.iter().flatten().map(|&at| Instant::ZERO + at);
        let waits = |client: &&Client| client.under_way.is_none() && client.sent < wanted;
        let starts = self.clients.iter().filter(waits).map(|client| client.next_at);
        let next = timeouts.chain(arrivals).chain(starts).min();
        self.now = self.now.max(next.expect("something is under way"));
        let at = self.now.saturating_since(Instant::ZERO);
        for link in 0..self.links.len() {
            if self.dues[link].is_some_and(|due| due <= at) {
                while let Some(packet) = self.links[link].poll(at) {
                    self.forward(packet);
                }
                self.dues[link] = self.links[link].next_at();
            }
        }
        for number in 0..self.hosts.len() {
            if self.timeouts[number].is_some_and(|timeout| timeout <= self.now) {
                let now = self.now;
                self.serve(number, |host, out| host.handle_timeout(now, out));
            }
        }
    }

    fn dropped(&self) -> u64 {
        self.links.iter().map(|link| link.stats().queue_dropped).sum()
    }
}

/// The results with trains of at most `train` packets, once their lengths have been learned.
fn totals(load: Load, train: usize) -> Totals {
    let mut fabric = Fabric::new(load, train, SEED);
    fabric.run(WARM_UP);
    let mut sum = fabric.run(MESSAGES);
    println!(
        "{load:?}, trains of {train}: {:.2} % dropped, {:.3} packets, p50 {:?}, p99 {:?}, longest {}",
        100.0 * sum.drops(),
        sum.packets as f64 / sum.needed as f64,
        sum.percentile(50),
        sum.percentile(99),
        sum.longest,
    );
    sum
}

/// Asserts that learned trains do as well as trains of four, except for the cost of trying longer
/// ones.
fn compare(load: Load) {
    let mut fixed = totals(load, 4);
    let mut learned = totals(load, 64);
    assert_eq!(fixed.longest, 4);
    let few = fixed.drops();
    let more = learned.drops();
    assert!(more <= 1.1 * few + TRIES, "{few} and {more} dropped for each that is needed");
    let short = fixed.percentile(99);
    let long = learned.percentile(99);
    assert!(long <= short.mul_f64(1.1), "p99 {short:?} and {long:?}");
}

const fn large(incast: bool, paths: u16, gap: u64) -> Load {
    Load { incast, paths, bytes: 93_000, gap: Duration::from_micros(gap) }
}

#[test]
fn pairs_over_four_spines_that_are_always_busy() {
    compare(large(false, 4, 0));
}

#[test]
fn pairs_over_four_spines_that_are_half_busy() {
    compare(large(false, 4, 100));
}

#[test]
fn pairs_over_one_spine() {
    compare(large(false, 1, 400));
}

#[test]
fn four_senders_to_one() {
    compare(large(true, 4, 400));
}
