//! Many senders to one receiver, whose port of the switch has a tiny queue.
//!
//! ```text
//!   hosts 1..=N, a link each == switch == the receiver's link, 1 Gb/s, behind the queue
//! ```
//!
//! Packets without symbols have a queue of their own, as in a fabric whose switches distinguish
//! classes, or share it with symbols. The queue may drop selectively (Aeolus).

use crate::common::{KEY, message};
use cloudburst_core::config::{
    BurstPolicy, Config, EcnMode, Fabric, ListenPorts, PullOrder, Security, Tuning,
};
use cloudburst_core::error::{Outcome, Receipt};
use cloudburst_core::path::Via;
use cloudburst_core::proto::{Ecn, SendOptions, Transmit};
use cloudburst_core::rate::Downlink;
use cloudburst_core::time::Instant;
use cloudburst_netem::{Link, LinkConfig, Mark, Trim};
use cloudburst_world::{Host, Recipe};
use core::time::Duration;
use std::net::SocketAddr;

const RATE: u64 = 1_000_000_000;
const DELAY: Duration = Duration::from_micros(5);
/// The bytes of headers and frame of a packet. The switch stores there the source, the destination, the
/// class, the number of links passed, and whether the packet is ECN-capable.
const HEADERS: usize = 28 + 38;
/// The bytes of a full packet with its frame.
const FULL: usize = 1_500 + 38;
/// The threshold of selective dropping, in bytes (Aeolus, section 6).
const THRESHOLD: usize = 6_000;
/// The bytes on the wire of a packet that is trimmed to 128 bytes of its Ethernet frame: the rest of the
/// frame, a checksum, a preamble and a gap.
const TRIMMED: usize = 128 + 24;

/// The simultaneous traffic of all senders.
#[derive(Clone, Copy, Debug)]
struct Incast {
    senders: usize,
    bytes: usize,
    /// The packets that the receiver's port holds.
    queue: usize,
    policy: BurstPolicy,
    order: PullOrder,
    probe: bool,
    /// Whether probes share the queue with symbols.
    one_queue: bool,
    /// Whether hosts mark packets as for Aeolus, and the receiver's port drops selectively.
    aeolus: bool,
    /// The number of endpoints of the receiving host, each of which gets an equal share of the messages.
    receivers: usize,
    /// Whether they share their rate of pulls.
    shared: bool,
    /// Whether the switch trims packets that overflow, to frames of 128 bytes.
    trim: bool,
}

/// The results.
#[derive(Debug)]
struct Totals {
    /// The packets sent and needed, and those sent before any answer was possible.
    sent: usize,
    needed: usize,
    openings: usize,
    openings_dropped: usize,
    dropped: usize,
    /// Those of them that the network should spare.
    spared_dropped: usize,
    trimmed: usize,
    /// Symbols that the receiver counted as lost, and trimmed ones that reached it.
    lost: usize,
    seen_trimmed: usize,
    /// Packets sent because a sender's timer expired.
    retries: u64,
    times: Vec<Duration>,
    /// How long the receiver's link needs for the packets needed.
    floor: Duration,
}

pub(crate) struct Switch {
    pub(crate) now: Instant,
    pub(crate) hosts: Vec<Host>,
    /// The timeout of each.
    timeouts: Vec<Option<Instant>>,
    /// The links of each host, of the receiver, and of packets without symbols.
    links: Vec<Link>,
    /// Symbols with lower numbers are openings. Counts those of them that were dropped.
    window: u32,
    openings_dropped: usize,
    spared_dropped: usize,
    /// Whether all packets to the receiver share its port, or symbols only.
    one_port: bool,
    /// The number of hosts behind the receiver's port, from the first on.
    receivers: usize,
    /// The address of each host. The switch knows it by its port, 7000 and its number.
    addresses: Vec<SocketAddr>,
    /// For each host, the classes that replace those of its packets: class c becomes the one at index c.
    pub(crate) remarks: Vec<(usize, [u8; 4])>,
}

impl Switch {
    fn of(incast: &Incast) -> Self {
        let config = Config {
            capacity: RATE.into(),
            fabric: Fabric {
                ecn: if incast.aeolus { EcnMode::Aeolus } else { EcnMode::Off },
                trim_dscp: incast.trim.then_some(44),
                ..Fabric::default()
            },
            tuning: Tuning { pull_order: incast.order, probe: incast.probe, ..Tuning::default() },
            ..Config::default()
        };
        let port = LinkConfig {
            queue: incast.queue,
            // In bytes, so that probes use little of a common queue.
            queue_bytes: (incast.one_queue && !incast.trim).then_some(incast.queue * FULL),
            trim: incast.trim.then_some(Trim { header: TRIMMED, queue: 1_000 }),
            selective: incast.aeolus.then_some(THRESHOLD),
            ..LinkConfig::default()
        };
        let downlink = incast.shared.then(|| Downlink::new(RATE));
        let mut receiver = config.clone();
        receiver.fabric.downlink = downlink;
        let mut configs = vec![receiver; incast.receivers];
        configs.extend(vec![config; incast.senders]);
        Self { receivers: incast.receivers, ..Self::new(configs, port, incast.one_queue) }
    }

    /// A switch with these hosts, the first of which is the receiver, and this port to it.
    pub(crate) fn new(configs: Vec<Config>, port: LinkConfig, one_port: bool) -> Self {
        let hosts = (0..).zip(configs).collect();
        Self::at(hosts, port, one_port)
    }

    /// The same with hosts at IP addresses with these last bytes. Several may be at one.
    pub(crate) fn at(hosts: Vec<(u8, Config)>, port: LinkConfig, one_port: bool) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let addresses: Vec<SocketAddr> =
            (7000..).zip(&hosts).map(|(port, (ip, _))| ([10, 0, 0, *ip], port).into()).collect();
        let host = |(number, (_, config)): (usize, _)| {
            Host::new(Recipe {
                config: Config { capacity: RATE.into(), ..config },
                listen: ListenPorts::one(addresses[number].port()),
                security: Security::pre_shared(KEY),
                secret: [number as u8 + 1; 32],
                egresses: 1,
                addr: addresses[number],
                ports: 1,
                shared: None,
                interface_mtu: 1_500,
            })
        };
        let link = |seed, queue, rate| {
            let config = LinkConfig { delay: DELAY, rate, queue, ..LinkConfig::default() };
            Link::new(config, seed).unwrap()
        };
        let port = LinkConfig { delay: DELAY, rate: Some(RATE), ..port };
        let uplinks = (0..hosts.len()).map(|host| link(host as u64, 100_000, Some(RATE)));
        Self {
            now,
            links: uplinks
                .chain([Link::new(port, 100).unwrap(), link(101, 100_000, None)])
                .collect(),
            timeouts: vec![None; hosts.len()],
            hosts: hosts.into_iter().enumerate().map(host).collect(),
            addresses,
            window: 12,
            openings_dropped: 0,
            spared_dropped: 0,
            one_port,
            receivers: 1,
            remarks: Vec::new(),
        }
    }

    fn put(&mut self, from: usize, transmit: Transmit, packet: &[u8]) {
        // Liars are behind no link.
        let to = transmit.via.remote.port() - 7000;
        if usize::from(to) >= self.hosts.len() {
            return;
        }
        let mut bytes = vec![0; HEADERS];
        bytes[..5].copy_from_slice(&[
            from as u8,
            to as u8,
            transmit.marking.class.0,
            0,
            (transmit.marking.ecn == Ecn::Ect0).into(),
        ]);
        bytes.extend_from_slice(packet);
        self.forward(bytes);
    }

    /// Puts a packet on its next link, or delivers it after the last.
    fn forward(&mut self, mut packet: Vec<u8>) {
        let at = self.now.saturating_since(Instant::ZERO);
        let [from, to, class, stage, ect] = [0, 1, 2, 3, 4].map(|at| usize::from(packet[at]));
        packet[3] += 1;
        let last = self.links.len() - 1;
        match (stage, class) {
            (0, _) => self.links[from].send(at, &packet),
            (1, 0) if to >= self.receivers || !self.one_port => self.links[last].send(at, &packet),
            (1, _) => {
                let remark = self.remarks.iter().find(|(host, _)| *host == from);
                let class = remark.map_or(class as u8, |(_, classes)| classes[class.min(3)]);
                let link = &mut self.links[last - 1];
                let overflown = |link: &Link| dropped(link) + link.stats().trimmed;
                let before = overflown(link);
                link.send_marked(at, Mark { class, ect: ect > 0 }, &packet);
                let symbol =
                    packet[HEADERS + 32..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
                let is_opening = symbol.is_some_and(|symbol| symbol < self.window);
                let dropped = (overflown(link) - before) as usize;
                self.spared_dropped += dropped * ect;
                self.openings_dropped += if is_opening { dropped } else { 0 };
            }
            _ => {
                let via = Via { egress: 0, local: None, remote: self.addresses[from] };
                let now = self.now;
                self.serve(to, |host, out| host.handle(now, via, packet[HEADERS..].to_vec(), out));
            }
        }
    }

    pub(crate) fn serve(
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
            self.put(number, transmit, &packet);
        }
    }

    /// Sends a message of `bytes` from host `from` to one of the receivers.
    fn send(&mut self, from: usize, bytes: usize, policy: Option<BurstPolicy>) {
        self.send_to(from, from % self.receivers, bytes, policy);
    }

    /// Sends a message of `bytes` from one host to another.
    pub(crate) fn send_to(
        &mut self,
        from: usize,
        to: usize,
        bytes: usize,
        policy: Option<BurstPolicy>,
    ) {
        let mut options = SendOptions::default();
        options.policy = policy;
        let now = self.now;
        let to = self.addresses[to];
        let endpoint = &mut self.hosts[from].endpoint;
        endpoint.send(now, to, message(bytes, from as u64), &options).unwrap();
        self.serve(from, |host, out| host.drain(now, out));
    }

    /// Runs for this long.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while self.next_at().is_some_and(|at| at <= until) {
            self.advance();
        }
        self.now = until;
    }

    /// Runs until all messages have ended. Returns their receipts, by host.
    pub(crate) fn settle(&mut self) -> Vec<Receipt> {
        while self.hosts.iter().any(|host| host.endpoint.unfinished() > 0) {
            self.advance();
        }
        self.hosts.iter().for_each(|host| host.endpoint.check_invariants());
        let outcomes = self.hosts.iter_mut().flat_map(|host| core::mem::take(&mut host.outcomes));
        let receipt = |(_, outcome)| match outcome {
            Outcome::Delivered(receipt) => receipt,
            other => panic!("{other:?}"),
        };
        outcomes.map(receipt).collect()
    }

    fn next_at(&self) -> Option<Instant> {
        let timeouts = self.timeouts.iter().copied().flatten();
        let arrivals = self.links.iter().filter_map(Link::next_at).map(|at| Instant::ZERO + at);
        timeouts.chain(arrivals).min()
    }

    pub(crate) fn advance(&mut self) {
        self.now = self.now.max(self.next_at().expect("something is under way"));
        let at = self.now.saturating_since(Instant::ZERO);
        for link in 0..self.links.len() {
            while let Some(packet) = self.links[link].poll(at) {
                self.forward(packet);
            }
        }
        for number in 0..self.hosts.len() {
            if self.timeouts[number].is_some_and(|timeout| timeout <= self.now) {
                let now = self.now;
                self.serve(number, |host, out| host.handle_timeout(now, out));
            }
        }
    }

    fn retries(&self) -> u64 {
        let peers = self.hosts.iter().flat_map(|host| host.endpoint.peers());
        peers.map(|peer| peer.sent.retries).sum()
    }

    fn dropped(&self) -> u64 {
        self.links.iter().map(dropped).sum()
    }

    fn trimmed(&self) -> u64 {
        self.links.iter().map(|link| link.stats().trimmed).sum()
    }
}

fn dropped(link: &Link) -> u64 {
    link.stats().queue_dropped + link.stats().selectively_dropped
}

fn run(incast: Incast) -> Totals {
    let mut switch = Switch::of(&incast);
    let senders = incast.receivers..incast.receivers + incast.senders;
    for sender in senders.clone() {
        switch.send(sender, 5_000, None);
        switch.settle();
    }
    let before = switch.dropped();
    let retries = switch.retries();
    let trimmed = switch.trimmed();
    let earlier = switch.hosts[0].endpoint.counters().receiver;
    switch.openings_dropped = 0;
    switch.spared_dropped = 0;
    for sender in senders {
        switch.send(sender, incast.bytes, Some(incast.policy));
    }
    let receipts = switch.settle();
    let needed: usize = receipts.iter().map(|receipt| receipt.source_symbols).sum();
    let Receipt { bytes, blocks, source_symbols, .. } = receipts[0];
    let payload = (bytes + 16 * blocks).div_ceil(source_symbols);
    let openings = match incast.policy {
        BurstPolicy::Pulled { window } => {
            let window = window.map_or(12, usize::from);
            incast.senders * window.min(source_symbols)
        }
        _ => 0,
    };
    let mut times: Vec<Duration> = receipts.iter().map(|receipt| receipt.completed_in).collect();
    times.sort_unstable();
    let wire = (needed * (payload + 58 + HEADERS) * 8) as u64;
    let counters = switch.hosts[0].endpoint.counters().receiver;
    let totals = Totals {
        trimmed: (switch.trimmed() - trimmed) as usize,
        lost: (counters.symbols_lost - earlier.symbols_lost) as usize,
        seen_trimmed: (counters.symbols_trimmed - earlier.symbols_trimmed) as usize,
        sent: receipts.iter().map(|receipt| receipt.packets).sum(),
        needed,
        openings,
        openings_dropped: switch.openings_dropped,
        dropped: (switch.dropped() - before) as usize,
        spared_dropped: switch.spared_dropped,
        retries: switch.retries() - retries,
        floor: Duration::from_nanos(wire * 1_000_000_000 / RATE),
        times,
    };
    let median = totals.median();
    let last = totals.last();
    println!(
        "{incast:?}: {} sent, {needed} needed, {:.3} ({:.3} beyond openings), {} dropped ({} of them ECT), \
         {} trimmed, p50 {median:?}, \
         last {last:?} of {:?}, {:.3}; {} pulls, {} lost, {} retries",
        totals.sent,
        totals.sent as f64 / needed as f64,
        totals.excess(),
        totals.dropped,
        totals.spared_dropped,
        totals.trimmed,
        totals.floor,
        last.as_secs_f64() / totals.floor.as_secs_f64(),
        counters.pulls_sent,
        counters.symbols_lost,
        totals.retries,
    );
    totals
}

impl Totals {
    fn median(&self) -> Duration {
        self.times[self.times.len() / 2]
    }

    fn last(&self) -> Duration {
        self.times[self.times.len() - 1]
    }

    /// Packets sent beyond the openings, per packet needed beyond those of them that arrived.
    fn excess(&self) -> f64 {
        let left = self.needed - (self.openings - self.openings_dropped.min(self.openings));
        (self.sent - self.openings) as f64 / left as f64
    }
}

const PULLED: BurstPolicy = BurstPolicy::Pulled { window: None };

const fn incast(senders: usize, bytes: usize) -> Incast {
    Incast {
        senders,
        bytes,
        queue: 20,
        policy: PULLED,
        order: PullOrder::RoundRobin,
        probe: false,
        one_queue: false,
        aeolus: false,
        receivers: 1,
        shared: false,
        trim: false,
    }
}

#[test]
fn pulled_messages_lose_hardly_more_than_openings_and_fill_the_link() {
    for senders in [8, 16, 70] {
        for bytes in [70_000, 256_000] {
            let totals = run(incast(senders, bytes));
            assert!(totals.excess() <= 1.05, "{:.3} beyond openings", totals.excess());
            assert!(totals.last() <= totals.floor.mul_f64(1.03), "{:?}", totals.last());
        }
    }
}

#[test]
fn endpoints_of_one_host_that_share_the_downlink_pull_no_more_than_it_carries() {
    let two = Incast { receivers: 2, ..incast(16, 256_000) };
    let shared = run(Incast { shared: true, ..two });
    assert!(shared.excess() <= 1.05, "{:.3} beyond openings", shared.excess());
    assert!(shared.last() <= shared.floor.mul_f64(1.03), "{:?}", shared.last());
    let each = run(two);
    assert!(each.excess() > 1.3, "each at the rate of the link: {:.3}", each.excess());
}

#[test]
fn pulling_the_message_with_the_fewest_missing_symbols_first_lowers_the_mean_time() {
    let fair = run(incast(70, 70_000));
    let shortest = run(Incast { order: PullOrder::ShortestFirst, ..incast(70, 70_000) });
    assert!(shortest.last() <= shortest.floor.mul_f64(1.03), "{:?}", shortest.last());
    assert!(shortest.median() * 3 < fair.median() * 2, "{:?}", shortest.median());
}

#[test]
fn with_probes_no_short_message_waits_for_a_timer() {
    // Fourteen symbols each: most of them are the opening.
    let pulled = run(Incast { queue: 8, ..incast(16, 20_000) });
    // The link idles once, for the grace period after which packets sent before probes count as lost.
    assert!(pulled.last() <= pulled.floor.mul_f64(1.15), "{:?}", pulled.last());
    assert_eq!(pulled.retries, 0, "no timer of a sender expired");
    let burst = Incast { queue: 8, policy: BurstPolicy::default(), ..incast(16, 20_000) };
    let without = run(burst);
    let with = run(Incast { probe: true, ..burst });
    assert!(pulled.sent * 2 < without.sent);
    assert!(with.last() <= without.last().mul_f64(1.1), "{:?}", with.last());
}

#[test]
fn where_probes_share_the_queue_timers_find_what_is_lost() {
    for bytes in [70_000, 256_000] {
        let totals = run(Incast { one_queue: true, ..incast(70, bytes) });
        assert!(totals.excess() <= 1.1, "{:.3} beyond openings", totals.excess());
        assert!(totals.last() <= totals.floor.mul_f64(1.03), "{:?}", totals.last());
    }
}

#[test]
fn selective_dropping_spares_what_is_pulled_and_probes_so_that_no_message_waits_for_a_timer() {
    for (senders, bytes, queue) in [(16, 20_000, 8), (20, 400_000, 8), (70, 70_000, 20)] {
        let queue = Incast { queue, one_queue: true, ..incast(senders, bytes) };
        let bursts = Incast { policy: BurstPolicy::default(), ..queue };
        let without = run(bursts);
        let pulled = run(queue);
        let with = run(Incast { aeolus: true, ..queue });
        assert!(without.retries > 0 && pulled.retries > 0, "otherwise, timers expire");
        assert_eq!(with.retries, 0, "no message waits for a timer");
        assert!(with.spared_dropped * 10 < with.dropped, "openings are dropped, hardly any other");
        assert!(with.last() <= without.last().mul_f64(0.7), "{:?}", with.last());
        assert!(with.last() <= pulled.last().mul_f64(1.01), "{:?}", with.last());
    }
}

#[test]
fn bursts_answered_at_once_overflow_the_queue_even_with_selective_dropping() {
    let queue = Incast { queue: 8, one_queue: true, ..incast(16, 20_000) };
    let bursts = Incast { policy: BurstPolicy::default(), ..queue };
    for probe in [false, true] {
        let with = run(Incast { aeolus: true, probe, ..bursts });
        assert!(with.spared_dropped * 10 > with.needed, "{} dropped", with.spared_dropped);
    }
}

#[test]
fn with_trimming_each_loss_is_pulled_anew_and_nobody_waits_for_a_timer() {
    for (senders, one_queue) in [(8, false), (8, true), (16, false), (16, true), (70, false)] {
        for bytes in [20_000, 70_000, 256_000] {
            let trim = Incast { queue: 8, one_queue, trim: true, ..incast(senders, bytes) };
            let totals = run(trim);
            assert_eq!((totals.seen_trimmed, totals.dropped), (totals.trimmed, 0));
            assert_eq!(totals.retries, 0);
            // A thousand headers keep queued packets from arriving within the grace period.
            let late = if senders == 70 { 8 } else { 0 };
            assert!((totals.trimmed..=totals.trimmed + late).contains(&totals.lost));
            assert!(totals.sent <= totals.needed + totals.lost);
        }
    }
}

#[test]
fn with_trimming_the_last_message_ends_sooner() {
    for bytes in [20_000, 70_000] {
        let without = run(Incast { queue: 8, one_queue: true, ..incast(70, bytes) });
        let with = run(Incast { queue: 8, one_queue: true, trim: true, ..incast(70, bytes) });
        assert!(with.last() < without.last(), "{:?} {:?}", with.last(), without.last());
    }
}

#[test]
fn many_senders_wait_for_their_pulls_through_a_queue_of_four_and_hardly_any_asks_for_them() {
    for order in [PullOrder::RoundRobin, PullOrder::ShortestFirst] {
        for bytes in [20_000, 93_000] {
            let totals = run(Incast { queue: 4, order, ..incast(64, bytes) });
            assert!(totals.last() <= totals.floor.mul_f64(1.04), "{:?}", totals.last());
            // Others go first with those that are nearly done, for longer than the last pulls suggest.
            let retries = if order == PullOrder::RoundRobin { 0 } else { totals.needed / 50 };
            assert!(totals.retries <= retries as u64, "{} retries", totals.retries);
        }
    }
}
