//! MPTCP.

use super::{bottleneck, fabric, simulation};
use crate::common::{GBPS, finish, flow, unlimited};
use cloudburst_core::rng::SplitMix64;
use cloudburst_sim::Simulation;
use cloudburst_sim::engine::{Handle, MS, NS, Packets, SECOND, Time, US};
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::queue::{Depth, DropTail, Next, Queue};
use cloudburst_sim::transport::Transport;
use cloudburst_sim::transport::tcp::{Config, Mptcp, Tcp};
use cloudburst_sim::workload::List;
use std::collections::VecDeque;

const FOREVER: u64 = 1 << 40;

#[test]
fn an_idle_message_takes_the_time_of_its_packets() {
    // One subflow is TCP: see `idle`. Two have initial windows of 20 packets, which take 24 us to be sent;
    // the first ACK comes after 19.08 us. So the host is never idle: 60 * 1.2 + 9.8 us.
    for (subflows, delivered) in [(1, 88_880), (2, 81_800), (4, 81_800), (8, 81_800)] {
        let transport = Mptcp::new(Config::default(), subflows);
        let flows = [(0, 143, 60 * 1_460)];
        let mut simulation = simulation(fabric(unlimited), transport, &flows);
        let flow = finish(&mut simulation)[0];
        assert_eq!(flow.delivered, Some(delivered * NS), "{subflows}");
        assert_eq!(flow.acknowledged, Some((delivered + 8_080) * NS));
        assert_eq!((flow.sent, flow.received), (60, 60 * 1_460));
    }
}

/// Two leaves of two hosts at 10 Gb/s, and two spines at 1 Gb/s.
fn two_paths() -> Clos {
    let edge = Link { rate: 10 * GBPS, delay: 2 * US };
    let core = Link { rate: GBPS, delay: 2 * US };
    let queue = |_| DropTail::new(Depth::Packets(100)).into();
    Clos::new(Shape::leaf_spine(2, 2, 2), edge, core, unlimited, queue).unwrap()
}

#[test]
fn subflows_fill_all_paths() {
    let transport = Mptcp::new(Config::default(), 2);
    let mut simulation = simulation(two_paths(), transport, &[(0, 2, FOREVER)]);
    simulation.run(SECOND);
    let received = simulation.network().flows()[0].received;
    // 2 Gb/s less headers are 243 MB/s.
    assert!(received > 235_000_000, "{received}");
}

/// A FIFO queue that drops one packet in 5,000 at random.
#[derive(Debug)]
struct Lossy(VecDeque<Handle>, SplitMix64);

impl Queue for Lossy {
    fn enqueue(&mut self, _: Time, packet: Handle, _: &mut Packets) -> Option<Handle> {
        if self.1.below(5_000) == 0 {
            return Some(packet);
        }
        self.0.push_back(packet);
        None
    }

    fn dequeue(&mut self, _: Time, _: &mut Packets) -> Next {
        self.0.pop_front().map_or(Next::Idle, Next::Send)
    }
}

#[test]
fn subflows_together_are_as_fast_as_one_flow_with_the_same_loss() {
    // sqrt(2 / p) = 100 packets per round trip of 0.4 ms are 3 Gb/s, far below the link's rate.
    let link = Link { rate: 10 * GBPS, delay: 100 * US };
    let lossy = |_| Lossy(VecDeque::new(), SplitMix64::new(7)).into();
    let received = |transport: Box<dyn Transport>| {
        let clos = Clos::new(Shape::one_switch(2), link, link, unlimited, lossy).unwrap();
        let workload = Box::new(List::new(vec![flow(0, (0, 1, FOREVER))]));
        let mut simulation = Simulation::new(clos, vec![transport], workload, 1);
        simulation.run(3 * SECOND);
        simulation.network().flows()[0].received as f64
    };
    let single = received(Box::new(Tcp::new(Config::default())));
    let model = 3.0 / 402.464e-6 * 100.0 * 1_460.0;
    assert!((0.9..1.3).contains(&(single / model)), "{}", single / model);
    for subflows in [1, 2, 4] {
        let ratio = received(Box::new(Mptcp::new(Config::default(), subflows))) / single;
        // Without coupling, the ratio would be the number of subflows. With it, the ratio is 1 if all windows are
        // equal. It is slightly more because windows fluctuate and alpha depends on the largest.
        assert!((0.95..1.3).contains(&ratio), "{subflows}: {ratio}");
    }
}

#[test]
fn messages_complete_despite_losses_and_with_small_windows() {
    let flows: Vec<_> = (0..20).map(|source| (source, 20, 50_000)).collect();
    for window in [1_460, 20_000, 1 << 20] {
        let queue = || DropTail::new(Depth::Packets(6)).into();
        let config = Config { window, rto_min: MS, rto_initial: MS, ..Config::default() };
        let transport = Mptcp::new(config, 4);
        let mut simulation = simulation(bottleneck(21, queue), transport, &flows);
        for flow in finish(&mut simulation) {
            assert!(flow.delivered.is_some() && flow.acknowledged.is_some());
            assert_eq!(flow.received, 50_000);
        }
    }
}
