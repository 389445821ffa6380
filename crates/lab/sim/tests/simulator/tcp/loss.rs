//! Loss: every flow completes.

use super::{bottleneck, fabric, run, simulation, switch};
use crate::common::{GBPS, finish, flow, unlimited};
use cloudburst_core::path::Order;
use cloudburst_core::rng::SplitMix64;
use cloudburst_sim::Simulation;
use cloudburst_sim::engine::{Handle, MS, NS, Packets, SECOND, Time, US};
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::queue::{Classes, Depth, Discipline, DropTail, Limits, Next, Queue, Strict};
use cloudburst_sim::transport::Transport;
use cloudburst_sim::transport::tcp::{
    Config, LoadBalancing, Mptcp, Reaction, Tagging, Tcp, Throttle,
};
use cloudburst_sim::workload::List;
use std::collections::VecDeque;

/// A FIFO queue that drops the packets with these numbers, counted from 0 in the order of arrival. The last
/// field is the number of the next packet.
#[derive(Debug)]
struct Drops(VecDeque<Handle>, Vec<usize>, usize);

impl Queue for Drops {
    fn enqueue(&mut self, _: Time, packet: Handle, _: &mut Packets) -> Option<Handle> {
        let number = self.2;
        self.2 += 1;
        if self.1.contains(&number) {
            return Some(packet);
        }
        self.0.push_back(packet);
        None
    }

    fn dequeue(&mut self, _: Time, _: &mut Packets) -> Next {
        self.0.pop_front().map_or(Next::Idle, Next::Send)
    }
}

/// Two hosts at a switch. The first of its ports sends ACKs to host 0, the second data to host 1.
fn lossy(port: usize, drops: Vec<usize>) -> Clos {
    let mut ports = 0;
    switch(2, 10 * GBPS, |_| {
        ports += 1;
        let drops = if ports - 1 == port { drops.clone() } else { Vec::new() };
        Drops(VecDeque::new(), drops, 0).into()
    })
}

const RTT: Time = 2 * 1_200 * NS + 2 * 32 * NS + 8 * US;

#[test]
fn one_lost_packet_is_repeated_fast_unless_it_is_one_of_the_last_three() {
    for packets in [1_u64, 2, 5, 10, 30] {
        let bytes = packets * 1_460;
        let idle = run(lossy(1, vec![]), Config::default(), &[(0, 1, bytes)])[0];
        let idle = idle.delivered.unwrap();
        for lost in 0..packets as usize {
            let flow = run(lossy(1, vec![lost]), Config::default(), &[(0, 1, bytes)])[0];
            let delivered = flow.delivered.unwrap();
            assert_eq!(flow.received, bytes);
            if lost as u64 + 3 < packets {
                assert!(delivered < idle + 2 * RTT, "{packets} {lost}: {delivered}");
                assert_eq!(u64::from(flow.sent), packets + 1);
            } else {
                let late = 10 * MS..idle + 10 * MS + 2 * RTT;
                assert!(late.contains(&delivered), "{packets} {lost}: {delivered}");
            }
        }
    }
}

#[test]
fn only_the_loss_of_the_last_ack_delays_a_flow() {
    let idle = run(lossy(0, vec![]), Config::default(), &[(0, 1, 30 * 1_460)])[0];
    for lost in 0..30 {
        let flow = run(lossy(0, vec![lost]), Config::default(), &[(0, 1, 30 * 1_460)])[0];
        assert!(flow.delivered.unwrap() <= idle.delivered.unwrap() + RTT);
        assert_eq!(flow.sent, if lost == 29 { 31 } else { 30 });
        assert_eq!(flow.acknowledged.unwrap() > 10 * MS, lost == 29);
    }
}

#[test]
fn the_timeout_of_a_one_packet_flow_doubles() {
    // The packet leaves at 0, 10, 30 and 70 ms.
    let flow = run(lossy(1, vec![0, 1, 2]), Config::default(), &[(0, 1, 1_460)])[0];
    assert_eq!(flow.delivered, Some(70 * MS + 2 * 1_200 * NS + 4 * US));
    assert_eq!(flow.sent, 4);
}

#[test]
fn every_flow_completes_despite_random_losses() {
    for seed in 0..200_usize {
        // Two packets in five are dropped.
        let drops = (0..400).filter(|k| (k * k * 31 + seed * 7 + k * seed) % 5 < 2).collect();
        let config = Config { rto_min: MS, ..Config::default() };
        let flow = run(lossy(seed % 2, drops), config, &[(0, 1, 100 * 1_460)])[0];
        assert!(flow.delivered.is_some() && flow.acknowledged.is_some());
        assert_eq!(flow.received, 146_000);
    }
}

#[test]
fn an_incast_into_a_small_queue_times_out_and_completes() {
    let flows: Vec<_> = (0..40).map(|source| (source, 40, 64_000)).collect();
    for rto_min in [200 * US, MS, 10 * MS] {
        let queue = || DropTail::new(Depth::Packets(8)).into();
        let config = Config { rto_min, rto_initial: rto_min, ..Config::default() };
        let flows = run(bottleneck(41, queue), config, &flows);
        let last = flows.iter().map(|flow| flow.delivered.unwrap()).max().unwrap();
        // 40 * 64,000 bytes take 21 ms with their headers.
        assert!(last > rto_min && last > 21 * MS, "{last}");
        assert!(last < SECOND, "{last}");
        assert!(flows.iter().any(|flow| flow.sent > flow.needed));
    }
}

#[test]
fn a_flow_completes_with_its_first_complete_copy() {
    let flows: Vec<_> = (0..20).map(|source| (source, 20, 20_000)).collect();
    let queue = || DropTail::with_ecn(Depth::Packets(10), Depth::Packets(5)).into();
    let config = Config { copies: 4, ..Config::dctcp() };
    for flow in run(bottleneck(21, queue), config, &flows) {
        assert_eq!(flow.received, 20_000);
        assert!(flow.acknowledged.is_some());
    }
}

#[test]
fn spraying_with_a_resequencing_buffer_retransmits_only_lost_packets() {
    let fabric = |drops: bool| {
        let mut ports = 0;
        fabric(move |_| -> Discipline {
            ports += 1;
            // The ports of the first leaf to the spines come after the 144 to hosts.
            let drops = if drops && ports == 146 { vec![100] } else { vec![] };
            Drops(VecDeque::new(), drops, 0).into()
        })
    };
    let config = |resequencing| Config {
        balancing: LoadBalancing::PerPacket(Order::Random),
        resequencing,
        rto_min: 50 * MS,
        rto_initial: 50 * MS,
        ..Config::default()
    };
    // Cross traffic makes paths differ.
    let mut flows: Vec<_> = (0..16).map(|host| (host, 128 + host, 1_000 * 1_460)).collect();
    flows.extend((16..32).map(|host| (host, 112 + host, 1_000 * 1_460)));
    let mut held = simulation(fabric(false), Tcp::new(config(Some(10 * MS))), &flows);
    let histogram = || Some(hdrhistogram::Histogram::new(3).unwrap());
    held.network_mut().measures.resequencing = histogram();
    held.network_mut().measures.queueing = histogram();
    held.network_mut().measures.round_trips = histogram();
    held.run(Time::MAX / 2);
    let sent: u32 = held.network().flows().as_slice().iter().map(|flow| flow.sent).sum();
    assert_eq!(sent, 32_000);
    let measures = &held.network().measures;
    let resequencing = measures.resequencing.as_ref().unwrap();
    assert_eq!(resequencing.len(), 32_000);
    assert!(resequencing.max() > 0 && resequencing.max() < 10_000_000);
    assert_eq!(measures.queueing.as_ref().unwrap().len(), 32_000);
    assert_eq!(measures.round_trips.as_ref().unwrap().len(), 32_000);

    // Without the buffer, TCP treats late packets as lost.
    let direct = run(fabric(false), config(None), &flows);
    assert!(direct.iter().map(|flow| flow.sent).sum::<u32>() > 32_000);

    // After a loss, the buffer holds later packets for 10 ms, and TCP retransmits one packet.
    let lost = run(fabric(true), config(Some(10 * MS)), &flows);
    assert_eq!(lost.iter().map(|flow| flow.sent).sum::<u32>(), 32_001);
    let last = lost.iter().map(|flow| flow.delivered.unwrap()).max().unwrap();
    assert!((10 * MS..20 * MS).contains(&last), "{last}");
}

#[test]
fn all_flows_complete_whatever_the_configuration() {
    let mut rng = SplitMix64::new(11);
    for _ in 0..150 {
        let mut below = |n| rng.below(n);
        let orders = [Order::Random, Order::RoundRobin, "drb:2x2".parse().unwrap()];
        let throttle = Throttle {
            hosts: 1 + below(8) as u32,
            packet: 1_500,
            rate: 10 * GBPS,
            delay: 0,
            factor: 1 + below(4) as u32,
        };
        let config = Config {
            initial_window: 1 + below(40) as u32,
            window: 1_460 * (1 + below(100)),
            rto_min: 100 * US * (1 + below(20)),
            rto_initial: 100 * US * (1 + below(20)),
            reaction: [Reaction::None, Reaction::Halve, Reaction::Dctcp { gain: 0.0625 }]
                [below(3) as usize],
            resequencing: [None, Some(50 * US), Some(MS)][below(3) as usize],
            balancing: [
                LoadBalancing::PerFlow,
                LoadBalancing::Fixed(below(9) as u16),
                LoadBalancing::PerPacket(orders[below(3) as usize]),
            ][below(3) as usize],
            tagging: Tagging::ByBytes(vec![3_000, 30_000]),
            copies: 1 + below(3) as u8,
            throttle: (below(3) == 0).then_some(throttle),
            ..Config::default()
        };
        let limits = Limits::with_ecn(
            Depth::Packets(2 + below(20) as usize),
            Depth::Packets(1 + below(10) as usize),
        );
        let subflows = below(3) as u8;
        let flows: Vec<_> = (0..20)
            .map(|_| {
                let source = below(32) as u16;
                (source, (source + 1 + below(31) as u16) % 32, below(100_000))
            })
            .collect();
        let link = Link { rate: GBPS, delay: US };
        let queue = |link| Strict::new(Classes::new(link, &[limits; 3])).into();
        let shape = Shape::leaf_spine(8, 4, 4);
        let clos = Clos::new(shape, link, link, unlimited, queue).unwrap();
        let transport: Box<dyn Transport> = match subflows {
            0 => Box::new(Tcp::new(config.clone())),
            n => Box::new(Mptcp::new(config.clone(), n)),
        };
        let workload = List::new(flows.iter().map(|&ends| flow(0, ends)).collect());
        let mut simulation = Simulation::new(clos, vec![transport], Box::new(workload), 5);
        for flow in finish(&mut simulation) {
            assert!(flow.delivered <= flow.acknowledged && flow.delivered.is_some(), "{config:?}");
            assert_eq!(flow.received, flow.spec.bytes);
            assert!(flow.sent >= flow.needed);
        }
    }
}
