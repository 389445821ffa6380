//! One trial: four senders, their messages, the switches' counters.

use crate::results::RowResults;
use cloudburst_bench_programs::rig::{Failure, PORT, Rig, Sink};
use cloudburst_core::rng::SplitMix64;
use cloudburst_net::{Config, Endpoint, PathMap, Receipt, SendError, Tuning};
use cloudburst_testbed::Node;
use core::fmt;
use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread::{self, Scope, ScopedJoinHandle};

/// The number of hosts of leaf 1; those of leaf 2 follow.
const SENDERS: u16 = 4;
/// Source ports of a hashed map.
const PORTS: u16 = 16;
/// Bytes that each sender sends first: they open the session, use all paths, and train the length of
/// trains, with 700 packets for each of four paths.
const WARM_UP: usize = 4_000_000;
/// The bits per second configured at senders, for trains up to the limit of a system call.
const CAPACITY: u64 = 10_000_000_000;

/// The load by the senders.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) kind: Kind,
    /// Bytes of a message.
    pub(crate) bytes: usize,
    /// Messages of each sender in a trial.
    pub(crate) messages: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Each sends to a different host, one message after the other.
    Pairs,
    /// All send a message to one host at once, and the next when all have arrived.
    Incast,
}

/// How packets are mapped to paths.
#[derive(Clone, Copy)]
pub(crate) enum Map {
    /// 16 source ports.
    Hashed,
    /// An address for each spine.
    Explicit,
}

/// Messages with one setting of `Tuning::train`.
pub(crate) struct Trial<'a, 'b> {
    pub(crate) rig: &'a Rig<'b>,
    pub(crate) load: Load,
    pub(crate) map: Map,
    pub(crate) train: usize,
}

struct Sender {
    endpoint: Endpoint,
    to: SocketAddr,
}

type Sent = Vec<Result<Receipt, SendError>>;

/// Returns the receivers.
pub(crate) fn sinks(rig: &Rig) -> Result<Vec<Sink>, Failure> {
    (SENDERS + 1..=2 * SENDERS)
        .map(|host| rig.sink(host, rig.fabric.host(host)?.v4().into()))
        .collect()
}

/// Restricts the senders' hosts to as many source ports as one endpoint uses.
pub(crate) fn fix_source_ports(rig: &Rig, rng: &mut SplitMix64) -> Result<(), Failure> {
    const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
    let first = 20_000 + PORTS * rng.below(1_000) as u16;
    let range = format!("{first} {}", first + PORTS - 1);
    for host in 1..=SENDERS {
        let written = rig.fabric.host(host)?.run(|| std::fs::write(RANGE, &range))?;
        written.map_err(Failure::io("cannot set the range of source ports"))?;
    }
    Ok(())
}

impl Trial<'_, '_> {
    /// Sends messages whose times are measured, and twice as many while it observes the queues:
    /// observing takes much processor time.
    pub(crate) fn take(&self, results: &mut RowResults) -> Result<(), Failure> {
        let senders: Vec<_> =
            (1..=SENDERS).map(|host| self.sender(host)).collect::<Result<_, _>>()?;
        let barrier = Barrier::new(senders.len());
        let warm_up = WARM_UP / self.load.bytes;
        thread::scope(|scope| finish(self.send(scope, &senders, &barrier, warm_up)));
        let before = self.dropped()?;
        let load = self.load.messages;
        let sent = thread::scope(|scope| finish(self.send(scope, &senders, &barrier, load)));
        sent.iter().for_each(|sent| results.on_message(sent.as_ref().ok()));
        results.on_dropped(self.dropped()? - before);
        thread::scope(|scope| {
            let sending = self.send(scope, &senders, &barrier, 2 * load);
            while !sending.iter().all(ScopedJoinHandle::is_finished) {
                for leaf in [1, 2] {
                    results.on_seen(&self.rig.fabric.ports_of(Node::Leaf(leaf))?);
                }
            }
            Ok(())
        })
    }

    fn sender(&self, host: u16) -> Result<Sender, Failure> {
        let to = self.rig.fabric.host(match self.load.kind {
            Kind::Pairs => host + SENDERS,
            Kind::Incast => SENDERS + 1,
        })?;
        let (paths, to) = match self.map {
            Map::Hashed => (PathMap::ecmp(PORTS), to.v4()),
            Map::Explicit => {
                let ids = to.path_addresses().iter().map(ToString::to_string).collect::<Vec<_>>();
                let map = format!("xpath:{}", ids.join(","));
                let paths = map.parse().map_err(|source| Failure::Map { map, source })?;
                (paths, to.path_address(1)?)
            }
        };
        let from = self.rig.fabric.host(host)?;
        let config = Config {
            capacity: CAPACITY.into(),
            tuning: Tuning { train: self.train, ..Tuning::default() },
            ..Config::default()
        };
        let builder = self.rig.builder(from.v4().into(), 0).config(config).paths(paths);
        let endpoint = from.run(|| builder.build())??;
        Ok(Sender { endpoint, to: (to, PORT).into() })
    }

    /// Starts all senders, each with the given number of messages.
    fn send<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        senders: &'scope [Sender],
        barrier: &'scope Barrier,
        messages: usize,
    ) -> Vec<ScopedJoinHandle<'scope, Sent>> {
        let Load { kind, bytes, .. } = self.load;
        let start = |sender: &'scope Sender| {
            scope.spawn(move || {
                let send = |_| {
                    if kind == Kind::Incast {
                        barrier.wait();
                    }
                    sender.endpoint.send(sender.to, vec![7; bytes]).wait()
                };
                (0..messages).map(send).collect()
            })
        };
        senders.iter().map(start).collect()
    }

    /// Returns the packets dropped by the switches' tiny queues.
    fn dropped(&self) -> Result<u64, Failure> {
        self.rig.go_on()?;
        Ok(self.rig.switches()?.iter().map(|port| port.tiny.dropped).sum())
    }
}

fn finish(sending: Vec<ScopedJoinHandle<'_, Sent>>) -> Sent {
    let done = sending.into_iter().map(ScopedJoinHandle::join);
    done.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Pairs => "pairs",
            Kind::Incast => "incast",
        };
        write!(f, "{kind}, {} bytes", self.bytes)
    }
}

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hashed => "`ecmp:16`",
            Self::Explicit => "`xpath`",
        })
    }
}
