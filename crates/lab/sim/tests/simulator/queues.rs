//! Queues compared with theory: M/D/1, and the DRB paper's model of bouncing (Appendix B), in the model and in
//! the simulator.

use cloudburst_core::path::Order;
use cloudburst_sim::engine::Time;
use cloudburst_sim::fabric::{Clos, Link, Shape};
use cloudburst_sim::model::bouncing::{Hop, Model, Sampling, orders};
use cloudburst_sim::model::{Moments, closed, fabric};
use cloudburst_sim::queue::{Depth, DropTail};
use cloudburst_sim::transport::open_loop::{ArrivalProcess, Config, OpenLoop};
use cloudburst_sim::workload::List;
use cloudburst_sim::{NewFlow, Simulation};

/// The transmission time of 1,500 bytes at 10 Gb/s.
const SLOT: Time = 1_200_000;

fn near(value: f64, expected: f64, share: f64) {
    assert!((value / expected - 1.0).abs() < share, "{value}, not {expected}");
}

#[test]
fn poisson_arrivals_wait_as_in_md1() {
    for (load, mean) in [(0.5, 2 * SLOT), (0.8, SLOT * 5 / 4)] {
        let link = Link { rate: 10_000_000_000, delay: 0 };
        let queue = |_| DropTail::new(Depth::Unlimited).into();
        let fabric = Clos::new(Shape::one_switch(2), link, link, queue, queue).unwrap();
        let arrivals = ArrivalProcess::Poisson { mean };
        let config = Config { packet: 1_500, arrivals, order: Order::RoundRobin };
        let bytes = 800_000 * 1_500;
        let flow = NewFlow { source: 0, destination: 1, transport: 0, bytes, tag: 0 };
        let transport = Box::new(OpenLoop::new(config));
        let workload = Box::new(List::new(vec![(0, flow)]));
        let mut simulation = Simulation::new(fabric, vec![transport], workload, 1);
        simulation.run(Time::MAX / 2);
        let network = simulation.network();
        assert!(network.flows()[0].delivered.is_some());
        let port = network.fabric().ports()[0].stats();
        assert_eq!(port.packets, 800_000);
        let wait = port.waited as f64 / port.packets as f64 / SLOT as f64;
        near(wait, closed::md1_wait(load), 0.02);
    }
}

#[test]
fn the_simulator_queues_as_the_model_does() {
    let ports = 8;
    let load = 0.9;
    for order in orders(ports).unwrap() {
        let model = Model { order, ports, load, hop: Hop::First };
        let expected = if order == Order::Random {
            closed::random_first_hop(ports, load).mean
        } else {
            model.run(model.equilibrium(400_000, 1)).unwrap().moments().mean
        };
        let queues = fabric::queues(ports, order, load, 1_000, 15_000, 1).unwrap().hops;
        near(queues[0].mean, expected, 0.02);
        // "The 4th-hop queue is similar to that of the 1st-hop": within 30 %, as its input is smoother.
        assert!(queues[3].mean < 1.3 * expected && queues[3].mean > 0.7 * expected, "{queues:?}");
    }
}

#[test]
fn the_model_of_random_bouncing_agrees_with_theory() {
    for load in [0.5, 0.8] {
        let model = Model { order: Order::Random, ports: 24, load, hop: Hop::First };
        let sampling = Sampling { warm_up: 1_000, slots: 200_000, runs: 1, seed: 1 };
        let Moments { mean, variance } = model.run(sampling).unwrap().moments();
        let expected = closed::random_first_hop(24, load);
        near(mean, expected.mean, 0.02);
        near(variance, expected.variance, 0.06);
    }
}

/// "Its average and max queue lengths at the first hop are only 2.5 and 8": load 1, n = 24.
#[test]
fn digit_reversal_at_full_load_has_the_papers_queues() {
    let exact = closed::digit_reversal_first_hop_at_full_load(24);
    // One queue in 10,000 has 8 packets or more; 12 are possible, but are not observed.
    let of_8 = exact[8..].iter().sum::<f64>();
    assert!((5e-5..2e-4).contains(&of_8), "{of_8}");
    let exact = Moments::of(exact);
    near(exact.mean, 2.5, 0.02);
    let model = Model { order: orders(24).unwrap()[2], ports: 24, load: 1.0, hop: Hop::First };
    let sampling = Sampling { warm_up: 24, slots: 12, runs: 3_456, seed: 1 };
    let lengths = model.run(sampling).unwrap();
    near(lengths.moments().mean, exact.mean, 0.02);
    near(lengths.moments().variance, exact.variance, 0.05);
    assert!((7..=9).contains(&lengths.max()), "{}", lengths.max());
}

/// "The average 1st-hop queue lengths are 16.0, 7.9, and 2.2 for RRB, RB, and DRB", "the 1st-hop variances
/// are 151, 58, and 1.45": load 0.95, n = 24.
#[test]
fn queues_at_load_95_are_those_of_the_paper() {
    let [_, round_robin, digit_reversal] = orders(24).unwrap();
    for (order, mean, variance) in [(round_robin, 16.0, 151.0), (digit_reversal, 2.2, 1.45)] {
        let model = Model { order, ports: 24, load: 0.95, hop: Hop::First };
        let sampling = Sampling { warm_up: 576, slots: 144, runs: 12_000, seed: 1 };
        let found = model.run(sampling).unwrap().moments();
        near(found.mean, mean, 0.02);
        near(found.variance, variance, 0.04);
    }
    // Random bouncing in equilibrium does not match the paper. Over 1,150 slots from an empty queue, a number
    // chosen to match the mean, it does; so would a lower load.
    near(closed::random_first_hop(24, 0.95).mean, 9.22, 0.001);
    near(closed::random_first_hop(24, 0.95).variance, 81.96, 0.001);
    let short = closed::random_first_hop_from_empty(24, 0.95, 1_150);
    near(short.mean, 7.9, 0.02);
    near(short.variance, 58.0, 0.02);
}

#[test]
fn queues_stay_below_their_bounds_and_reach_them() {
    for ports in [4, 6, 8] {
        let bounds =
            [closed::longest_of_round_robin(ports), closed::longest_of_digit_reversal(ports)];
        for (&order, bound) in orders(ports).unwrap()[1..].iter().zip(bounds) {
            let model = Model { order, ports, load: 1.0, hop: Hop::First };
            let round = u64::from(ports) * u64::from(ports) / 4;
            let sampling = Sampling { warm_up: 0, slots: 2 * round, runs: 20_000, seed: 1 };
            let longest = model.run(sampling).unwrap().max();
            assert!(longest <= bound, "{order}, {ports}: {longest} of {bound}");
            if ports == 4 {
                assert_eq!(longest, bound, "{order}");
            }
        }
    }
}

/// Figure 3: "the queue lengths of RB at different hops increase dramatically when the traffic load is large,
/// while the queue lengths of both DRB and RRB are bounded even when the load is 1".
#[test]
fn only_random_bouncing_has_no_bound_at_full_load() {
    let [random, round_robin, digit_reversal] = orders(24).unwrap();
    for hop in Hop::ALL {
        let mean = |order, load| {
            let model = Model { order, ports: 24, load, hop };
            model.run(model.equilibrium(20_000, 1)).unwrap().moments().mean
        };
        assert!(mean(random, 0.98) > 2.0 * mean(random, 0.95));
        for order in [round_robin, digit_reversal] {
            assert!(mean(order, 1.0) < 1.8 * mean(order, 0.95), "{order}");
        }
        // Beyond the first hop, the two orders are equal in this model.
        let ratio = mean(round_robin, 0.95) / mean(digit_reversal, 0.95);
        assert!(if hop == Hop::First { ratio > 6.0 } else { ratio == 1.0 }, "{ratio}");
    }
    // The mean grows as the square root of time.
    let [short, long] =
        [1_000, 4_000].map(|slots| closed::random_first_hop_from_empty(24, 1.0, slots).mean);
    near(long / short, 2.0, 0.05);
}
