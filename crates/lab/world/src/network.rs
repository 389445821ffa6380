//! Links: one from each source address to each egress that receives its packets.

use cloudburst_core::path::Via;
use cloudburst_core::proto::{Ecn, Marking};
use cloudburst_core::rng::SplitMix64;
use cloudburst_core::time::Instant;
use cloudburst_netem::{Link, LinkConfig, LinkStats, Mark};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The route of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The host that sends.
    pub from: usize,
    /// The host that receives.
    pub to: usize,
    /// The egress that the packet arrives on.
    pub egress: u16,
    /// The source address that the packet states.
    pub source: SocketAddr,
}

/// All links of the world.
#[derive(Debug)]
pub struct Network {
    links: BTreeMap<Hop, Link>,
    /// When each link is next to be polled. Out of date if `is_stale`.
    due: BTreeSet<(Duration, Hop)>,
    /// Whether a link was handed out, and may have changed since.
    is_stale: bool,
    /// The configurations of links between two hosts that differ from `plain`.
    conditions: BTreeMap<(usize, usize), LinkConfig>,
    /// The classes that packets of a host get instead of their own.
    remarks: BTreeMap<usize, Vec<u8>>,
    plain: LinkConfig,
    seed: u64,
    /// When the last packet departed.
    wire_free: Instant,
}

impl Hop {
    /// The path as the receiver sees it.
    pub const fn via(&self) -> Via {
        Via { egress: self.egress, local: None, remote: self.source }
    }
}

impl Network {
    /// Creates a network whose links are like `plain`. `seed` determines their faults.
    pub fn new(seed: u64, plain: LinkConfig) -> Self {
        Self {
            links: BTreeMap::new(),
            due: BTreeSet::new(),
            is_stale: false,
            conditions: BTreeMap::new(),
            remarks: BTreeMap::new(),
            plain,
            seed,
            wire_free: Instant::ZERO,
        }
    }

    /// The link of `hop`, which is created if necessary.
    pub fn link(&mut self, hop: Hop) -> &mut Link {
        self.is_stale = true;
        self.get(hop)
    }

    fn get(&mut self, hop: Hop) -> &mut Link {
        self.links.entry(hop).or_insert_with(|| {
            let place = (hop.from as u64) << 48
                | (hop.to as u64) << 40
                | u64::from(hop.egress) << 16
                | u64::from(hop.source.port());
            let config = self.conditions.get(&(hop.from, hop.to)).unwrap_or(&self.plain);
            let seed = SplitMix64::new(self.seed ^ place).next_u64();
            Link::new(config.clone(), seed).expect("the link's configuration is valid")
        })
    }

    /// All links that exist.
    pub fn links(&mut self) -> impl Iterator<Item = (&Hop, &mut Link)> {
        self.is_stale = true;
        self.links.iter_mut()
    }

    /// Makes all links from one host to another like `config`, including future ones.
    pub fn set_conditions(&mut self, from: usize, to: usize, config: &LinkConfig) {
        self.conditions.insert((from, to), config.clone());
        for (hop, link) in self.links() {
            if (hop.from, hop.to) == (from, to) {
                let set = link.reconfigure(config.clone());
                set.expect("the link's configuration is valid");
            }
        }
    }

    /// Rewrites the classes of packets from a host, like a switch that rewrites DSCPs: class c becomes the one at
    /// index c, or the last one. If `classes` is empty, packets keep their own.
    pub fn set_remark(&mut self, from: usize, classes: &[u8]) {
        self.remarks.insert(from, classes.to_vec());
    }

    /// Makes all links plain again, and removes the black holes.
    pub fn heal(&mut self) {
        self.conditions.clear();
        let plain = self.plain.clone();
        for (_, link) in self.links() {
            link.set_down(false);
            link.reconfigure(plain.clone()).expect("the plain configuration is valid");
        }
    }

    /// Sends a packet. Departures are at least a nanosecond apart, so equal links preserve the order
    /// of packets.
    pub fn send(&mut self, now: Instant, hop: Hop, marking: Marking, packet: &[u8]) {
        self.wire_free = (self.wire_free + Duration::from_nanos(1)).max(now);
        let at = duration(self.wire_free);
        let Marking { class, ecn } = marking;
        let remark = self
            .remarks
            .get(&hop.from)
            .and_then(|classes| classes.get(usize::from(class.0)).or(classes.last()).copied());
        let mark = Mark { class: remark.unwrap_or(class.0), ect: ecn == Ecn::Ect0 };
        self.change(hop, |link| link.send_marked(at, mark, packet));
    }

    /// Changes a link, and notes when it is then to be polled.
    fn change<T>(&mut self, hop: Hop, change: impl FnOnce(&mut Link) -> T) -> T {
        let link = self.get(hop);
        let before = link.next_at();
        let result = change(link);
        let after = link.next_at();
        if before != after {
            if let Some(at) = before {
                self.due.remove(&(at, hop));
            }
            self.due.extend(after.map(|at| (at, hop)));
        }
        result
    }

    fn refresh(&mut self) {
        if core::mem::take(&mut self.is_stale) {
            let next = |(&hop, link): (&Hop, &Link)| link.next_at().map(|at| (at, hop));
            self.due = self.links.iter().filter_map(next).collect();
        }
    }

    /// When the next packet arrives, or when a link of several classes may send one.
    pub fn next_at(&self) -> Option<Instant> {
        let at = if self.is_stale {
            self.links.values().filter_map(Link::next_at).min()
        } else {
            self.due.first().map(|&(at, _)| at)
        };
        at.map(instant)
    }

    /// The earliest packet that has arrived by `now`.
    pub fn poll(&mut self, now: Instant) -> Option<(Hop, Vec<u8>)> {
        self.refresh();
        let now = duration(now);
        loop {
            let &(_, hop) = self.due.first().filter(|&&(at, _)| at <= now)?;
            // If there is none, the link has only begun to transmit one.
            if let Some(packet) = self.change(hop, |link| link.poll(now)) {
                return Some((hop, packet));
            }
        }
    }

    /// The sum of the counters of all links from `host`.
    pub fn stats(&self, host: usize) -> LinkStats {
        let mut sum = LinkStats::default();
        for (_, link) in self.links.iter().filter(|(hop, _)| hop.from == host) {
            let stats = link.stats();
            sum.sent += stats.sent;
            sum.delivered += stats.delivered;
            sum.lost += stats.lost;
            sum.queue_dropped += stats.queue_dropped;
            sum.selectively_dropped += stats.selectively_dropped;
            sum.trimmed += stats.trimmed;
            sum.duplicated += stats.duplicated;
            sum.reordered += stats.reordered;
            sum.corrupted += stats.corrupted;
            sum.truncated += stats.truncated;
            sum.extended += stats.extended;
            sum.too_long += stats.too_long;
            sum.blackholed += stats.blackholed;
        }
        sum
    }
}

fn duration(now: Instant) -> Duration {
    now.saturating_since(Instant::ZERO)
}

fn instant(at: Duration) -> Instant {
    Instant::ZERO + at
}
