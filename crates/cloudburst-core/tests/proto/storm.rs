//! Storms of first messages, at a receiver whose processor takes its time for each packet.

use crate::common::{KEY, message};
use cloudburst_core::config::{Config, ListenPorts, Security};
use cloudburst_core::error::Outcome;
use cloudburst_core::path::{Egresses, Via};
use cloudburst_core::proto::{Event, Transceiver};
use cloudburst_core::rng::Seed;
use cloudburst_core::time::Instant;
use cloudburst_core::wire::Kind;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

const DELAY: Duration = Duration::from_micros(50);

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (host >> 8) as u8, host as u8], 7000))
}

/// Host 0 receives, the others send.
struct Storm {
    now: Instant,
    hosts: Vec<Transceiver>,
    timers: BTreeSet<(Instant, usize)>,
    timeouts: Vec<Option<Instant>>,
    flying: BTreeMap<(Instant, u64), (usize, Via, Vec<u8>)>,
    packets: u64,
    /// Packets that the receiver has not looked at yet.
    queue: VecDeque<(Via, Vec<u8>)>,
    works_until: Instant,
    /// The handshakes whose keys it has agreed on.
    opened: BTreeSet<Vec<u8>>,
    outcomes: Vec<(usize, Instant, Outcome)>,
}

impl Storm {
    fn new(senders: usize, paths: u16) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let host = |number: usize| {
            let mut seed = [1; 32];
            seed[..8].copy_from_slice(&number.to_be_bytes());
            Transceiver::new(
                Config { capacity: 10_000_000_000.into(), ..Config::default() },
                ListenPorts::one(7000),
                &Security::pre_shared(KEY),
                Seed::new(seed),
                Box::new(Egresses(paths)),
            )
            .unwrap()
        };
        Self {
            now,
            hosts: (0..=senders).map(host).collect(),
            timers: BTreeSet::new(),
            timeouts: vec![None; senders + 1],
            flying: BTreeMap::new(),
            packets: 0,
            queue: VecDeque::new(),
            works_until: now,
            opened: BTreeSet::new(),
            outcomes: Vec::new(),
        }
    }

    fn send(&mut self, from: usize, bytes: usize) {
        let bytes = message(bytes, from as u64);
        self.hosts[from].send(self.now, address(0), bytes, &Default::default()).unwrap();
    }

    /// Runs until so many messages have ended, all of which must be delivered.
    fn run(&mut self, ended: usize) {
        let limit = self.now + Duration::from_secs(60);
        (0..self.hosts.len()).for_each(|host| self.drain(host));
        while self.outcomes.len() < ended {
            assert!(self.now < limit, "{} of {ended} have ended", self.outcomes.len());
            self.step();
        }
        let delivered = self.outcomes.iter().all(|(_, _, it)| matches!(it, Outcome::Delivered(_)));
        assert!(delivered, "{:?}", self.outcomes);
    }

    fn step(&mut self) {
        let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
        let works = (!self.queue.is_empty()).then_some(self.works_until);
        let timer = self.timers.first().map(|(at, _)| *at);
        self.now = [arrival, works, timer].into_iter().flatten().min().unwrap().max(self.now);
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, via, mut packet) = entry.remove();
            if to == 0 {
                self.queue.push_back((via, packet));
            } else {
                self.hosts[to].handle_datagram(self.now, via, &mut packet);
                self.drain(to);
            }
        }
        if self.works_until <= self.now
            && let Some((via, mut packet)) = self.queue.pop_front()
        {
            // The first OPEN of a handshake takes two key agreements.
            let agrees =
                Kind::of(&packet) == Ok(Kind::Open) && self.opened.insert(packet[4..12].to_vec());
            self.works_until = self.now + Duration::from_micros(if agrees { 75 } else { 5 });
            self.hosts[0].handle_datagram(self.now, via, &mut packet);
            self.drain(0);
        }
        while let Some(&(at, host)) = self.timers.first()
            && at <= self.now
        {
            self.hosts[host].handle_timeout(self.now);
            self.drain(host);
        }
    }

    fn drain(&mut self, host: usize) {
        let mut buffer = Vec::new();
        while let Some(transmit) = self.hosts[host].poll_transmit(self.now, &mut buffer) {
            let SocketAddr::V4(remote) = transmit.via.remote else { continue };
            let [_, _, high, low] = remote.ip().octets();
            let to = usize::from(high) << 8 | usize::from(low);
            let egress = remote.port() - 7000;
            let mut from = address(host);
            from.set_port(7000 + transmit.via.egress);
            // An answer leaves the receiver when it has worked on its cause.
            let leaves = if host == 0 { self.works_until.max(self.now) } else { self.now };
            for packet in buffer.chunks(transmit.segment_size) {
                self.packets += 1;
                let via = Via { egress, local: None, remote: from };
                self.flying.insert((leaves + DELAY, self.packets), (to, via, packet.to_vec()));
            }
            buffer.clear();
        }
        while let Some(event) = self.hosts[host].poll_event() {
            match event {
                Event::Ended(_, outcome) => self.outcomes.push((host, self.now, outcome)),
                Event::Readable(_) => drop(self.hosts[host].recv()),
                _ => {}
            }
        }
        if let Some(old) = self.timeouts[host].take() {
            self.timers.remove(&(old, host));
        }
        let next = self.hosts[host].poll_timeout();
        self.timers.extend(next.map(|at| (at, host)));
        self.timeouts[host] = next;
    }

    /// The packets of messages, and those of handshakes, that the senders have sent.
    fn sent(&self) -> (u64, u64) {
        let counters = self.hosts[1..].iter().map(|host| host.counters().sender);
        counters.fold((0, 0), |(symbols, handshakes), of| {
            (symbols + of.symbols_sent + of.probes_sent, handshakes + of.handshakes_sent)
        })
    }
}

#[test]
fn first_messages_of_many_peers_at_once_take_at_most_three_packets_each() {
    for (senders, paths) in [(300, 1), (300, 4), (300, 16), (1_000, 16)] {
        let mut storm = Storm::new(senders, paths);
        let start = storm.now;
        (1..=senders).for_each(|host| storm.send(host, 100));
        storm.run(senders);
        let (symbols, handshakes) = storm.sent();
        let each = symbols as f64 / senders as f64;
        let took = storm.now.saturating_since(start);
        println!(
            "{senders} over {paths} paths: {each:.2} packets, {:.2} of handshakes, {took:?}",
            handshakes as f64 / senders as f64
        );
        assert!(each <= 3.0, "{each} packets each");
    }
}

#[test]
fn first_messages_of_one_peer_at_once_take_at_most_three_packets_each() {
    for paths in [1, 16] {
        let mut storm = Storm::new(1, paths);
        let start = storm.now;
        (0..1_000).for_each(|_| storm.send(1, 100));
        storm.run(1_000);
        let (symbols, handshakes) = storm.sent();
        let each = symbols as f64 / 1_000.0;
        let took = storm.now.saturating_since(start);
        println!(
            "one peer over {paths} paths: {each:.2} packets, {handshakes} of the handshake, {took:?}"
        );
        assert!(each <= 3.0, "{each} packets each");
    }
}
