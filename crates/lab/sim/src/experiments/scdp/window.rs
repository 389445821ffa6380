//! The window: the symbols in a message's opening, and the maximum in flight (SCDP, Figures 13 and 15).

use super::{link, nic, queue, settings};
use crate::engine::{MS, SECOND, Time};
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use crate::fabric::{Clos, Shape};
use crate::flow::{Flow, NewFlow};
use crate::transport::cloudburst::Cloudburst;
use crate::workload::{List, Workload, derangement};
use crate::{Network, Simulation};
use cloudburst_core::config::BurstPolicy;
use cloudburst_report::Table;
use cloudburst_report::claims::{Claim, Finding, Judged, Reached};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Panel, Series};
use cloudburst_report::numbers::figure;
use cloudburst_report::statistics::Estimate;
use cloudburst_workload::draw::{poisson, stream};
use std::error::Error;

const NAME: &str = "scdp-window";
/// The size of a message in bytes.
const BYTES: u64 = 1_500_000;
/// The size of a background message in bytes. The next one follows at once.
const LONG: u64 = 10_000_000;
/// Messages per second and host at 1 Gb/s: 2,000 per second and 250 hosts (V-A).
const RATE: f64 = 2_000.0 / 250.0;
/// Three of this many hosts send background messages.
const BACKGROUND: u16 = 10;
/// When the background starts, and the earliest start of a message. Sessions are opened earlier.
const BEGINS: [Time; 2] = [5 * MS, 10 * MS];
/// How often the simulation checks whether all messages have been delivered.
const STEP: Time = 10 * MS;
/// The tag of background messages.
const LONG_TAG: u32 = u32::MAX;
/// The window of the paper at each rate in Gb/s (V-F).
const PAPER: [(f64, f64); 3] = [(1.0, 12.0), (5.0, 24.0), (10.0, 32.0)];

/// The experiment. The `x` of a cell is the window in symbols, and the load the rate of links in Gb/s.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "The window of pulled messages (SCDP, Figures 13 and 15)",
    description: "Messages of 1.5 MB between random hosts of a Fat-tree with 250 hosts, 2,000 per second at 1 Gb/s, and \
                  proportionally more at 5 and 10 Gb/s. 30 % of the hosts send background messages back to back, each \
                  to one other host. All messages are pulled, with the same window. The short form has 16 hosts.",
    minutes: [0.1, 25.0, 250.0],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let all = vec![2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 52.0];
    let windows = scale.of(vec![4.0, 12.0, 20.0, 52.0], all);
    let rates = scale.of(vec![1.0], PAPER.map(|(rate, _)| rate).to_vec());
    Cell::all(NAME, &["pull"], &windows, &rates, scale.of(1, 3))
}

/// Messages at random times, and background that never ends.
struct MessagesAndBackground(List);

impl Workload for MessagesAndBackground {
    fn next(&mut self) -> Option<(Time, NewFlow)> {
        self.0.next()
    }

    fn on_delivered(&mut self, _now: Time, flow: &Flow) -> Option<NewFlow> {
        (flow.spec.tag == LONG_TAG).then_some(flow.spec)
    }
}

/// The messages with their start times, and the first background messages.
fn flows(
    hosts: u16,
    per_second: f64,
    span: Time,
    seed: u64,
) -> Result<Vec<(Time, NewFlow)>, Box<dyn Error + Send + Sync>> {
    let to = derangement(hosts, seed)?;
    let mut senders = derangement(hosts, seed + 1)?;
    senders.truncate(usize::from(hosts * 3 / BACKGROUND));
    let background = senders.into_iter().map(|source| {
        let destination = to[usize::from(source)];
        (BEGINS[0], NewFlow { source, destination, transport: 0, bytes: LONG, tag: LONG_TAG })
    });
    let mut flows: Vec<_> = background.collect();
    let mut rng = stream(seed, "sessions", 0);
    let mean = (SECOND as f64 / per_second) as Time;
    let times: Vec<Time> = poisson(&mut rng, mean, span).collect();
    for (tag, at) in (0..).zip(times) {
        let source = rng.below(hosts.into()) as u16;
        let distance = 1 + rng.below(u64::from(hosts) - 1) as u16;
        let destination = (source + distance) % hosts;
        let flow = NewFlow { source, destination, transport: 0, bytes: BYTES, tag };
        flows.push((BEGINS[1] + at, flow));
    }
    Ok(flows)
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let shape = case.scale.of(Shape::fat_tree(4, 1), Shape::fat_tree(10, 1));
    let times = case.cell.load;
    let rate = times as u64 * 1_000_000_000;
    let hosts = shape.hosts() as u16;
    let span = case.scale.span(300 * MS, SECOND) / times as Time;
    let flows = flows(hosts, RATE * f64::from(hosts) * times, span, case.seed)?;
    let pairs = flows.iter().map(|(_, flow)| (flow.source, flow.destination)).collect();
    let policy = BurstPolicy::Pulled { window: Some(case.cell.x as u16) };
    let transport = Cloudburst::new(settings(rate, policy, pairs)?, &shape)?;
    let fabric = Clos::new(shape, link(rate), link(rate), nic, queue)?;
    let workload = Box::new(MessagesAndBackground(List::new(flows)));
    let mut simulation = Simulation::new(fabric, vec![Box::new(transport)], workload, case.seed);
    let last = BEGINS[1] + 10 * span + SECOND;
    simulation.run_until(BEGINS[1] + span, STEP, last, |network| {
        messages(network).all(|flow| flow.acknowledged.is_some())
    });
    let network = simulation.network();
    let mut outcome = Outcome::of(network)?;
    let goodput = |flow: &Flow| {
        let took = flow.delivered? - flow.begun;
        Some(flow.spec.bytes as f64 * 8.0 / (took as f64 / SECOND as f64) / 1e6)
    };
    let mut rates: Vec<f64> = messages(network).map(|flow| goodput(flow).unwrap_or(0.0)).collect();
    rates.sort_by(f64::total_cmp);
    let count = rates.len();
    let excess = |flow: &Flow| Some(f64::from(flow.acknowledged.map(|_| flow.sent - flow.needed)?));
    let excess: Vec<f64> = messages(network).filter_map(excess).collect();
    outcome.put("count", count as f64);
    outcome.put("undelivered", messages(network).filter(|f| f.delivered.is_none()).count() as f64);
    outcome.put("goodput_mbps", rates.iter().sum::<f64>() / count as f64);
    outcome.put("goodput_p10_mbps", rates[count / 10]);
    outcome.put("excess", excess.iter().sum::<f64>() / excess.len().max(1) as f64);
    let ranks =
        rates.iter().rev().enumerate().map(|(rank, &rate)| (rank as f64 / count as f64, rate));
    outcome.put_series("goodput", ranks.collect());
    Ok(outcome)
}

fn messages(network: &Network) -> impl Iterator<Item = &Flow> {
    network.flows().as_slice().iter().filter(|flow| flow.spec.tag != LONG_TAG)
}

fn report(results: &Results<'_>) -> Part {
    let mut part = Part::default();
    for (stem, value, y, caption) in [
        (
            "scdp-window-goodput",
            "goodput_mbps",
            "Mb/s",
            "Mean goodput of messages of 1.5 MB (Figures 13 a and 15).",
        ),
        (
            "scdp-window-excess",
            "excess",
            "symbols",
            "Symbols sent beyond those needed, per message (Figure 13 b: trimmed packets).",
        ),
    ] {
        part.figures.push(curves(results, value, y).figure(stem, caption));
    }
    let row = |record: &&crate::experiment::Record| {
        let values = ["count", "undelivered", "goodput_mbps", "goodput_p10_mbps", "excess"];
        let value =
            |name: &str| record.outcome.values.get(name).map_or("—".into(), |&v| figure(v));
        let point = [record.cell.load, record.cell.x].map(|of| of.to_string());
        point.into_iter().chain(values.map(value)).collect()
    };
    let head = [
        "Gb/s",
        "window",
        "messages",
        "undelivered",
        "goodput (Mb/s)",
        "p10 (Mb/s)",
        "excess symbols",
    ];
    let rows = results.records.iter().map(row).collect();
    part.tables.push(Table::new("Windows", &head, rows).folded());
    part.claims = claims(results);
    part
}

/// A chart over windows, with a panel for each rate.
fn curves(results: &Results<'_>, value: &str, y: &str) -> Chart {
    let panel = |&rate: &f64| {
        let mut xs = results.xs();
        xs.sort_by(f64::total_cmp);
        let dot = |&x: &f64| Some((x, results.estimate("pull", x, rate, value)?));
        let dots: Vec<(f64, Estimate)> = xs.iter().filter_map(dot).collect();
        Panel {
            title: format!("{rate} Gb/s"),
            x: "window (symbols)".to_owned(),
            across: Across::Measured(Axis::Linear),
            joined: true,
            series: vec![Series { entry: Entry::nth(0, "pulled"), dots }],
        }
    };
    let panels = results.loads().iter().map(panel).collect();
    Chart { y: y.to_owned(), up: Axis::Linear, columns: 2, height: 260.0, panels }
}

fn claims(results: &Results<'_>) -> Vec<Claim> {
    let value = |x, rate, name| Some(results.estimate("pull", x, rate, name)?.value);
    let goodput = |x, rate| value(x, rate, "goodput_mbps");
    let highest = |rate| {
        let all = results.xs().into_iter().filter_map(|x| goodput(x, rate));
        all.reduce(f64::max)
    };
    let share = |x, rate| Some(goodput(x, rate)? / highest(rate)?);
    let found = |what: &str, value: f64, whole: bool, part: bool| -> Finding {
        (Reached::of(whole, part), format!("{what}: {}", figure(value)))
    };
    let shape = || {
        let few = share(4.0, 1.0)?;
        let many = share(52.0, 1.0)?;
        let mut findings = vec![
            found("window 4, share of the highest", few, few <= 0.9, few < 1.0),
            found("window 52, share of the highest", many, many <= 0.9, many < 1.0),
        ];
        for x in [12.0, 16.0, 20.0, 24.0] {
            if let Some(of) = share(x, 1.0) {
                let what = format!("window {x}, share of the highest");
                findings.push(found(&what, of, of >= 0.9, of >= 0.75));
            }
        }
        Judged::new("1 Gb/s", findings)
    };
    let losses = || {
        let excess = |x| value(x, 1.0, "excess");
        let at_12 = excess(12.0)?;
        let at_20 = excess(20.0)?;
        let at_52 = excess(52.0)?;
        let at_12 = at_12.max(0.01);
        let at_20 = at_20.max(0.01);
        let at_52 = at_52.max(0.01);
        Judged::new(
            "1 Gb/s",
            vec![
                found("windows 20 / 12", at_20 / at_12, at_20 >= 1.5 * at_12, at_20 > at_12),
                found("windows 52 / 20", at_52 / at_20, at_52 >= 1.1 * at_20, at_52 > at_20),
            ],
        )
    };
    let rates = PAPER.map(|(rate, window)| {
        let of = share(window, rate)?;
        let what = format!("window {window}, share of the highest");
        Judged::new(format!("{rate} Gb/s"), vec![found(&what, of, of >= 0.9, of >= 0.75)])
    });
    let all = [
        Claim::new(
            NAME,
            [
                "Goodput rises with the window up to 12 symbols, stays there up to 24, and is lower at 52",
                "near the link's rate from 12 to 24, and significantly lower at 52 (Figure 13 a)",
                "The mean goodput as a share of the highest over all windows. Targets: at most 0.9 for windows of 4 and \
                 52; at least 0.9 for 12 to 24. Partial targets: below 1; at least 0.75.",
            ],
            [shape()],
        ),
        Claim::new(
            NAME,
            [
                "A larger window loses more symbols",
                "13 trimmed packets per message of 1.5 MB with a window of 12, 32 with 20, 39 with 52 (Figure 13 b)",
                "The mean number of symbols beyond those needed. Targets: a window of 20 has at least 1.5 times as many \
                 as one of 12, and one of 52 at least 1.1 times as many as one of 20. Partial targets: a larger window \
                 has more.",
            ],
            [losses()],
        ),
        Claim::new(
            NAME,
            [
                "Windows of 12, 24 and 32 symbols fill links of 1, 5 and 10 Gb/s",
                "the same (Figure 15)",
                "The mean goodput with that window as a share of the highest over all windows. Target: at least 0.9. \
                 Partial target: at least 0.75.",
            ],
            rates,
        ),
    ];
    all.into_iter().flatten().collect()
}
