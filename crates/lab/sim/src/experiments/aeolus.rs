//! Selective dropping in incasts (Aeolus, SIGCOMM 2020, section 5: Table 5 and Figure 17).
//!
//! Cloudburst marks packets as Aeolus does: packets of a message before its first answer are Not-ECT, all others
//! ECT(0). Switches drop Not-ECT packets that find 6 KB in the queue, and others only if it is full.

use crate::engine::{Ecn, MS, Packet, SECOND, Time, US};
use crate::experiment::{
    Case, Cell, Completion, Experiment, Outcome, Part, Record, Results, Scale,
};
use crate::fabric::{Clos, Link, Shape};
use crate::flow::NewFlow;
use crate::queue::{Aeolus, Depth, Discipline, DropTail};
use crate::trace::{Point, Tap};
use crate::transport::Transport;
use crate::transport::burst::{self, Burst};
use crate::transport::cloudburst::{Cloudburst, Sessions, Settings};
use crate::workload::List;
use crate::{Network, Simulation};
use cloudburst_core::config::{BurstPolicy, Config, EcnMode, Fabric, Tuning};
use cloudburst_report::Table;
use cloudburst_report::claims::{Claim, Finding, Judged, Reached};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Panel, Series};
use cloudburst_report::numbers::figure;
use cloudburst_workload::draw::stream;
use core::cell::Cell as Counter;
use std::error::Error;
use std::rc::Rc;

const NAME: &str = "aeolus-incast";
/// The limit of a port's queue in bytes: the paper's, and that of Cloudburst's tiny queue.
const BUFFER: usize = 500_000;
const TINY: usize = 40_000;
/// The threshold of selective dropping, in bytes.
const THRESHOLD: u64 = 6_000;
/// When all messages start. Sessions are opened earlier.
const BEGINS: Time = 20 * MS;
/// The maximum time for which an incast is simulated.
const LONGEST: Time = 2 * SECOND;
const EDGE: Link = Link { rate: 100_000_000_000, delay: 450_000 };
const CORE: Link = Link { rate: 400_000_000_000, delay: 450_000 };

/// The settings of messages and switches.
struct Variant {
    name: &'static str,
    title: &'static str,
    policy: BurstPolicy,
    probe: bool,
    aeolus: bool,
    /// The limit of a port's queue in bytes.
    buffer: usize,
}

const BURST: Variant = Variant {
    name: "burst",
    title: "bursts",
    policy: BurstPolicy::Budgeted { margin: 1.0 / 16.0 },
    probe: false,
    aeolus: false,
    buffer: BUFFER,
};
const BURST_AEOLUS: Variant =
    Variant { name: "burst-aeolus", title: "bursts, Aeolus", probe: true, aeolus: true, ..BURST };
const PULL: Variant = Variant {
    name: "pull",
    title: "pulled",
    policy: BurstPolicy::Pulled { window: None },
    probe: true,
    ..BURST
};
const PULL_AEOLUS: Variant =
    Variant { name: "pull-aeolus", title: "pulled, Aeolus", aeolus: true, ..PULL };

const SCHEMES: [Variant; 9] = [
    BURST,
    Variant {
        name: "burst-marks",
        title: "bursts, Aeolus without probes",
        probe: false,
        ..BURST_AEOLUS
    },
    BURST_AEOLUS,
    PULL,
    PULL_AEOLUS,
    Variant { name: "burst-tiny", title: "bursts, 40 KB", buffer: TINY, ..BURST },
    Variant {
        name: "burst-aeolus-tiny",
        title: "bursts, Aeolus, 40 KB",
        buffer: TINY,
        ..BURST_AEOLUS
    },
    Variant { name: "pull-tiny", title: "pulled, 40 KB", buffer: TINY, ..PULL },
    Variant {
        name: "pull-aeolus-tiny",
        title: "pulled, Aeolus, 40 KB",
        buffer: TINY,
        ..PULL_AEOLUS
    },
];

/// The experiment. The `x` of a cell is the number of senders, and the load the size of a message in KB.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Selective dropping in incasts (Aeolus, Table 5 and Figure 17)",
    description: "N messages of 64 KB start at the same time, from random hosts to one other host of 144 in a \
                  leaf-spine fabric at 100 and 400 Gb/s; or 20 messages of 400 KB start at one switch. Ports hold \
                  500 KB in one queue, or 40 KB. With Aeolus, they drop Not-ECT packets beyond 6 KB.",
    minutes: [0.1, 0.5, 0.5],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let schemes = SCHEMES.each_ref().map(|scheme| scheme.name);
    let senders = scale.of(vec![32.0, 64.0], vec![32.0, 64.0, 128.0, 256.0]);
    let repetitions = scale.of(1, 5);
    let mut cells = Cell::all(NAME, &schemes, &[20.0], &[400.0], repetitions);
    cells.extend(Cell::all(NAME, &schemes, &senders, &[64.0], repetitions));
    cells
}

/// The numbers of packets that queues have dropped: Not-ECT, and ECT(0).
#[derive(Clone, Debug, Default)]
struct Drops(Rc<[Counter<u64>; 2]>);

impl Tap for Drops {
    fn see(&mut self, now: Time, point: Point, packet: &Packet, _bytes: &[u8]) {
        if matches!(point, Point::Dropped(_)) && now >= BEGINS {
            let count = &self.0[usize::from(packet.ecn != Ecn::NotCapable)];
            count.set(count.get() + 1);
        }
    }
}

fn fabric(shape: Shape, scheme: &Variant) -> Result<Clos, Box<dyn Error + Send + Sync>> {
    let queue = |link: Link| -> Discipline {
        match scheme.aeolus {
            true => Aeolus::new(link.rate, THRESHOLD, scheme.buffer as u64).into(),
            false => DropTail::new(Depth::Bytes(scheme.buffer)).into(),
        }
    };
    Ok(Clos::new(shape, EDGE, CORE, |_| DropTail::new(Depth::Unlimited).into(), queue)?)
}

/// Simulates `flows` until all have been acknowledged, or for [`LONGEST`].
fn simulate(
    fabric: Clos,
    transport: Box<dyn Transport>,
    flows: Vec<(Time, NewFlow)>,
    drops: &Drops,
    seed: u64,
) -> Simulation {
    let workload = Box::new(List::new(flows));
    let mut simulation = Simulation::new(fabric, vec![transport], workload, seed);
    simulation.network_mut().set_tap(Some(Box::new(drops.clone())));
    let ended = |network: &Network| {
        network.flows().as_slice().iter().all(|flow| flow.acknowledged.is_some())
    };
    simulation.run_until(BEGINS, MS, BEGINS + LONGEST, ended);
    simulation
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let named = |scheme: &&Variant| scheme.name == case.cell.scheme;
    let scheme = SCHEMES.iter().find(named).ok_or("unknown scheme")?;
    let bytes = case.cell.load as u64 * 1_000;
    let senders = case.cell.x as u32;
    let is_small = case.cell.load == 400.0;
    let shape = if is_small { Shape::one_switch(21) } else { Shape::leaf_spine(16, 9, 4) };
    let receiver = shape.hosts() as u16 - 1;
    let mut rng = stream(case.seed, "senders", 0);
    let mut source = |number: u32| match is_small {
        true => number as u16,
        false => rng.below(receiver.into()) as u16,
    };
    let flows = (0..senders).map(|tag| {
        let flow = NewFlow { source: source(tag), destination: receiver, transport: 0, bytes, tag };
        (BEGINS, flow)
    });
    let flows: Vec<_> = flows.collect();

    // The baseline of slowdowns: a single message of the model, without the headers that differ between transports.
    let model = burst::Config { link: EDGE.rate, ..burst::Config::default() };
    let drops = Drops::default();
    let one = vec![flows[0]];
    let alone = simulate(fabric(shape, &BURST)?, Box::new(Burst::new(model)), one, &drops, 1);
    let alone =
        alone.network().flows()[0].delivered.ok_or("the single message did not arrive")? - BEGINS;

    let config = Config {
        capacity: EDGE.rate.into(),
        policy: scheme.policy,
        fabric: Fabric {
            ecn: if scheme.aeolus { EcnMode::Aeolus } else { EcnMode::Off },
            ..Fabric::default()
        },
        tuning: Tuning { probe: scheme.probe, ..Tuning::default() },
        ..Config::default()
    };
    let mut pairs: Vec<_> = flows.iter().map(|(_, flow)| (flow.source, receiver)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let settings = Settings { sessions: Sessions::Between(pairs), ..Settings::new(config) };
    let transport = Box::new(Cloudburst::new(settings, &shape)?);
    let simulation = simulate(fabric(shape, scheme)?, transport, flows, &drops, case.seed);
    let network = simulation.network();
    let mut outcome = Outcome::of(network)?;
    let mut times = Completion::new();
    let mut slowest = 0.0_f64;
    let mut sum = 0.0;
    let all = network.flows().as_slice();
    for flow in all {
        let took = flow.delivered.map(|at| at - flow.begun);
        times.record(bytes, took);
        let took = took.map_or(f64::INFINITY, |took| took as f64);
        slowest = slowest.max(took);
        sum += took;
    }
    times.put("", &mut outcome);
    let p99 = outcome.values[&format!("p99_us/{bytes}")] * US as f64;
    outcome.put("slowdown_mean", sum / all.len() as f64 / alone as f64);
    outcome.put("slowdown_p99", p99 / alone as f64);
    outcome.put("mean_us", sum / all.len() as f64 / US as f64);
    outcome.put("last_us", slowest / US as f64);
    let packets =
        |of: fn(&crate::Flow) -> u32| all.iter().map(|flow| u64::from(of(flow))).sum::<u64>();
    let needed = packets(|flow| flow.needed) as f64;
    outcome.put("sent", packets(|flow| flow.sent) as f64 / needed);
    outcome.put("dropped_not_ect", drops.0[0].get() as f64);
    outcome.put("dropped_ect", drops.0[1].get() as f64);
    Ok(outcome)
}

fn report(results: &Results<'_>) -> Part {
    let title = |name: &str| SCHEMES.iter().find(|s| s.name == name).map_or("", |s| s.title);
    let chart = |value: &str, y: &str| {
        let mut xs = results.xs();
        xs.sort_by(f64::total_cmp);
        let series = results.schemes().into_iter().enumerate().map(|(index, scheme)| {
            let dot = |&x: &f64| Some((x, results.estimate(scheme, x, 64.0, value)?));
            Series {
                entry: Entry::nth(index, title(scheme)),
                dots: xs.iter().filter_map(dot).collect(),
            }
        });
        let panel = Panel {
            title: String::new(),
            x: "senders".to_owned(),
            across: Across::Measured(Axis::Linear),
            joined: true,
            series: series.filter(|series| !series.dots.is_empty()).collect(),
        };
        let y = y.to_owned();
        let panels = vec![panel];
        Chart { y, up: Axis::Logarithmic, columns: 1, height: 300.0, panels }
    };
    let head = [
        "scheme",
        "senders",
        "KB",
        "mean (us)",
        "last (us)",
        "slowdown, mean",
        "slowdown, p99",
        "sent per packet needed",
        "dropped, Not-ECT",
        "dropped, ECT(0)",
    ];
    let values = [
        "mean_us",
        "last_us",
        "slowdown_mean",
        "slowdown_p99",
        "sent",
        "dropped_not_ect",
        "dropped_ect",
    ];
    let row = |record: &&Record| {
        let cell = &record.cell;
        let value =
            |name: &str| figure(record.outcome.values.get(name).copied().unwrap_or(f64::INFINITY));
        let point = [title(&cell.scheme).to_owned(), cell.x.to_string(), cell.load.to_string()];
        point.into_iter().chain(values.map(value)).collect()
    };
    let first = results.records.iter().filter(|record| record.cell.repetition == 0);
    Part {
        figures: vec![
            chart("slowdown_mean", "slowdown").figure(
                "aeolus-incast-mean",
                "Mean FCT slowdown of N messages of 64 KB (Figure 17 a).",
            ),
            chart("slowdown_p99", "slowdown").figure(
                "aeolus-incast-p99",
                "FCT slowdown at p99 of N messages of 64 KB (Figure 17 b).",
            ),
        ],
        tables: vec![Table::new("Incasts, first repetition", &head, first.map(row).collect())],
        claims: claims(results),
    }
}

fn claims(results: &Results<'_>) -> Vec<Claim> {
    let points: Vec<(f64, f64)> = results.records.iter().map(|r| (r.cell.x, r.cell.load)).collect();
    let most = |scheme: &str, name: &str| {
        let values = points.iter().flat_map(|&(x, load)| results.values(scheme, x, load, name));
        values.reduce(f64::max)
    };
    let spared = ["burst-aeolus", "pull-aeolus"].map(|scheme| {
        let spared = most(scheme, "dropped_ect")?;
        let dropped = most(scheme, "dropped_not_ect")?;
        let whole = spared == 0.0 && dropped > 0.0;
        let found = format!(
            "at most {} ECT(0) and {} Not-ECT packets dropped in a run",
            figure(spared),
            figure(dropped)
        );
        let title = SCHEMES.iter().find(|s| s.name == scheme)?.title;
        Judged::new(title, vec![(Reached::of(whole, spared < 0.01 * dropped), found)])
    });
    // The ratio of a value with Aeolus to that without, the worst over all points of a load.
    let ratio = |transport: &str, load: f64, name: &str| {
        let at = |x| {
            let value = |scheme: &str| Some(results.estimate(scheme, x, load, name)?.value);
            Some(value(&format!("{transport}-aeolus"))? / value(transport)?)
        };
        results.xs().into_iter().filter_map(at).reduce(f64::max)
    };
    let below = |load: f64, names: [&'static str; 2], whole: f64, part: f64| {
        let titles = [("burst", "bursts"), ("pull", "pulled")];
        titles.map(|(transport, title)| {
            let finding = |name: &str| -> Option<Finding> {
                let of = ratio(transport, load, name)?;
                let found = format!("{name}, with Aeolus / without: at most {}", figure(of));
                Some((Reached::of(of <= whole, of <= part), found))
            };
            Judged::new(title, names.iter().map(|name| finding(name)).collect::<Option<_>>()?)
        })
    };
    let all = [
        Claim::new(
            NAME,
            [
                "Selective dropping spares scheduled packets",
                "losses of scheduled packets are eliminated (sections 5 and 8)",
                "Target: Not-ECT packets are dropped, and no ECT(0) packet is, in any run. Partial target: fewer \
                 than 1 % as many ECT(0) as Not-ECT packets.",
            ],
            spared,
        ),
        Claim::new(
            NAME,
            [
                "Under heavy incast, messages take no longer with Aeolus",
                "much shorter for Homa, similar for ExpressPass and NDP (Figure 17)",
                "The ratios of the mean and the p99 slowdown of messages of 64 KB with Aeolus to those without, the \
                 largest over N. Target: at most 1.05. Partial target: at most 1.25.",
            ],
            below(64.0, ["slowdown_mean", "slowdown_p99"], 1.05, 1.25),
        ),
        Claim::new(
            NAME,
            [
                "20 messages of 400 KB take a tenth of the time with Aeolus",
                "mean and maximum FCT about 10 times lower than with priority queueing and a timeout of 10 ms (Table 5)",
                "The ratios of the mean and the last completion time of 20 messages with Aeolus to those without it, in \
                 one queue. Target: at most 0.1. Partial target: below 1.",
            ],
            below(400.0, ["mean_us", "last_us"], 0.1, 0.999),
        ),
    ];
    all.into_iter().flatten().collect()
}
