//! Classes of symbols, served by strict priority.

use super::*;
use cloudburst_core::config::{Config, Fabric};
use cloudburst_sim::queue::{Classes, Discipline, Limits, Weighted};
use cloudburst_sim::transport::cloudburst::{Cloudburst, Settings};

const GBPS: u64 = common::GBPS;
const SWITCH: Shape = Shape::one_switch(6);

/// Six hosts at `rate`, all with `classes`. Ports of the switch have two tiny queues, the first of which has
/// strict priority.
fn simulation(rate: u64, classes: &str, list: Vec<(Time, NewFlow)>) -> Simulation {
    let config = Config {
        capacity: rate.into(),
        fabric: Fabric { classes: classes.parse().unwrap(), ..Fabric::default() },
        ..Config::default()
    };
    let link = Link { rate, delay: 5 * US };
    let queue = |link| -> Discipline {
        let limits = [Limits::new(Depth::Packets(8)); 2];
        Weighted::with_strict(Classes::new(link, &limits), 2, &[1]).into()
    };
    let clos = Clos::new(SWITCH, link, link, unlimited, queue).unwrap();
    let transport = Cloudburst::new(Settings::new(config), &SWITCH).unwrap();
    common::simulation(clos, transport, list)
}

/// The completion time of the last flow, if it was delivered.
fn last_took(simulation: &Simulation) -> Option<Time> {
    let flow = simulation.network().flows().as_slice().last()?;
    Some(flow.delivered? - flow.begun)
}

#[test]
fn a_long_message_comes_through_an_overload_of_short_ones() {
    // Four hosts offer messages of 5 KB at one and a half times the rate of the fifth's link, 100 Mb/s.
    let every = 4 * 5_000 * 8 * 10 * US / 1_500;
    let until = BEGIN + 4_000 * MS;
    for classes in ["left:20000", "one"] {
        let begins = (BEGIN..until).step_by(every as usize);
        let mut list: Vec<_> =
            begins.flat_map(|at| (0..4).map(move |host| flow(at, (host, 4, 5_000)))).collect();
        let long = list.partition_point(|(at, _)| *at < BEGIN + 10 * MS);
        list.insert(long, flow(BEGIN + 10 * MS, (5, 4, 93_000)));
        let mut simulation = simulation(GBPS / 10, classes, list);
        simulation.run(until);
        let flows = simulation.network().flows().as_slice();
        assert_eq!(flows[long].spec.bytes, 93_000);
        let short = flows.iter().filter(|flow| flow.delivered.is_some()).count();
        let took = flows[long].delivered.map(|at| (at - flows[long].begun) / MS);
        println!("{classes}: 93 KB took {took:?} ms beside {short} of {} of 5 KB", flows.len());
        assert!(took.is_some_and(|took| took < 1_000), "the long message starved with {classes}");
    }
}

#[test]
fn a_short_message_waits_for_half_a_millisecond_in_its_own_host() {
    // 63 us for the message itself, the 500 us that its host's pacer may send at once, and one packet.
    for wait in [0, 300 * US, 2 * MS] {
        let mut list: Vec<_> = (0..10).map(|_| flow(BEGIN, (0, 1, 93_000))).collect();
        list.push(flow(BEGIN + wait, (0, 2, 5_000)));
        let mut simulation = simulation(GBPS, "left:20000", list);
        simulation.run(BEGIN + 1_000 * MS);
        let took = last_took(&simulation).unwrap() / US;
        println!("5 KB after {} us behind ten of 93 KB of the same host: {took} us", wait / US);
        assert!(took < 650, "{took}");
    }
}
