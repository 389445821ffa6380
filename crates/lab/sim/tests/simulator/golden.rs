//! The same seed gives the same events on every machine: golden trace hashes of all schemes.

use cloudburst_sim::Simulation;
use cloudburst_sim::engine::{MS, SECOND, US};
use cloudburst_sim::fabric::{Link, Shape};
use cloudburst_sim::scheme::SCHEMES;
use cloudburst_sim::workload::{Arrivals, Peers, Sizes, mean_between};

#[test]
fn every_scheme_has_its_golden_trace_hash() {
    let shape = Shape::leaf_spine(3, 2, 2);
    let link = Link { rate: 10_000_000_000, delay: 2 * US };
    // Over-subscribed, so that DCTCP's queues mark.
    let core = Link { rate: 2_500_000_000, ..link };
    let sizes = Sizes::WEB_SEARCH;
    let mean = mean_between(0.8, link.rate, &sizes).expect("the load is possible");
    let arrivals = Arrivals { sizes, peers: Peers::All, mean, until: 2 * MS, transport: 0 };
    let hashes = SCHEMES.each_ref().map(|scheme| {
        let fabric = scheme.fabric(shape, link, core, None).expect("the topology is possible");
        let transport = (scheme.transport)(&shape, link).expect("the settings are possible");
        let arrivals = arrivals.draw(&shape, 7).expect("there are others");
        let mut simulation = Simulation::new(fabric, vec![transport], Box::new(arrivals), 7);
        simulation.run(SECOND / 10);
        format!("{} {:016x}", scheme.name, simulation.network().hash())
    });
    let expected = [
        "burst 705adf2fe87fdf7f",
        "cloudburst 9f4fe2b17eecf9aa",
        "cloudburst-paper be95b6b7daa8c429",
        "cloudburst-pull 2c4dbc5bf37c10d3",
        "cloudburst-trim 53f64a7c382fdb07",
        "tcp 5d38dd2f5a305467",
        "dctcp b30fb786fe985098",
        "mptcp e1901b771e5f238d",
        "pfabric c5b3afa9f21654ea",
        "expresspass ad45a0fcab1294da",
    ];
    assert_eq!(hashes, expected);
}
