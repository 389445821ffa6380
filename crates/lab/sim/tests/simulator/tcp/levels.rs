//! QJump's levels.

use crate::common::GBPS;
use cloudburst_sim::engine::{MS, NS, US};
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::queue::{Classes, Depth, Limits, Strict};
use cloudburst_sim::transport::Transport;
use cloudburst_sim::transport::tcp::{Config, Tagging, Tcp, Throttle};
use cloudburst_sim::workload::List;
use cloudburst_sim::{NewFlow, Simulation};

#[test]
fn throttled_packets_are_never_late_whatever_else_is_sent() {
    const HOSTS: u16 = 16;
    let level = |factor, class| -> Box<dyn Transport> {
        let throttle =
            Throttle { hosts: HOSTS.into(), packet: 1_500, rate: 10 * GBPS, delay: 4 * US, factor };
        Box::new(Tcp::new(Config {
            throttle: Some(throttle),
            tagging: Tagging::Fixed(class),
            ..Config::default()
        }))
    };
    let link = Link { rate: 10 * GBPS, delay: 2 * US };
    let limits = Limits::new(Depth::Packets(100));
    let queue = |link| Strict::new(Classes::new(link, &[limits; 2])).into();
    let nic = |link| Strict::new(Classes::new(link, &[Limits::NONE; 2])).into();
    let clos = Clos::new(Shape::one_switch(HOSTS), link, link, nic, queue).unwrap();
    let mut flows = Vec::new();
    let flow = |source, destination, transport, bytes| NewFlow {
        source,
        destination,
        transport,
        bytes,
        tag: 0,
    };
    for host in 1..HOSTS {
        flows.push((0, flow(host, (host + 1) % HOSTS, 1, 1 << 30)));
        flows.push((0, flow(host, 0, 1, 1 << 30)));
        for k in 0..20 {
            flows.push((MS + k * 100 * US + u64::from(host) * 70 * NS, flow(host, 0, 0, 1_460)));
        }
    }
    let transports = vec![level(1, 0), level(HOSTS.into(), 1)];
    let mut simulation = Simulation::new(clos, transports, Box::new(List::new(flows)), 1);
    simulation.run(10 * MS);
    // A packet waits for at most one background packet each at its host and at the switch, where it also waits for
    // one packet of each other host.
    let bound = (1 + 1 + 1 + u64::from(HOSTS)) * 1_200 * NS + 4 * US;
    let flows = simulation.network().flows().as_slice();
    let messages: Vec<_> = flows.iter().filter(|flow| flow.spec.transport == 0).collect();
    assert_eq!(messages.len(), 300);
    for flow in messages {
        assert!(flow.delivered.unwrap() - flow.begun <= bound, "{flow:?}");
        assert_eq!(flow.sent, 1);
    }
    // Meanwhile the background fills the receiver's link and loses packets.
    let ports = simulation.network().fabric().ports();
    let port = &ports[simulation.network().fabric().ports_of_hop(1).start];
    assert!(port.stats().dropped > 0);
    assert!(port.stats().bytes > 8 * 1_250_000, "{:?}", port.stats());
}
