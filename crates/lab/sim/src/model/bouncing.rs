//! Queues at the first three hops of a Fat-tree under permutation traffic: Appendix B of the DRB paper
//! (*Per-packet Load-balanced, Low-Latency Routing for Clos-based Data Center Networks*, CoNEXT 2013).
//!
//! In each slot, each server generates a packet with probability rho and sends it on the next path of its [`Sequence`],
//! which starts at a random place. This corresponds to the appendix: a port of the first hop gets each packet with
//! probability 2 rho / n (RB), n / 2 successive packets of every n^2 / 4 (RRB), or one of every n / 2 (DRB). Ports of
//! later hops get each packet with probability 4 rho / n^2, or one of every n^2 / 4.
//!
//! The queues form a tree whose root is the measured queue, and they hold only the packets that pass the root:
//!
//! - the first hop has n / 2 servers;
//! - the second hop has n / 2 queues of the first hop, with n / 2 servers each;
//! - the third hop has n queues of the second, among which n^2 / 4 servers are spread at random.
//!
//! Unlike in a fabric, packets that diverge later therefore do not delay each other, and RRB and DRB are the same at
//! the second and third hop. The trees of all paths are run side by side with the same servers,
//! which gives n / 2 or n^2 / 4 samples a slot.

use super::Lengths;
use cloudburst_core::path::{Order, OrderError, Sequence, Shape};
use cloudburst_core::rng::SplitMix64;

/// One of the first three hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    /// From a leaf to an aggregation switch.
    First,
    /// From an aggregation switch to a core.
    Second,
    /// From a core to an aggregation switch of the destination's pod.
    Third,
}

impl Hop {
    /// All hops, in the order in which packets take them.
    pub const ALL: [Self; 3] = [Self::First, Self::Second, Self::Third];
}

/// The path orders of random bouncing, round robin and digit reversal in a Fat-tree of switches with `ports`
/// ports.
///
/// # Errors
///
/// A number of ports that no Fat-tree has.
pub fn orders(ports: u16) -> Result<[Order; 3], OrderError> {
    Ok([Order::Random, Order::RoundRobin, Order::DigitReversal(Shape::fat_tree(ports)?)])
}

/// The queues of one hop.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The order in which packets visit the paths.
    pub order: Order,
    /// The number of ports of each switch: n.
    pub ports: u16,
    /// The load of each server in packets per slot: rho.
    pub load: f64,
    /// The hop of the queues.
    pub hop: Hop,
}

/// The runs over which queues are measured, and their lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Slots of each run that are discarded; queues are empty at first.
    pub warm_up: u64,
    /// Measured slots of each run.
    pub slots: u64,
    /// Runs, each with new random starting places of the servers' sequences.
    pub runs: u64,
    /// The seed of all runs.
    pub seed: u64,
}

impl Model {
    /// Runs the queues.
    ///
    /// # Errors
    ///
    /// An order that is for another number of paths.
    pub fn run(&self, sampling: Sampling) -> Result<Lengths, OrderError> {
        let mut rng = SplitMix64::new(sampling.seed);
        let mut lengths = Lengths::default();
        for _ in 0..sampling.runs {
            let mut trees = Trees::new(self, &mut rng)?;
            for _ in 0..sampling.warm_up {
                trees.step(&mut rng);
            }
            for _ in 0..sampling.slots {
                trees.step(&mut rng);
                for &length in &trees.lengths[..trees.roots] {
                    lengths.record(length);
                }
            }
        }
        Ok(lengths)
    }

    /// The sampling of queues in equilibrium: about `slots` slots in which all servers of a pod send, or the same
    /// amount of work. Random bouncing has no equilibrium at load 1.
    pub fn equilibrium(&self, slots: u64, seed: u64) -> Sampling {
        let half = u64::from(self.ports) / 2;
        // The first hop has fewer servers.
        let slots = if self.hop == Hop::First { slots * half } else { slots };
        if self.order == Order::Random {
            // Such a queue remembers about 1 / (1 - rho)^2 slots.
            let warm_up = 10.0 / ((1.0 - self.load) * (1.0 - self.load));
            return Sampling { warm_up: warm_up as u64, slots, runs: 1, seed };
        }
        // Successive cycles through the paths in one run hardly differ, so there are many short runs.
        let round = half * half;
        let runs = (slots / (4 * round)).max(1);
        Sampling { warm_up: 3 * round + 100, slots: round, runs, seed }
    }
}

/// No queue.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Server {
    paths: Sequence,
    /// The queue for path 0.
    first: u32,
}

/// The trees of queues of a hop, one for each uplink or path.
#[derive(Debug)]
struct Trees {
    servers: Vec<Server>,
    /// A server sends in a slot if 53 random bits are below this threshold.
    threshold: u64,
    /// The number of paths that share a queue.
    shared_by: usize,
    /// The lengths of all queues. The roots come first.
    lengths: Vec<u32>,
    roots: usize,
    /// The queue after each queue.
    next: Vec<u32>,
    /// Queues that are not empty.
    busy: Vec<u32>,
    served: Vec<u32>,
}

impl Trees {
    fn new(model: &Model, rng: &mut SplitMix64) -> Result<Self, OrderError> {
        let half = usize::from(model.ports) / 2;
        let paths = half * half;
        let roots = if model.hop == Hop::First { half } else { paths };
        let mut next = vec![NONE; roots];
        // Adds a queue for each path in front of those from `to` on. Returns the first.
        let mut before = |to: usize| {
            let first = next.len();
            next.extend((to..to + paths).map(|queue| queue as u32));
            first
        };
        let racks: Vec<usize> = match model.hop {
            Hop::First => vec![0],
            Hop::Second => (0..half).map(|_| before(0)).collect(),
            Hop::Third => {
                let pods: Vec<usize> = (0..model.ports).map(|_| before(0)).collect();
                let above = pods.into_iter().flat_map(|pod| core::iter::repeat_n(pod, half));
                above.map(before).collect()
            }
        };
        let servers = if model.hop == Hop::First { half } else { paths };
        let servers = (0..servers).map(|server| {
            let rack = match model.hop {
                Hop::First | Hop::Second => server / half,
                Hop::Third => rng.below(racks.len() as u64) as usize,
            };
            let paths = Sequence::new(model.order, paths, rng.next_u64())?;
            Ok(Server { paths, first: racks[rack] as u32 })
        });
        Ok(Self {
            servers: servers.collect::<Result<_, OrderError>>()?,
            threshold: (model.load * (1_u64 << 53) as f64) as u64,
            shared_by: if model.hop == Hop::First { half } else { 1 },
            lengths: vec![0; next.len()],
            roots,
            next,
            busy: Vec::new(),
            served: Vec::new(),
        })
    }

    /// Advances to the next slot: each queue sends a packet, then packets arrive.
    fn step(&mut self, rng: &mut SplitMix64) {
        core::mem::swap(&mut self.busy, &mut self.served);
        for k in 0..self.served.len() {
            let queue = self.served[k];
            self.lengths[queue as usize] -= 1;
            if self.lengths[queue as usize] > 0 {
                self.busy.push(queue);
            }
            let next = self.next[queue as usize];
            if next != NONE {
                self.put(next);
            }
        }
        self.served.clear();
        for k in 0..self.servers.len() {
            if rng.next_u64() >> 11 < self.threshold {
                let server = &mut self.servers[k];
                let queue = server.first + (server.paths.next_path() / self.shared_by) as u32;
                self.put(queue);
            }
        }
    }

    fn put(&mut self, queue: u32) {
        let length = &mut self.lengths[queue as usize];
        if *length == 0 {
            self.busy.push(queue);
        }
        *length += 1;
    }
}
