//! What is done to nodes and the network, in an order drawn from the seed.

use crate::flood::Flood;
use crate::nodes::{ATTACKER, MTU, Nodes, PORT, Process, ROLES, TRANSLATED, translated};
use crate::record::Key;
use cloudburst_core::rng::SplitMix64;
use cloudburst_testbed::{Error, Star};
use core::time::Duration;
use std::io;
use std::time::Instant;

/// How long a process may take to leave: its shutdown, and what waits for it.
const LEAVES: Duration = Duration::from_secs(30);
/// The last bytes of the addresses that a client takes in turn.
const ADDRESSES: u8 = 8;
/// Counts the packets of clients from addresses that they have moved to.
const MOVED: &str = "table inet moved { set to { type ipv4_addr; }; chain forward { \
    type filter hook forward priority 10; ip saddr @to counter; }; }";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Kill,
    Restart,
    HandOver,
    ClientAddress,
    ServerAddress,
    Rebind,
    Mtu,
    Stop,
    StillClock,
    LinkDown,
    BlackHole,
    Loss,
    Flood,
}

/// Each kind, its name, and what shows that it took effect.
pub const KINDS: [(Kind, &str, &str); 13] = {
    use Kind::*;
    [
        (Kill, "kill", "processes ended by SIGKILL"),
        (Restart, "restart", "processes that left with status 0"),
        (HandOver, "hand-over", "processes that left with status 0 after another had come"),
        (ClientAddress, "client-address", "packets from the new address"),
        (ServerAddress, "server-address", "times that the address was gone"),
        (Rebind, "rebind", "packets under the new mapping"),
        (Mtu, "mtu", "packets too long for the link"),
        (Stop, "stop", "processes seen stopped"),
        (StillClock, "still-clock", "ms that clocks stood still"),
        (LinkDown, "link-down", "times that the carrier was gone"),
        (BlackHole, "black-hole", "packets dropped"),
        (Loss, "loss", "packets dropped"),
        (Flood, "flood", "packets sent"),
    ]
};

#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub fired: u64,
    pub evidence: u64,
}

/// How a fault ends.
#[derive(Debug)]
enum Undo {
    /// A process was killed, and another one starts.
    Start,
    /// The older of two processes leaves.
    Leave,
    /// A client had this address, and has another one besides, or instead.
    Moved {
        old: u8,
        new: u8,
        add: bool,
    },
    Address(u8),
    /// A table of the router is deleted, and its packets counted.
    Table(String),
    Mtu {
        failed: u64,
    },
    Resume {
        since: Instant,
        clock: bool,
    },
    Connect,
    Flood(Flood),
}

#[derive(Debug)]
struct Active {
    kind: Kind,
    node: u8,
    until: u64,
    span: usize,
    undo: Undo,
}

/// A process that was told to leave.
#[derive(Debug)]
struct Leaving {
    kind: Kind,
    node: u8,
    process: Process,
    by: Instant,
    span: usize,
}

#[derive(Debug)]
pub struct Faults {
    random: SplitMix64,
    kinds: Vec<Kind>,
    /// Those of this round that are still to come.
    next: Vec<Kind>,
    active: Vec<Active>,
    leaving: Vec<Leaving>,
    counts: [Count; KINDS.len()],
    /// The longest fault.
    longest: Duration,
    /// The last byte of each node's address.
    addresses: [u8; ROLES.len()],
    mapping: u8,
    tables: u64,
}

impl Faults {
    pub fn new(seed: u64, kinds: Vec<Kind>, longest: Duration) -> Self {
        Self {
            random: SplitMix64::new(seed),
            kinds,
            next: Vec::new(),
            active: Vec::new(),
            leaving: Vec::new(),
            counts: [Count::default(); KINDS.len()],
            longest,
            addresses: [2; ROLES.len()],
            mapping: 100,
            tables: 0,
        }
    }

    pub fn counts(&self) -> impl Iterator<Item = (&'static str, &'static str, Count)> {
        let enabled =
            KINDS.iter().zip(&self.counts).filter(|((kind, ..), _)| self.kinds.contains(kind));
        enabled.map(|((_, name, evidence), count)| (*name, *evidence, *count))
    }

    pub fn is_quiet(&self) -> bool {
        self.active.is_empty() && self.leaving.is_empty()
    }

    fn count(&mut self, kind: Kind) -> &mut Count {
        &mut self.counts[kind as usize]
    }

    /// Begins another fault, unless the node for it is already troubled.
    pub fn begin_next(&mut self, nodes: &mut Nodes) -> Result<(), Failure> {
        if self.next.is_empty() {
            self.next.clone_from(&self.kinds);
            for last in (1..self.next.len()).rev() {
                self.next.swap(last, self.random.below(last as u64 + 1) as usize);
            }
        }
        let Some(kind) = self.next.pop() else { return Ok(()) };
        let suits = |node: &u8| {
            let role = ROLES[usize::from(*node) - 1];
            match kind {
                Kind::Kill => !role.stays,
                Kind::Restart => !role.stays && !role.reuse_port,
                Kind::HandOver => role.reuse_port,
                Kind::ClientAddress => !role.serves && role.node != TRANSLATED,
                Kind::ServerAddress => role.serves,
                Kind::Rebind => role.node == TRANSLATED,
                _ => true,
            }
        };
        let is_free = |node: &u8| {
            self.active.iter().all(|active| active.node != *node)
                && self.leaving.iter().all(|leaving| leaving.node != *node)
        };
        let suitable: Vec<u8> = (1..=ROLES.len() as u8).filter(suits).filter(is_free).collect();
        if suitable.is_empty() {
            // It comes last in this round.
            self.next.insert(0, kind);
            return Ok(());
        }
        let node = suitable[self.random.below(suitable.len() as u64) as usize];
        self.begin(nodes, kind, node)
    }

    /// From a hundredth of the longest time on, short ones more often.
    fn draw_time(&mut self) -> Duration {
        let exponent = self.random.below(1_000) as f64 / 1_000.0;
        self.longest.mul_f64(0.01_f64.powf(1.0 - exponent))
    }

    fn begin(&mut self, nodes: &mut Nodes, kind: Kind, node: u8) -> Result<(), Failure> {
        let mut lasts = self.draw_time();
        let kills = kind == Kind::Kill;
        let (_, name, _) = KINDS[kind as usize];
        let now = nodes.now();
        let span = nodes.checker().on_fault(now, name, &[node], kills);
        let port = Star::port(node);
        let undo = match kind {
            Kind::Kill => {
                lasts = lasts.min(Duration::from_secs(5));
                let Some(process) = nodes.of(node).pop() else { return Ok(()) };
                nodes.checker().on_killed(process.life);
                let killed = process.kill().is_some_and(|status| status.code().is_none());
                self.count(kind).evidence += u64::from(killed);
                Undo::Start
            }
            Kind::Restart => {
                println!("soak: {:9.3} s {name} of node {node}", now as f64 / 1e6);
                self.leave(nodes, kind, node, span);
                self.count(kind).fired += 1;
                return Ok(());
            }
            Kind::HandOver => {
                lasts = Duration::from_millis(100 + self.random.below(900));
                nodes.start(node)?;
                Undo::Leave
            }
            Kind::ClientAddress => {
                lasts = lasts.min(Duration::from_secs(5));
                let old = self.addresses[usize::from(node) - 1];
                let new = 2 + (old - 1) % ADDRESSES;
                // Counted until the end: the client goes on to use the address.
                let address = Star::address(node, new);
                let router = &nodes.star.router;
                if self.count(kind).fired == 0 {
                    router.command("nft", MOVED)?;
                }
                router.command("nft", &format!("add element inet moved to {{ {address} }}"))?;
                // In half of the cases, it is without an address for a while.
                let add = self.random.below(2) == 0;
                let (what, number) = if add { ("delete", old) } else { ("add", new) };
                nodes.address(node, what, number)?;
                Undo::Moved { old, new, add }
            }
            Kind::ServerAddress => {
                let number = 2 + self.random.below(2) as u8;
                nodes.address(node, "delete", number)?;
                Undo::Address(number)
            }
            Kind::Rebind => {
                lasts = Duration::from_secs(1);
                self.mapping = 100 + (self.mapping - 99) % 50;
                map(nodes, self.mapping)?;
                let outside = translated(self.mapping);
                Undo::Table(self.count_packets(nodes, &format!("ip saddr {outside}"), "")?)
            }
            Kind::Mtu => {
                lasts = lasts.max(self.longest / 4);
                let mtu = [1_280, 1_400, 1_500][self.random.below(3) as usize];
                nodes.star.router.command("ip", &format!("link set {port} mtu {mtu}"))?;
                Undo::Mtu { failed: too_long(nodes)? }
            }
            Kind::Stop | Kind::StillClock => {
                if self.random.below(4) == 0 {
                    lasts *= 2;
                }
                let stopped = nodes.of(node).iter().all(Process::stop);
                if kind == Kind::Stop {
                    self.count(kind).evidence += u64::from(stopped);
                }
                Undo::Resume { since: Instant::now(), clock: kind == Kind::StillClock }
            }
            Kind::LinkDown => {
                nodes.star.disconnect(node)?;
                let host = &nodes.star.hosts[usize::from(node) - 1];
                let gone = host.command("ip", "link show wire")?.contains("NO-CARRIER");
                self.count(kind).evidence += u64::from(gone);
                Undo::Connect
            }
            Kind::BlackHole => {
                let either = [format!("iifname {port}"), format!("oifname {port}")];
                let rule = &either[self.random.below(2) as usize];
                Undo::Table(self.count_packets(nodes, rule, "drop")?)
            }
            Kind::Loss => {
                lasts = lasts.max(self.longest / 4);
                let percent = 1 + self.random.below(20);
                let rule = format!("oifname {port} numgen random mod 100 < {percent}");
                Undo::Table(self.count_packets(nodes, &rule, "drop")?)
            }
            Kind::Flood => {
                lasts = lasts.min(Duration::from_secs(5));
                let number = self.addresses[usize::from(node) - 1];
                let life = nodes.of(node).first().map(|process| process.life);
                let port = life.and_then(|life| nodes.checker().port(life)).unwrap_or(PORT);
                let target = (Star::address(node, number), port).into();
                let seed = self.random.next_u64();
                Undo::Flood(Flood::start(&nodes.star, ATTACKER, target, seed)?)
            }
        };
        println!("soak: {:9.3} s {name} of node {node} for {lasts:.1?}", now as f64 / 1e6);
        self.count(kind).fired += 1;
        let until = nodes.now() + lasts.as_micros() as u64;
        self.active.push(Active { kind, node, until, span, undo });
        Ok(())
    }

    /// Has the router count the packets of which `rule` is true, and treat them as `verdict` says.
    fn count_packets(&mut self, nodes: &Nodes, rule: &str, verdict: &str) -> Result<String, Error> {
        self.tables += 1;
        let table = format!("soak{}", self.tables);
        let rules = format!(
            "table inet {table} {{ chain forward {{ type filter hook forward priority 10; {rule} counter {verdict}; }}; }}"
        );
        nodes.star.router.command("nft", &rules)?;
        Ok(table)
    }

    /// Tells the oldest process of a node to leave.
    fn leave(&mut self, nodes: &mut Nodes, kind: Kind, node: u8, span: usize) {
        if nodes.of(node).is_empty() {
            return;
        }
        let mut process = nodes.of(node).remove(0);
        process.tell("leave");
        self.leaving.push(Leaving { kind, node, process, by: Instant::now() + LEAVES, span });
    }

    /// Ends what is due, or everything.
    pub fn end_due(&mut self, nodes: &mut Nodes, all: bool) -> Result<(), Failure> {
        let now = nodes.now();
        let mut at = 0;
        while at < self.active.len() {
            if all || self.active[at].until <= now {
                let active = self.active.swap_remove(at);
                self.end(nodes, active)?;
            } else {
                at += 1;
            }
        }
        let mut at = 0;
        while at < self.leaving.len() {
            let leaving = &mut self.leaving[at];
            let late = Instant::now() > leaving.by;
            if late || leaving.process.ends(Duration::ZERO) {
                let leaving = self.leaving.swap_remove(at);
                self.left(nodes, leaving, late)?;
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    fn left(&mut self, nodes: &mut Nodes, leaving: Leaving, late: bool) -> Result<(), Failure> {
        let Leaving { kind, node, process, span, .. } = leaving;
        let life = process.life;
        let status = process.kill();
        if late || !status.is_some_and(|status| status.success()) {
            let mut checker = nodes.checker();
            checker.on_killed(life);
            let key = Key { life, number: u32::MAX };
            checker.violate(key, &format!("the process did not leave in order: {status:?}"));
        }
        self.count(kind).evidence += u64::from(status.is_some_and(|status| status.success()));
        if kind == Kind::Restart {
            nodes.start(node)?;
        }
        let now = nodes.now();
        nodes.checker().on_fault_ended(now, span);
        Ok(())
    }

    fn end(&mut self, nodes: &mut Nodes, active: Active) -> Result<(), Failure> {
        let Active { kind, node, span, undo, .. } = active;
        let port = Star::port(node);
        let evidence = match undo {
            Undo::Start => {
                nodes.start(node)?;
                0
            }
            Undo::Leave => {
                self.leave(nodes, kind, node, span);
                return Ok(());
            }
            Undo::Moved { old, new, add } => {
                let (what, number) = if add { ("add", new) } else { ("delete", old) };
                nodes.address(node, what, number)?;
                self.addresses[usize::from(node) - 1] = new;
                0
            }
            Undo::Address(number) => {
                nodes.address(node, "add", number)?;
                1
            }
            Undo::Table(table) => {
                let counted = packets(nodes, &table)?;
                nodes.star.router.command("nft", &format!("delete table inet {table}"))?;
                counted
            }
            Undo::Mtu { failed } => {
                nodes.star.router.command("ip", &format!("link set {port} mtu {MTU}"))?;
                too_long(nodes)? - failed
            }
            Undo::Resume { since, clock } => {
                let behind = if clock { since.elapsed() } else { Duration::ZERO };
                for process in nodes.of(node) {
                    process.resume(behind)?;
                }
                0
            }
            Undo::Connect => {
                nodes.star.connect(node)?;
                0
            }
            Undo::Flood(flood) => flood.end(),
        };
        self.count(kind).evidence += evidence;
        let now = nodes.now();
        nodes.checker().on_fault_ended(now, span);
        Ok(())
    }

    /// Counts what can be counted only at the end, when no process runs any more.
    pub fn finish(&mut self, nodes: &Nodes) -> Result<(), Error> {
        self.count(Kind::StillClock).evidence = nodes.checker().changed("clock behind ms");
        let moved = self.count(Kind::ClientAddress);
        if moved.fired > 0 {
            moved.evidence = packets(nodes, "moved")?;
        }
        Ok(())
    }
}

/// Has the router let node [`TRANSLATED`] appear at its address `number`, and at no other.
pub fn map(nodes: &Nodes, number: u8) -> Result<(), Error> {
    let outside = translated(number);
    let inside = translated(2);
    let port = Star::port(TRANSLATED);
    // Replaced in one transaction. Connections are not tracked, so nothing remembers the old mapping.
    let rules = format!(
        "table ip nat; delete table ip nat; table ip nat {{ chain in {{ \
         type filter hook prerouting priority -300; \
         iifname {port} ip saddr {inside} ip saddr set {outside}; \
         ip daddr {outside} ip daddr set {inside}; }}; }}"
    );
    nodes.star.router.command("nft", &rules).map(drop)
}

/// The packets of the counter in a table of the router.
fn packets(nodes: &Nodes, table: &str) -> Result<u64, Error> {
    let rules = nodes.star.router.command("nft", &format!("list table inet {table}"))?;
    let count = rules.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
    Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
}

/// Packets that the router did not forward because they were too long.
fn too_long(nodes: &Nodes) -> Result<u64, Failure> {
    let text = nodes.star.router.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))?;
    let mut lines = text.lines().filter(|line| line.starts_with("Ip:"));
    let names = lines.next().unwrap_or("");
    let values = lines.next().unwrap_or("");
    let mut fields = names.split_whitespace().zip(values.split_whitespace());
    let failed = fields.find(|(name, _)| *name == "FragFails");
    Ok(failed.and_then(|(_, count)| count.parse().ok()).unwrap_or(0))
}

/// Why the run was abandoned.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Network(#[from] Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Usage(String),
    #[error("interrupted")]
    Interrupted,
    #[error("{0} violations, or things that were to happen and did not")]
    Violated(u64),
}
