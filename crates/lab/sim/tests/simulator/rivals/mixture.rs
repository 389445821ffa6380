//! Many flows at once: all are complete, and every run is the same.

use super::{Planned, finish, incast, run, simulation};
use cloudburst_core::rng::SplitMix64;
use cloudburst_sim::Flow;
use cloudburst_sim::engine::US;
use cloudburst_sim::fabric::Link;
use cloudburst_sim::queue::{CreditConfig, CreditQueue, PFabricQueue};
use cloudburst_sim::transport::{expresspass, pfabric};

#[test]
fn the_same_seed_gives_the_same_events() {
    let pfabric = || {
        let transport = pfabric::PFabric::new(pfabric::Config::default());
        let mut simulation = simulation(|_| PFabricQueue::new(34).into(), transport, &incast(20));
        finish(&mut simulation);
        simulation.network().hash()
    };
    let expresspass = || {
        let queue = |link: Link| CreditQueue::new(link.rate, CreditConfig::default()).into();
        let transport = expresspass::ExpressPass::new(expresspass::Config::default());
        let mut simulation = simulation(queue, transport, &incast(20));
        finish(&mut simulation);
        simulation.network().hash()
    };
    assert_eq!(pfabric(), pfabric());
    assert_eq!(expresspass(), expresspass());
}

/// 2,000 flows of 0 bytes to 300 KB within 2 ms, many of them to the same few hosts.
fn mixture() -> Vec<Planned> {
    let mut rng = SplitMix64::new(7);
    let sizes = [0, 1, 1_460, 1_461, 10_000, 93_440, 300_000];
    let mut flow = || {
        let source = rng.below(144) as u16;
        let destination = if rng.below(2) == 0 { rng.below(4) } else { rng.below(144) } as u16;
        let destination = if source == destination { 143 - destination } else { destination };
        (rng.below(2_000) * US, source, destination, sizes[rng.below(7) as usize])
    };
    (0..2_000).map(|_| flow()).collect()
}

#[test]
fn every_flow_of_a_mixture_through_tiny_queues_is_complete() {
    let is_complete = |flow: &Flow| {
        flow.delivered <= flow.acknowledged && flow.delivered.is_some() && flow.sent >= flow.needed
    };
    let config = pfabric::Config { rto: 60 * US, ..pfabric::Config::default() };
    let flows = run(|_| PFabricQueue::new(6).into(), pfabric::PFabric::new(config), &mixture());
    assert!(flows.iter().all(is_complete));
    let tiny = CreditConfig { credits: 2, data: 3, ..CreditConfig::default() };
    let queue = |link: Link| CreditQueue::new(link.rate, tiny).into();
    let config = expresspass::Config::default();
    let flows = run(queue, expresspass::ExpressPass::new(config), &mixture());
    assert!(flows.iter().all(is_complete));
}
