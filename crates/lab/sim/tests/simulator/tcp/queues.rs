//! Queues with classes, and shared buffers.

use super::{run, simulation, switch};
use crate::common::{GBPS, unlimited};
use cloudburst_sim::engine::{MS, Time, US};
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::queue::{
    Aeolus, Classes, CreditConfig, CreditQueue, Depth, Discipline, DropTail, Limits, SharedBuffer,
    Strict, Weighted,
};
use cloudburst_sim::transport::Transport;
use cloudburst_sim::transport::tcp::{Config, Tagging, Tcp};
use cloudburst_sim::workload::List;
use cloudburst_sim::{NewFlow, Simulation};

#[test]
fn a_queue_with_one_class_is_drop_tail() {
    let flows: Vec<_> = (0..20).map(|source| (source, 20, 100_000)).collect();
    for (limit, mark_at) in [
        (Depth::Packets(30), Depth::Packets(20)),
        (Depth::Bytes(60_000), Depth::Bytes(30_000)),
        (Depth::Bytes(44_999), Depth::Packets(10)),
    ] {
        let plain = |_| DropTail::with_ecn(limit, mark_at).into();
        let limits = Limits::with_ecn(limit, mark_at);
        let strict = |link| Strict::new(Classes::new(link, &[limits])).into();
        let weighted = |link| Weighted::new(Classes::new(link, &[limits]), &[1]).into();
        let by_port =
            |link| Strict::new(Classes::new(link, &[Limits::NONE]).with_port(limits)).into();
        let expected = run(switch(21, 10 * GBPS, plain), Config::dctcp(), &flows);
        assert!(expected.iter().any(|flow| flow.sent > flow.needed));
        for clos in [
            switch(21, 10 * GBPS, strict),
            switch(21, 10 * GBPS, weighted),
            switch(21, 10 * GBPS, by_port),
        ] {
            assert_eq!(run(clos, Config::dctcp(), &flows), expected);
        }
    }
}

#[test]
fn a_queue_follows_the_rate_of_its_link() {
    let flows: Vec<_> = (0..20).map(|source| (source, 20, 100_000)).collect();
    let limits = Limits::with_ecn(Depth::Bytes(60_000), Depth::Bytes(30_000));
    let strict = |link| Strict::new(Classes::new(link, &[limits])).into();
    let weighted = |link| Weighted::new(Classes::new(link, &[limits]), &[1]).into();
    let aeolus = |link: Link| Aeolus::new(link.rate, 30_000, 60_000).into();
    let credit = |link: Link| CreditQueue::new(link.rate, CreditConfig::default()).into();
    let queues: [&dyn Fn(Link) -> Discipline; 4] = [&strict, &weighted, &aeolus, &credit];
    for queue in queues {
        let expected = run(switch(21, GBPS, queue), Config::dctcp(), &flows);
        let mut clos = switch(21, 10 * GBPS, queue);
        for port in 0..clos.ports().len() {
            clos.set_link(port, Link { rate: GBPS, delay: 2 * US }).unwrap();
        }
        assert_eq!(run(clos, Config::dctcp(), &flows), expected);
    }
}

/// Runs two long flows of different hosts and classes to one host for 100 ms. Returns the share of the first.
fn share(clos: Clos) -> f64 {
    let tcp = |class| -> Box<dyn Transport> {
        Box::new(Tcp::new(Config { tagging: Tagging::Fixed(class), ..Config::dctcp() }))
    };
    let flow = |source, transport| {
        (0, NewFlow { source, destination: 2, transport, bytes: 1 << 40, tag: 0 })
    };
    let workload = List::new(vec![flow(0, 0), flow(1, 1)]);
    let mut simulation = Simulation::new(clos, vec![tcp(0), tcp(1)], Box::new(workload), 1);
    simulation.run(100 * MS);
    let received = [0, 1].map(|flow| simulation.network().flows()[flow].received as f64);
    assert!(received[0] + received[1] > 0.98 * 0.1 * 1.25e9 / 1_500.0 * 1_460.0, "{received:?}");
    received[0] / (received[0] + received[1])
}

#[test]
fn strict_classes_starve_and_weighted_ones_share() {
    let limits = [Limits::with_ecn(Depth::Packets(300), Depth::Packets(65)); 2];
    let strict = |link| Strict::new(Classes::new(link, &limits)).into();
    assert!(share(switch(3, 10 * GBPS, strict)) > 0.99);
    for (weights, expected) in [([1, 1], 0.5), ([3, 1], 0.75), ([1, 4], 0.2)] {
        let queue = |link| Weighted::new(Classes::new(link, &limits), &weights).into();
        let share = share(switch(3, 10 * GBPS, queue));
        assert!((share - expected).abs() < 0.02, "{share} {expected}");
    }
}

#[test]
fn strict_classes_in_one_group_share_one_weight() {
    let limits = [Limits::with_ecn(Depth::Packets(300), Depth::Packets(65)); 3];
    let tcp = |class| -> Box<dyn Transport> {
        Box::new(Tcp::new(Config { tagging: Tagging::Fixed(class), ..Config::dctcp() }))
    };
    // Each of the first two classes has traffic for the whole link, and so has the last.
    let flows = (0..3).map(|class| {
        let what = NewFlow {
            source: class,
            destination: 3,
            transport: class as u8,
            bytes: 1 << 40,
            tag: 0,
        };
        (0, what)
    });
    let queue = |link| Weighted::with_strict(Classes::new(link, &limits), 2, &[3, 1]).into();
    let workload = List::new(flows.collect());
    let transports = vec![tcp(0), tcp(1), tcp(2)];
    let clos = switch(4, 10 * GBPS, queue);
    let mut simulation = Simulation::new(clos, transports, Box::new(workload), 1);
    simulation.run(100 * MS);
    let received = [0, 1, 2].map(|flow| simulation.network().flows()[flow].received as f64);
    let all: f64 = received.iter().sum();
    let shares = received.map(|received| received / all);
    assert!((shares[0] - 0.75).abs() < 0.02 && shares[1] < 0.01, "{shares:?}");
    assert!((shares[2] - 0.25).abs() < 0.02, "{shares:?}");
}

#[test]
fn pias_lets_a_short_flow_overtake_a_long_one() {
    let config = Config::pias(vec![95_000]);
    let limits = [Limits::NONE; 2];
    let port = Limits::with_ecn(Depth::Packets(300), Depth::Packets(65));
    let classes = |link| Classes::new(link, &limits).with_port(port);
    let queue = |link| Strict::new(classes(link)).into();
    let flow =
        |at, source, bytes| (at, NewFlow { source, destination: 2, transport: 0, bytes, tag: 0 });
    let workload = List::new(vec![flow(0, 0, 1 << 30), flow(10 * MS, 1, 14_600)]);
    let clos = switch(3, 10 * GBPS, queue);
    let mut simulation =
        Simulation::new(clos, vec![Box::new(Tcp::new(config))], Box::new(workload), 1);
    simulation.run(20 * MS);
    let short = simulation.network().flows()[1];
    // It takes 10 * 1.2 + 1.2 + 4 us if idle; each packet waits for at most one packet of the long flow.
    let took = short.delivered.unwrap() - short.begun;
    assert!((17_200_000..17_200_000 + 10 * 1_200_000).contains(&took), "{took}");
}

#[test]
fn a_shared_buffer_grants_a_queue_alpha_times_the_free_space() {
    // One queue of alpha 1 takes half of the memory, two take a third each.
    for (receivers, share) in [(1_u16, 1.0 / 2.0), (2, 1.0 / 3.0), (3, 1.0 / 4.0)] {
        let buffer = SharedBuffer::new(300_000, 1.0);
        let link = Link { rate: GBPS, delay: 2 * US };
        let queue = |_, link| {
            let classes = Classes::new(link, &[Limits::NONE]).with_buffer(&buffer, 0);
            Strict::new(classes).into()
        };
        let shape = Shape::one_switch(9);
        let clos = Clos::with_switches(shape, link, link, unlimited, queue).unwrap();
        // Two senders per receiver, each of which sends its whole window at once.
        let flows: Vec<_> = (0..2 * receivers).map(|k| (3 + k, k % receivers, 1_000_000)).collect();
        let config = Config { initial_window: 600, ..Config::default() };
        let mut simulation = simulation(clos, Tcp::new(config), &flows);
        simulation.run(6 * MS);
        let held = buffer.used() as f64 / f64::from(receivers);
        assert!((held - share * 300_000.0).abs() < 4_500.0, "{receivers}: {held}");
        simulation.run(Time::MAX / 2);
        assert_eq!(buffer.used(), 0);
        assert!(simulation.network().flows().as_slice().iter().all(|f| f.delivered.is_some()));
    }
}

#[test]
fn a_reserve_is_available_to_a_queue_that_fills_late() {
    let buffer = SharedBuffer::new(0, 1.0);
    let queue = |link: Link| {
        let classes = Classes::new(link, &[Limits::NONE; 2]).with_buffer(&buffer, 15_000);
        Strict::new(classes).into()
    };
    let flows: Vec<_> = (0..4).map(|source| (source, 4, 100_000)).collect();
    for flow in run(switch(5, GBPS, queue), Config::default(), &flows) {
        assert!(flow.delivered.is_some());
    }
    assert_eq!(buffer.used(), 0);
}

#[test]
fn each_switch_has_a_number() {
    let link = Link { rate: GBPS, delay: US };
    for (shape, switches, ports) in [
        (Shape::one_switch(4), 1, vec![4]),
        (Shape::leaf_spine(2, 3, 4), 7, vec![6, 6, 6, 3, 3, 3, 3]),
        (Shape::fat_tree(4, 1), 20, vec![4; 20]),
    ] {
        let mut seen = vec![0; switches];
        let queue = |switch: usize, _| {
            seen[switch] += 1;
            DropTail::new(Depth::Unlimited).into()
        };
        Clos::with_switches(shape, link, link, unlimited, queue).unwrap();
        assert_eq!(seen, ports);
    }
}
