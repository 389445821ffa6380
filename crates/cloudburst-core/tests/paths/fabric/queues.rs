//! Queues in a Fat-tree, in the model of Appendix B of the DRB paper: slotted time, packets of one
//! length, unlimited output queues, and one packet per slot from each port.

use cloudburst_core::path::{Order, Sequence};
use cloudburst_core::rng::SplitMix64;
use std::collections::VecDeque;

/// TOR to aggregation switch, to core, to aggregation switch, to TOR, to server.
pub const HOPS: usize = 5;

/// The hop at which packets leave the core switches.
pub const CORE: usize = 2;

/// The q of Appendix B at the ports of a hop: including the arrivals of a slot, and before the
/// packet of the slot is sent. The mean is over slots and ports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hop {
    pub mean: f64,
    pub max: usize,
}

/// The port by which a packet leaves at each hop.
type Route = [u16; HOPS];

/// The traffic of the servers.
pub struct Traffic {
    n: usize,
    /// A permutation of the servers in which all destinations are in other pods.
    destinations: Vec<usize>,
    /// The core switches that each server visits in turn.
    sequences: Vec<Sequence>,
    rng: SplitMix64,
}

impl Traffic {
    /// In a Fat-tree of `n` ports. With `start`, all servers begin there; otherwise each begins at
    /// a random place.
    pub fn new(n: usize, order: Order, start: Option<u64>, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let servers = n * n * n / 4;
        let pod = n * n / 4;
        let mut destinations: Vec<usize> = (0..servers).collect();
        while let Some(own) = (0..servers).find(|&i| destinations[i] / pod == i / pod) {
            destinations.swap(own, rng.below(servers as u64) as usize);
        }
        let start_of = |_| start.unwrap_or_else(|| rng.next_u64());
        let starts: Vec<u64> = (0..servers).map(start_of).collect();
        let sequence = |seed| Sequence::new(order, n * n / 4, seed).unwrap();
        Self { n, destinations, sequences: starts.into_iter().map(sequence).collect(), rng }
    }

    /// The next packet of server `server`.
    fn packet(&mut self, server: usize) -> Route {
        let half = self.n / 2;
        let core = self.sequences[server].next_path();
        let to = self.destinations[server];
        let pod_of = |server: usize| server / (half * half);
        [
            server / half * half + core / half,
            pod_of(server) * half * half + core,
            core * self.n + pod_of(to),
            (pod_of(to) * half + core / half) * half + to / half % half,
            to,
        ]
        .map(|port| port as u16)
    }

    /// The queues over `slots` slots, initially empty. In each slot, each server sends with
    /// probability `load`.
    pub fn queues(&mut self, load: f64, slots: usize) -> [Hop; HOPS] {
        let servers = self.destinations.len();
        // Every hop has as many ports as there are servers.
        let mut queues = [(); HOPS].map(|()| vec![VecDeque::<Route>::new(); servers]);
        let mut hops = [Hop::default(); HOPS];
        for _ in 0..slots {
            // The last hop first, so that a packet moves one hop per slot.
            for hop in (0..HOPS).rev() {
                for port in 0..servers {
                    let sent = queues[hop][port].pop_front();
                    if let (Some(route), Some(next)) = (sent, queues.get_mut(hop + 1)) {
                        next[usize::from(route[hop + 1])].push_back(route);
                    }
                }
            }
            for server in 0..servers {
                if (self.rng.next_u64() as f64) < load * 2_f64.powi(64) {
                    let route = self.packet(server);
                    queues[0][usize::from(route[0])].push_back(route);
                }
            }
            for (hop, queues) in hops.iter_mut().zip(&queues) {
                let lengths = queues.iter().map(VecDeque::len);
                hop.max = hop.max.max(lengths.clone().max().unwrap_or(0));
                hop.mean += lengths.sum::<usize>() as f64 / (servers * slots) as f64;
            }
        }
        hops
    }
}
