//! Cloudburst: the protocol's own endpoints, and the burst model.

mod classes;
mod engine;
mod idle;
mod model;
mod sessions;
mod traces;
mod trimming;

use crate::common::{self, SHAPE, flow, unlimited};
use cloudburst_sim::engine::{MS, Time, US};
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::queue::{Depth, DropTail};
use cloudburst_sim::transport::Transport;
use cloudburst_sim::{NewFlow, Simulation};

/// The start of flows, when the sessions are open and the network is idle.
const BEGIN: Time = 50 * MS;

/// The fabric of V-D. Switches have queues of this depth.
fn fabric(depth: Depth) -> Clos {
    common::fabric(unlimited, |_| DropTail::new(depth).into())
}

/// Flows of source, destination and bytes that begin at [`BEGIN`].
fn flows(flows: &[(u16, u16, u64)]) -> impl Iterator<Item = (Time, NewFlow)> {
    flows.iter().map(|&ends| flow(BEGIN, ends))
}

/// Simulates these flows for 20 s and returns the simulation.
fn run(transport: impl Transport + 'static, depth: Depth, list: &[(u16, u16, u64)]) -> Simulation {
    let mut simulation = common::simulation(fabric(depth), transport, flows(list));
    simulation.run(BEGIN + 20_000 * MS);
    simulation
}
