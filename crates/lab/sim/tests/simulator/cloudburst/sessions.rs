//! Sessions, and properties common to all simulations of endpoints.

use super::*;
use cloudburst_core::config::{Config, EcnMode, Fabric};
use cloudburst_sim::experiment::Outcome;
use cloudburst_sim::transport::cloudburst::{Cloudburst, Paths, Sessions, Settings};
use cloudburst_sim::workload::List;

const HOSTS: Shape = Shape::leaf_spine(2, 2, 4);

/// Simulates 60 messages among four hosts with queues of 8 packets, and asserts that all are delivered.
fn busy(settings: Settings, seed: u64) -> Simulation {
    let link = Link { rate: 10_000_000_000, delay: 2 * US };
    let queue = |_| DropTail::with_ecn(Depth::Packets(8), Depth::Packets(4)).into();
    let fabric = Clos::new(HOSTS, link, link, unlimited, queue).unwrap();
    let pairs = (0..60).map(|k| (k % 4, (k + 1 + k / 4 % 3) % 4, 2_000 * u64::from(k)));
    let transports: Vec<Box<dyn Transport>> =
        vec![Box::new(Cloudburst::new(settings, &HOSTS).unwrap())];
    let pairs: Vec<_> = pairs.collect();
    let workload = Box::new(List::new(flows(&pairs).collect()));
    let mut simulation = Simulation::new(fabric, transports, workload, seed);
    simulation.run(BEGIN + 20_000 * MS);
    let network = simulation.network();
    assert_eq!(network.refusal(), None);
    for (number, flow) in network.flows().as_slice().iter().enumerate() {
        assert!(flow.delivered.is_some() && flow.acknowledged >= flow.delivered, "{number}");
        assert!(flow.sent >= flow.needed && flow.needed > 0, "{number}: {flow:?}");
    }
    simulation
}

#[test]
fn everything_is_delivered_despite_losses_and_the_same_seed_gives_the_same_events() {
    let config = Config {
        capacity: 10_000_000_000.into(),
        fabric: Fabric { ecn: EcnMode::Aeolus, ..Fabric::default() },
        ..Config::default()
    };
    let hashed = Settings { paths: Paths::Hashed { ports: 16 }, ..Settings::new(config) };
    for settings in [Settings::ours(10_000_000_000), hashed] {
        let hash = |seed| busy(settings.clone(), seed).network().hash();
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
    }
}

#[test]
fn a_session_that_is_not_open_costs_two_round_trips() {
    let settings = Settings { sessions: Sessions::OnDemand, ..Settings::ours(10_000_000_000) };
    let transport = Cloudburst::new(settings, &SHAPE).unwrap();
    let simulation = run(transport, Depth::Unlimited, &[(0, 143, 1_000)]);
    let delivered = simulation.network().flows().as_slice()[0].delivered.unwrap() - BEGIN;
    let with_session = super::idle::endpoint(Settings::ours(10_000_000_000), 1_000);
    let without = delivered - (with_session.delivered.unwrap() - BEGIN);
    // Four crossings of 8 us, and four packets of at most 200 bytes.
    assert!((32 * US..34 * US).contains(&without), "{without}");
}

#[test]
fn the_error_says_why_a_message_is_refused() {
    let config = Config { max_message: 1_000, ..Config::default() };
    let settings = Settings { sessions: Sessions::OnDemand, ..Settings::new(config) };
    let transport = Cloudburst::new(settings, &SHAPE).unwrap();
    let flows = [(0, 143, 1_001), (0, 143, 1_000), (1, 143, 1 << 40)];
    let simulation = run(transport, Depth::Unlimited, &flows);
    let refusal = Outcome::of(simulation.network()).unwrap_err().to_string();
    let line = "host 0 cannot send to host 143: message of 1001 bytes is too long: `max_message` \
                leaves room for 1000 bytes";
    assert_eq!(refusal, line);
    let delivered =
        simulation.network().flows().as_slice().iter().map(|flow| flow.delivered.is_some());
    assert_eq!(delivered.collect::<Vec<_>>(), [false, true, false]);
}
