//! The lower bound of the completion time of an incast.
//!
//! N of the 144 hosts of Cloudburst V-D each send a message of 60 packets to one host in another rack, at the same
//! time. The first packet reaches the last switch after transmissions of 1.2, 0.3 and 0.3 us and three links of
//! 2 us. From then on, N x 60 packets leave on one link in 1.2 us each, and the last one takes 2 us on that link.
//! The last message is therefore complete no earlier than N x 72 + 9.8 us. With one sender, this is the idle flow
//! of 81.8 us.

use crate::engine::{SECOND, Time, US};
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use crate::fabric::{Link, Shape};
use crate::scheme::{SCHEMES, Scheme, TINY};
use crate::workload::incast;
use crate::{Flow, Simulation};
use cloudburst_report::Table;
use cloudburst_report::claims::{Claim, Judged, Reached};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Panel, Series};
use cloudburst_report::numbers::figure;
use cloudburst_report::statistics::Estimate;
use std::error::Error;

const NAME: &str = "incast-bound";
/// The queue limit of switch ports for Cloudburst, in packets.
const QUEUE: usize = 8;
/// The size of a message, in packets and in bytes.
const PACKETS: u64 = 60;
const BYTES: u64 = PACKETS * 1_460;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Incast and its bound",
    description: "N of 144 hosts each send 60 packets to one host at the same time, at 10 Gb/s. The switch \
                  queues hold 8 packets for Cloudburst; the other transports have the queues that they are \
                  designed for. Sessions are opened on demand. The last message cannot be complete before \
                  N x 72 + 9.8 us.",
    minutes: [0.1, 0.5, 0.5],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let senders: Vec<f64> =
        scale.of(vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], (1..=64).map(f64::from).collect());
    let schemes = SCHEMES.each_ref().map(|scheme| scheme.name);
    Cell::all(NAME, &schemes, &senders, &[0.0], scale.of(1, 3))
}

/// The earliest time at which the last of `senders` messages can be complete.
fn bound(senders: u64) -> Time {
    senders * PACKETS * 12 * US / 10 + 98 * US / 10
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let edge = Link { rate: 10_000_000_000, delay: 2 * US };
    let core = Link { rate: 40_000_000_000, delay: 2 * US };
    let scheme = Scheme::find(&case.cell.scheme).ok_or("unknown scheme")?;
    let packets = (scheme.packets == TINY).then_some(QUEUE);
    let shape = Shape::leaf_spine(16, 9, 4);
    let fabric = scheme.fabric(shape, edge, core, packets)?;
    let senders = case.cell.x as u16;
    // The receiver's leaf has no senders.
    let workload = incast(0..senders, 143, BYTES, 0);
    let transport = (scheme.transport)(&shape, edge)?;
    let mut simulation = Simulation::new(fabric, vec![transport], Box::new(workload), case.seed);
    simulation.run(SECOND);
    let network = simulation.network();
    let flows = network.flows().as_slice();
    let delivered: Option<Vec<Time>> = flows.iter().map(|flow| flow.delivered).collect();
    let last = delivered.and_then(|times| times.into_iter().max());
    let last = last.ok_or("a message was not delivered within a second")?;
    let packets = |of: fn(&Flow) -> u32| flows.iter().map(|flow| u64::from(of(flow))).sum::<u64>();
    let mut outcome = Outcome::of(network)?;
    outcome.put("last_us", last as f64 / US as f64);
    outcome.put("over_bound", last as f64 / bound(u64::from(senders)) as f64);
    outcome.put("sent", packets(|flow| flow.sent) as f64 / packets(|flow| flow.needed) as f64);
    Ok(outcome)
}

fn report(results: &Results<'_>) -> Part {
    let mut part = Part::default();
    let schemes = results.schemes();
    let xs = results.xs();
    let curve = |scheme: &str, value: &str| -> Vec<(f64, Estimate)> {
        let dot = |&x: &f64| Some((x, results.estimate(scheme, x, 0.0, value)?));
        xs.iter().filter_map(dot).collect()
    };
    let series = schemes.iter().enumerate().map(|(index, scheme)| Series {
        entry: Entry::nth(index, *scheme),
        dots: curve(scheme, "over_bound"),
    });
    let panel = Panel {
        title: "Completion of the last message".to_owned(),
        x: "senders".to_owned(),
        across: Across::Measured(Axis::Linear),
        joined: true,
        series: series.collect(),
    };
    let chart = Chart {
        y: "multiple of the bound".to_owned(),
        up: Axis::Linear,
        columns: 1,
        height: 300.0,
        panels: vec![panel],
    };
    part.figures.push(chart.figure(
        NAME,
        "Completion time of the last of N messages, as a multiple of N x 72 + 9.8 us.",
    ));
    let mut rows = Vec::new();
    for scheme in &schemes {
        for &x in &xs {
            let value = |name| {
                let value = results.estimate(scheme, x, 0.0, name);
                value.map_or("—".to_owned(), |value| figure(value.value))
            };
            let name = (*scheme).to_owned();
            rows.push(vec![
                name,
                x.to_string(),
                value("last_us"),
                value("over_bound"),
                value("sent"),
            ]);
        }
    }
    let head =
        ["scheme", "senders", "last (us)", "multiple of the bound", "sent per packet needed"];
    part.tables.push(Table::new("The last message of an incast", &head, rows).folded());
    let judged = schemes.iter().map(|scheme| {
        let all = results.records.iter().filter(|record| record.cell.scheme == *scheme);
        let least = all.filter_map(|record| record.outcome.values.get("over_bound"));
        let least = least.copied().reduce(f64::min)?;
        let finding = format!("the fastest took {least:.4} times the bound");
        Judged::new(*scheme, vec![(Reached::of(least >= 1.0, false), finding)])
    });
    part.claims.extend(Claim::new(
        NAME,
        [
            "No incast is faster than its bound",
            "none: the bound is arithmetic",
            "Target: the last message takes at least N x 72 + 9.8 us in every cell.",
        ],
        judged,
    ));
    part
}
