//! Classes of symbols, served by strict priority.

use super::*;
use cloudburst_core::config::Config;
use cloudburst_sim::queue::{Classes, Discipline, Limits, Weighted};
use cloudburst_sim::transport::cloudburst::{Cloudburst, Settings};

const GBPS: u64 = common::GBPS;
const SWITCH: Shape = Shape::one_switch(6);

/// Six hosts at 1 Gb/s, all with `classes`. Ports of the switch have two tiny queues, the first of which comes
/// first.
fn simulation(classes: &str, list: Vec<(Time, NewFlow)>) -> Simulation {
    let config = Config { classes: classes.parse().unwrap(), capacity: GBPS, ..Config::default() };
    let link = Link { rate: GBPS, delay: 5 * US };
    let queue = |link| -> Discipline {
        let limits = [Limits::new(Depth::Packets(8)); 2];
        Weighted::with_strict(Classes::new(link, &limits), 2, &[1]).into()
    };
    let clos = Clos::new(SWITCH, link, link, unlimited, queue).unwrap();
    let transport = Cloudburst::new(Settings::new(config), &SWITCH).unwrap();
    common::simulation(clos, transport, list)
}

/// How long the last of these flows took.
fn last_took(simulation: &Simulation) -> Option<Time> {
    let flow = simulation.network().flows().as_slice().last()?;
    Some(flow.delivered? - flow.begun)
}

#[test]
fn a_short_message_waits_for_half_a_millisecond_in_its_own_host() {
    for (wait, limit) in [(0, 760), (300 * US, 760), (2 * MS, 760)] {
        let mut list: Vec<_> = (0..10).map(|_| flow(BEGIN, (0, 1, 93_000))).collect();
        list.push(flow(BEGIN + wait, (0, 2, 5_000)));
        let mut simulation = simulation("left:20000", list);
        simulation.run(BEGIN + 1_000 * MS);
        let took = last_took(&simulation).unwrap() / US;
        println!("5 KB after {} us behind ten of 93 KB of the same host: {took} us", wait / US);
        assert!(took < limit, "{took}");
    }
}
