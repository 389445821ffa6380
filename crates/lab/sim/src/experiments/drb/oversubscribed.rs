//! Networks with an over-subscription of 2:1, with and without ECN (DRB paper, 5.5).
//!
//! "Similar to DCTCP, we use instant queue length" leaves open how a sender reacts to marks. TCP with ECN halves its
//! window (RFC 3168), and DCTCP reduces it by the share of marks. Both are run.

use super::fabric::{Fabric, tcp};
use super::show::{self, READINGS, ValueOf, at_least, at_most, near, setting, table};
use super::traffic::measure;
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Record, Results, Scale};
use crate::transport::tcp::{Config, Reaction, Tcp};
use cloudburst_report::claims::{Claim, Finding, Judged};
use cloudburst_report::figures::{Axis, Chart, Entry, Series};
use core::error::Error;

const NAME: &str = "drb-oversubscribed";
const ORDERS: [&str; 3] = ["rb", "rrb", "drb"];
const SCHEMES: [&str; 6] = ["rb", "rrb", "drb", "rb-64k", "rrb-64k", "drb-64k"];
/// The over-subscription: twice as many servers.
const TIMES: u16 = 2;
/// The reactions of senders to marks, each with the load of cells that stands for it.
const REACTIONS: [(&str, f64); 3] = [("no ECN", 0.0), ("ECN, halved", 1.0), ("ECN, DCTCP", 2.0)];

/// The experiment. The `x` of a cell is the number of its fabric, and the load that of its reaction.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Over-subscribed networks with and without ECN (DRB, 5.5)",
    description: "Permutation traffic among twice as many servers as in Figure 6, so that each can use half of its \
                  link on average. Switches mark from 32 KB on at 1 Gb/s and from 160 KB on at 5 Gb/s, or not at \
                  all. Senders react to marks by halving their windows, or as DCTCP does.",
    minutes: [0.2, 37.0, 370.0],
    cells,
    run,
    report,
};

fn cells(_scale: Scale) -> Vec<Cell> {
    Cell::all(NAME, &SCHEMES, &Fabric::NUMBERS, &REACTIONS.map(|(_, load)| load), 1)
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let cell = case.cell;
    let fabric = Fabric::of(cell.x);
    let reaction = match cell.load {
        0.0 => Reaction::None,
        1.0 => Reaction::Halve,
        _ => Config::dctcp().reaction,
    };
    let shape = fabric.shape(case.scale, TIMES);
    let clos = fabric.build(shape, reaction != Reaction::None)?;
    let config = Config { reaction, ..tcp(&cell.scheme, fabric, case.scale)? };
    measure(case, fabric, clos, Tcp::new(config))
}

fn report(results: &Results<'_>) -> Part {
    let of = |record: &Record| {
        let cell = &record.cell;
        let reaction = REACTIONS[cell.load as usize].0.to_owned();
        vec![Fabric::of(cell.x).name().to_owned(), show::name(&cell.scheme), reaction]
    };
    let head = [
        "fabric",
        "scheme",
        "marks",
        "Mb/s",
        "latency (us)",
        "p99 (us)",
        "RTT p99 (us)",
        "dropped",
    ];
    let values = ["throughput_mbps", "latency_mean_us", "latency_p99_us", "rtt_p99_us", "dropped"];
    let figure = |value, y: &str, stem: &str, caption: &str| {
        bars(results, value, y).figure(format!("{NAME}-{stem}"), caption)
    };
    Part {
        figures: vec![
            figure(
                "throughput_mbps",
                "Mb/s per server",
                "throughput",
                "Mean throughput per server.",
            ),
            figure("latency_mean_us", "latency (us)", "latency", "Mean network latency."),
        ],
        tables: vec![table(results, "Over-subscribed networks", &head, of, &values)],
        claims: claims(results),
    }
}

fn bars(results: &Results<'_>, value: &str, y: &str) -> Chart {
    let settings = Fabric::ALL.into_iter().flat_map(|fabric| READINGS.map(|r| (fabric, r)));
    let panels = settings.map(|(fabric, (reading, suffix))| {
        let series = ORDERS.iter().enumerate().map(|(index, order)| {
            let scheme = format!("{order}{suffix}");
            let at = |load| results.estimate(&scheme, fabric.number(), load, value);
            let dots = REACTIONS.iter().filter_map(|&(_, load)| Some((load, at(load)?)));
            Series { entry: Entry::nth(index + 1, order.to_uppercase()), dots: dots.collect() }
        });
        let title = setting(fabric, reading);
        show::groups(title, &REACTIONS.map(|(name, _)| name), series.collect())
    });
    let panels = panels.collect();
    Chart { y: y.to_owned(), up: Axis::Linear, columns: 2, height: 240.0, panels }
}

/// The claims. The paper's numbers are for the Fat-tree.
fn claims(results: &Results<'_>) -> Vec<Claim> {
    let judge = |loads: &[usize], judge: &dyn Fn(&ValueOf<'_>, f64) -> Option<Vec<Finding>>| {
        let mut judged = Vec::new();
        for (reading, suffix) in READINGS {
            for &(name, load) in loads.iter().map(|&load| &REACTIONS[load]) {
                let value_of = |scheme: &str, value: &str| {
                    let (scheme, load) = match scheme.strip_suffix(" without") {
                        Some(scheme) => (scheme, 0.0),
                        None => (scheme, load),
                    };
                    let x = Fabric::FatTree.number();
                    Some(results.estimate(&format!("{scheme}{suffix}"), x, load, value)?.value)
                };
                let of = format!("{}, {name}", setting(Fabric::FatTree, reading));
                judged.push(judge(&value_of, load).and_then(|findings| Judged::new(of, findings)));
            }
        }
        judged
    };
    let all = [
        Claim::new(
            NAME,
            [
                "Without ECN, all orders fill the network, and queues are long",
                "a mean latency of 839 us for DRB in the Fat-tree; \"high network utilization\"",
                "Targets: each order has at least 0.9 times 474 Mb/s, which is half a link without headers and ACKs, \
                 and the latency of DRB is within 10 % of the paper's. Partial targets: at least 0.75 times; within \
                 25 %.",
            ],
            judge(&[0], &|value_of, _| {
                let ideal = 500.0 * 1_460.0 / 1_540.0;
                let mut findings = Vec::new();
                for order in ORDERS {
                    let share = value_of(order, "throughput_mbps")? / ideal;
                    findings.push(at_least(
                        &format!("{}, share of 474 Mb/s", order.to_uppercase()),
                        share,
                        0.9,
                        0.75,
                    ));
                }
                findings.push(near(
                    "latency of DRB",
                    "us",
                    value_of("drb", "latency_mean_us")?,
                    839.0,
                ));
                Some(findings)
            }),
        ),
        Claim::new(
            NAME,
            [
                "With ECN, DRB has short queues and nearly the full throughput",
                "in the Fat-tree, 346 us for DRB instead of 839 without ECN; 456, 418 and 340 Mb/s for DRB, RB and RRB",
                "Targets: the ratio of DRB's latency to that without ECN is at most 346 / 839, and the ratios of its \
                 throughput to those of RB and RRB are at least 456 / 418 and 456 / 340. Partial targets: at most 1; \
                 at least 1. Further targets: DRB's latency and throughput are within 10 % of the paper's. Partial \
                 targets: within 25 %.",
            ],
            judge(&[1, 2], &|value_of, _| {
                let latency = value_of("drb", "latency_mean_us")?;
                let without = value_of("drb without", "latency_mean_us")?;
                let drb = value_of("drb", "throughput_mbps")?;
                let rb = value_of("rb", "throughput_mbps")?;
                let rrb = value_of("rrb", "throughput_mbps")?;
                Some(vec![
                    at_most(
                        "latency of DRB, with / without ECN",
                        latency / without,
                        346.0 / 839.0,
                        1.0,
                    ),
                    near("latency of DRB", "us", latency, 346.0),
                    at_least("throughput, DRB / RB", drb / rb, 456.0 / 418.0, 1.0),
                    at_least("throughput, DRB / RRB", drb / rrb, 456.0 / 340.0, 1.0),
                    near("throughput of DRB", "Mb/s", drb, 456.0),
                ])
            }),
        ),
    ];
    all.into_iter().flatten().collect()
}
