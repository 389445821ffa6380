//! TCP and its relatives, and the queues that they need.

mod bulk;
mod idle;
mod levels;
mod loss;
mod mptcp;
mod packets;
mod queues;

use crate::common::{self, GBPS, finish, flow, unlimited};
use cloudburst_sim::engine::US;
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::queue::Discipline;
use cloudburst_sim::transport::Transport;
use cloudburst_sim::transport::tcp::{Config, Tcp};
use cloudburst_sim::{Flow, Simulation};

/// The fabric of V-D. The ports of hosts hold any number of packets.
fn fabric(queue: impl FnMut(Link) -> Discipline) -> Clos {
    common::fabric(unlimited, queue)
}

/// Hosts at one switch, 2 us per link.
fn switch(hosts: u16, rate: u64, queue: impl FnMut(Link) -> Discipline) -> Clos {
    let link = Link { rate, delay: 2 * US };
    Clos::new(Shape::one_switch(hosts), link, link, unlimited, queue).unwrap()
}

/// One switch with a slower link to the last host.
fn bottleneck(hosts: u16, queue: impl Fn() -> Discipline) -> Clos {
    let mut clos = switch(hosts, 10 * GBPS, |_| queue());
    let port = clos.ports_of_hop(1).end - 1;
    clos.set_link(port, Link { rate: GBPS, delay: 2 * US }).unwrap();
    clos
}

/// A simulation of flows, given as source, destination and bytes, that all begin at time 0.
fn simulation(
    clos: Clos,
    transport: impl Transport + 'static,
    flows: &[(u16, u16, u64)],
) -> Simulation {
    common::simulation(clos, transport, flows.iter().map(|&ends| flow(0, ends)))
}

fn run(clos: Clos, config: Config, flows: &[(u16, u16, u64)]) -> Vec<Flow> {
    finish(&mut simulation(clos, Tcp::new(config), flows))
}
