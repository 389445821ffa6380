//! A sender, several peers that may fall silent, and a virtual clock. The network delays packets,
//! and loses only those from or to silent peers.

use crate::common::endpoint;
use cloudburst_core::config::Config;
use cloudburst_core::error::Outcome;
use cloudburst_core::id::MessageId;
use cloudburst_core::path::Via;
use cloudburst_core::proto::{Event, SendOptions, SentTo, Transceiver};
use cloudburst_core::time::Instant;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

const PATHS: u16 = 4;
const DELAY: Duration = Duration::from_micros(50);

pub(crate) struct Star {
    pub(crate) now: Instant,
    /// The sender, then its peers.
    hosts: Vec<Transceiver>,
    /// The timeout of each.
    timeouts: Vec<Option<Instant>>,
    silent: Vec<bool>,
    pub(crate) outcomes: BTreeMap<MessageId, Outcome>,
    /// Packets by arrival: source and its egress, destination and its egress.
    flying: BTreeMap<(Instant, u64), (usize, Via, Vec<u8>)>,
    packets: u64,
}

fn address(host: usize, egress: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8], 7000 + egress))
}

impl Star {
    /// A sender with configuration `config` that has sessions with `peers` peers.
    pub(crate) fn new(config: &Config, peers: usize) -> Self {
        let host = |number| endpoint(config, number as u8 + 1, PATHS);
        let mut star = Self {
            now: Instant::from_nanos(1_000_000_000),
            hosts: (0..=peers).map(host).collect(),
            timeouts: vec![None; peers + 1],
            silent: vec![false; peers + 1],
            outcomes: BTreeMap::new(),
            flying: BTreeMap::new(),
            packets: 0,
        };
        for peer in 1..=peers {
            star.deliver(peer, 5_000);
        }
        star
    }

    /// Whether all packets from and to `peer` are lost.
    pub(crate) fn silence(&mut self, peer: usize, silent: bool) {
        self.silent[peer] = silent;
    }

    /// The packets that were sent to `peer`.
    pub(crate) fn sent_to(&self, peer: usize) -> SentTo {
        let peers = self.hosts[0].peers();
        peers.into_iter().find(|stats| stats.peer == address(peer, 0)).unwrap().sent
    }

    pub(crate) fn cancel(&mut self, id: MessageId) {
        self.hosts[0].cancel(id);
    }

    pub(crate) fn send(&mut self, peer: usize, length: usize) -> MessageId {
        let options = SendOptions::default().deadline(Duration::from_secs(600));
        self.hosts[0].send(self.now, address(peer, 0), vec![7; length].into(), &options).unwrap()
    }

    /// Sends a message and waits until it is delivered. Returns how long that took.
    pub(crate) fn deliver(&mut self, peer: usize, length: usize) -> Duration {
        let id = self.send(peer, length);
        let sent_at = self.now;
        self.run(|star| star.outcomes.contains_key(&id));
        assert!(matches!(self.outcomes[&id], Outcome::Delivered(_)), "{:?}", self.outcomes[&id]);
        self.now.saturating_since(sent_at)
    }

    pub(crate) fn run(&mut self, done: impl Fn(&Self) -> bool) {
        let limit = self.now + Duration::from_secs(600);
        self.drain(0);
        while !done(self) {
            assert!(self.now < limit, "not done within ten minutes");
            self.advance(limit);
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        self.drain(0);
        while self.now < until {
            self.advance(until);
        }
    }

    /// Advances to the time of the next event, or to `limit` if that is earlier.
    fn advance(&mut self, limit: Instant) {
        let timeouts = self.timeouts.iter().copied().flatten();
        let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
        let next = timeouts.chain(arrival).min();
        self.now = next.unwrap_or(limit).clamp(self.now, limit);
        let mut served = BTreeSet::new();
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, via, mut packet) = entry.remove();
            self.hosts[to].handle_datagram(self.now, via, &mut packet);
            served.insert(to);
        }
        for host in 0..self.hosts.len() {
            if self.timeouts[host].is_some_and(|at| at <= self.now) {
                self.hosts[host].handle_timeout(self.now);
                served.insert(host);
            }
        }
        served.into_iter().for_each(|host| self.drain(host));
    }

    fn drain(&mut self, host: usize) {
        let mut buffer = Vec::new();
        while let Some(transmit) = self.hosts[host].poll_transmit(self.now, &mut buffer) {
            for packet in buffer.chunks(transmit.segment_size) {
                self.fly(host, transmit.via, packet);
            }
            buffer.clear();
        }
        // A check looks at every message, so it is made the less often the more there are.
        if self.packets.is_multiple_of(self.hosts[host].unfinished().max(1) as u64) {
            self.hosts[host].check_invariants();
        }
        while let Some(event) = self.hosts[host].poll_event() {
            match event {
                Event::Ended(id, outcome) => drop(self.outcomes.insert(id, outcome)),
                Event::Readable(_) => drop(self.hosts[host].recv()),
                _ => {}
            }
        }
        self.timeouts[host] = self.hosts[host].poll_timeout();
    }

    fn fly(&mut self, from: usize, via: Via, packet: &[u8]) {
        let SocketAddr::V4(remote) = via.remote else { return };
        let to = usize::from(remote.ip().octets()[3]);
        if self.silent[from] || self.silent[to] {
            return;
        }
        self.packets += 1;
        let egress = remote.port() - 7000;
        let arrival = Via { egress, local: None, remote: address(from, via.egress) };
        self.flying.insert((self.now + DELAY, self.packets), (to, arrival, packet.to_vec()));
    }
}
