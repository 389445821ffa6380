//! Long flows.

use super::{bottleneck, fabric, simulation};
use crate::common::flow;
use cloudburst_sim::Simulation;
use cloudburst_sim::engine::{MS, SECOND, US};
use cloudburst_sim::queue::{Depth, DropTail};
use cloudburst_sim::transport::tcp::{Config, Tcp};
use cloudburst_sim::workload::List;

const FOREVER: u64 = 1 << 40;

#[test]
fn one_dctcp_flow_fills_the_link_and_keeps_the_queue_around_the_threshold() {
    let queue = || DropTail::with_ecn(Depth::Packets(250), Depth::Packets(65)).into();
    let flows = [(0, 1, FOREVER)];
    let mut simulation = simulation(bottleneck(2, queue), Tcp::new(Config::dctcp()), &flows);
    simulation.run(100 * MS);
    let port = simulation.network().fabric().ports_of_hop(1).end - 1;
    let before = *simulation.network().fabric().ports()[port].stats();
    simulation.run(SECOND);
    let stats = *simulation.network().fabric().ports()[port].stats();
    let bytes = stats.bytes - before.bytes;
    let queue = (stats.waited - before.waited) as f64 / (900 * MS) as f64;
    assert!(bytes > 112_400_000, "{bytes} of 112,500,000");
    assert!((55.0..66.0).contains(&queue), "{queue} packets");
    assert_eq!(stats.dropped, 0);
}

#[test]
fn two_flows_share_a_link() {
    let queue = || DropTail::with_ecn(Depth::Packets(250), Depth::Packets(65)).into();
    let flows = [(0, 2, FOREVER), (1, 2, FOREVER)];
    let mut simulation = simulation(bottleneck(3, queue), Tcp::new(Config::dctcp()), &flows);
    simulation.run(3 * SECOND);
    let received = [0, 1].map(|flow| simulation.network().flows()[flow].received as f64);
    let share = received[0] / (received[0] + received[1]);
    assert!((0.45..0.55).contains(&share), "{share}");
}

#[test]
fn tcp_fills_a_link_with_a_small_queue() {
    let queue = || DropTail::new(Depth::Packets(50)).into();
    let mut simulation =
        simulation(bottleneck(2, queue), Tcp::new(Config::default()), &[(0, 1, FOREVER)]);
    simulation.run(SECOND);
    let flow = simulation.network().flows()[0];
    // 1 Gb/s less headers is 121.67 MB/s.
    assert!(flow.received > 119_000_000, "{}", flow.received);
    // Fast recovery retransmits only lost packets.
    let port = simulation.network().fabric().ports_of_hop(1).end - 1;
    let dropped = simulation.network().fabric().ports()[port].stats().dropped;
    let arrived = flow.received.div_ceil(1_460) as u32;
    assert!(dropped > 0);
    assert!(u64::from(flow.sent - arrived) < dropped + 100);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let hash = |seed| {
        let flows =
            (0..100).map(|k| flow(u64::from(k) * US, (k % 144, (k * 5 + 1) % 144, 100_000)));
        let queue = |_| DropTail::with_ecn(Depth::Packets(20), Depth::Packets(10)).into();
        let transport = Box::new(Tcp::new(Config::dctcp()));
        let workload = Box::new(List::new(flows.collect()));
        let mut simulation = Simulation::new(fabric(queue), vec![transport], workload, seed);
        simulation.run(SECOND);
        simulation.network().hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}
