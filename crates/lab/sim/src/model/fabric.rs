//! The traffic of the models packet by packet, in the simulator, for comparison.
//!
//! Each server of a Fat-tree sends to one in another pod, a packet in each slot with some probability. Links have no
//! propagation delay, so all packets arrive and leave at slot boundaries. Unlike in [`bouncing`](super::bouncing),
//! packets that diverge later share queues.

use crate::engine::Time;
use crate::fabric::{Clos, Link, Shape, TopologyError};
use crate::flow::NewFlow;
use crate::queue::{Depth, DropTail};
use crate::simulation::Simulation;
use crate::transport::open_loop::{ArrivalProcess, Config, OpenLoop};
use crate::workload::List;
use cloudburst_core::path::Order;
use cloudburst_core::rng::SplitMix64;

/// The number of hops between the servers' own ports and their destinations.
pub const HOPS: usize = 5;

const PACKET: u16 = 1_500;
const RATE: u64 = 10_000_000_000;
/// The transmission time of a packet.
const SLOT: Time = 1_200_000;

/// The queues of a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queues {
    /// The mean number of packets at a port over ports and time, including the one in service. It follows from waiting
    /// times by Little's law.
    pub mean: f64,
    /// The maximum length that a packet found, including itself, since the start.
    pub max: u64,
}

/// The queues of a simulated fabric.
#[derive(Debug)]
pub struct FabricRun {
    /// The queues of each hop, from the leaves on.
    pub hops: [Queues; HOPS],
    /// The simulation at the end of the measurement.
    pub simulation: Simulation,
}

/// Measures the queues of all hops over `slots` slots after `warm_up` slots. The queues are empty at first.
///
/// # Errors
///
/// A number of ports that no Fat-tree has.
pub fn queues(
    ports: u16,
    order: Order,
    load: f64,
    warm_up: u64,
    slots: u64,
    seed: u64,
) -> Result<FabricRun, TopologyError> {
    let shape = Shape::fat_tree(ports, 1);
    let link = Link { rate: RATE, delay: 0 };
    let queue = |_| DropTail::new(Depth::Unlimited).into();
    let fabric = Clos::new(shape, link, link, queue, queue)?;
    let hosts = shape.hosts();
    let to = between_pods(hosts, hosts / usize::from(ports), &mut SplitMix64::new(seed));
    let flow = |(source, destination): (usize, usize)| {
        let source = source as u16;
        let destination = destination as u16;
        // More packets than there are slots.
        let bytes = (warm_up + slots + 1) * u64::from(PACKET);
        (0, NewFlow { source, destination, transport: 0, bytes, tag: 0 })
    };
    let workload = List::new(to.into_iter().enumerate().map(flow).collect());
    let arrivals = ArrivalProcess::Bernoulli { slot: SLOT, load };
    let transport = OpenLoop::new(Config { packet: PACKET, arrivals, order });
    let mut simulation =
        Simulation::new(fabric, vec![Box::new(transport)], Box::new(workload), seed);
    simulation.run(warm_up * SLOT);
    let before = waits(&simulation);
    simulation.run((warm_up + slots) * SLOT);
    let after = waits(&simulation);
    let mut hops = [Queues::default(); HOPS];
    for (hop, queues) in hops.iter_mut().enumerate() {
        let waited = (after[hop].0 - before[hop].0) as f64;
        queues.mean = waited / (slots * SLOT) as f64 / hosts as f64 + load;
        queues.max = after[hop].1 / SLOT + 1;
    }
    Ok(FabricRun { hops, simulation })
}

/// A permutation of hosts that maps each to one in another pod.
fn between_pods(hosts: usize, pod: usize, rng: &mut SplitMix64) -> Vec<usize> {
    let mut to: Vec<usize> = (0..hosts).collect();
    while let Some(own) = (0..hosts).find(|&host| to[host] / pod == host / pod) {
        to.swap(own, rng.below(hosts as u64) as usize);
    }
    to
}

/// The sum and the maximum of waiting times at the ports of each hop.
fn waits(simulation: &Simulation) -> [(Time, Time); HOPS] {
    let fabric = simulation.network().fabric();
    core::array::from_fn(|hop| {
        let stats = fabric.ports()[fabric.ports_of_hop(hop + 1)].iter().map(|port| port.stats());
        let longest = stats.clone().map(|stats| stats.longest_wait).max().unwrap_or(0);
        (stats.map(|stats| stats.waited).sum(), longest)
    })
}
