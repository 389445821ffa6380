//! Fabrics, flows and simulations for all transports.

use cloudburst_sim::engine::{Time, US};
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::queue::{Depth, Discipline, DropTail};
use cloudburst_sim::transport::Transport;
use cloudburst_sim::workload::List;
use cloudburst_sim::{Flow, NewFlow, Simulation};

pub(crate) const GBPS: u64 = 1_000_000_000;

/// The 144 hosts of section V-D of the Cloudburst paper: 16 below each of 9 leaves, and 4 spines.
pub(crate) const SHAPE: Shape = Shape::leaf_spine(16, 9, 4);

pub(crate) fn unlimited(_: Link) -> Discipline {
    DropTail::new(Depth::Unlimited).into()
}

/// The fabric of V-D: hosts at 10 Gb/s, spines at 40 Gb/s, 2 us per link.
pub(crate) fn fabric(
    nic: impl FnMut(Link) -> Discipline,
    queue: impl FnMut(Link) -> Discipline,
) -> Clos {
    let edge = Link { rate: 10 * GBPS, delay: 2 * US };
    let core = Link { rate: 40 * GBPS, delay: 2 * US };
    Clos::new(SHAPE, edge, core, nic, queue).unwrap()
}

/// A flow of the first transport.
pub(crate) fn flow(at: Time, (source, destination, bytes): (u16, u16, u64)) -> (Time, NewFlow) {
    (at, NewFlow { source, destination, transport: 0, bytes, tag: 0 })
}

/// A simulation of one transport.
pub(crate) fn simulation(
    clos: Clos,
    transport: impl Transport + 'static,
    flows: impl IntoIterator<Item = (Time, NewFlow)>,
) -> Simulation {
    let workload = List::new(flows.into_iter().collect());
    Simulation::new(clos, vec![Box::new(transport)], Box::new(workload), 1)
}

/// Runs until no event is left, and returns all flows.
pub(crate) fn finish(simulation: &mut Simulation) -> Vec<Flow> {
    simulation.run(Time::MAX / 2);
    assert_eq!(simulation.network().under_way(), 0);
    simulation.network().flows().as_slice().to_vec()
}
