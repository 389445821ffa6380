//! Five senders to one receiver, which start one after the other (SCDP, Figure 17).

use super::{link, nic, queue, settings};
use crate::Simulation;
use crate::engine::{Kind, Packet, SECOND, Time};
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Record, Results, Scale};
use crate::fabric::{Clos, Shape};
use crate::flow::{Flow, NewFlow};
use crate::trace::{Point, Tap};
use crate::transport::cloudburst::Cloudburst;
use crate::workload::{List, Workload};
use cloudburst_core::config::{self, BurstPolicy};
use cloudburst_report::Table;
use cloudburst_report::claims::{Claim, Judged, Reached};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Panel, Series};
use cloudburst_report::numbers::figure;
use cloudburst_report::statistics::Estimate;
use core::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

const NAME: &str = "scdp-shares";
const RATE: u64 = 1_000_000_000;
const SENDERS: usize = 5;
/// How long a sender sends, in intervals between starts.
const LASTS: Time = 9;
/// The number of bins in which an interval is measured.
const BINS: usize = 20;
/// The size of a message. The next one follows at once.
const BYTES: u64 = 1_000_000;
/// The schemes, with their names in figures.
const SCHEMES: [(&str, &str); 3] =
    [("pull", "pulled"), ("burst", "bursts"), ("burst-one", "bursts, one class")];

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Senders that begin one after the other (SCDP, Figure 17)",
    description: "Five hosts at one switch send to a sixth at 1 Gb/s. They begin 2 s apart, and each sends messages of \
                  1 MB back to back for 18 s. Messages are pulled or sent as bursts, in four classes; bursts also \
                  in one. The shorter forms have a tenth of these times.",
    minutes: [0.1, 0.1, 0.7],
    cells,
    run,
    report,
};

fn cells(_scale: Scale) -> Vec<Cell> {
    Cell::all(NAME, &SCHEMES.map(|(name, _)| name), &[0.0], &[0.0], 1)
}

/// Messages of each sender, back to back until its time is over.
struct BackToBack {
    first: List,
    interval: Time,
}

impl Workload for BackToBack {
    fn next(&mut self) -> Option<(Time, NewFlow)> {
        self.first.next()
    }

    fn on_delivered(&mut self, now: Time, flow: &Flow) -> Option<NewFlow> {
        let ends = (Time::from(flow.spec.source) + LASTS) * self.interval;
        (now < ends).then_some(flow.spec)
    }
}

/// Bytes of symbols that arrived, by bin and sender.
#[derive(Clone, Debug, Default)]
struct ArrivedBytes(Rc<RefCell<Vec<[u64; SENDERS]>>>);

/// Counts arrivals in bins of length `bin`.
struct Counter {
    arrivals: ArrivedBytes,
    bin: Time,
}

impl Tap for Counter {
    fn see(&mut self, now: Time, point: Point, packet: &Packet, _bytes: &[u8]) {
        if point != Point::Arrived || packet.kind != Kind::Data {
            return;
        }
        let mut bins = self.arrivals.0.borrow_mut();
        let bin = (now / self.bin) as usize;
        if bins.len() <= bin {
            bins.resize(bin + 1, [0; SENDERS]);
        }
        if let Some(bytes) = bins[bin].get_mut(usize::from(packet.source)) {
            *bytes += u64::from(packet.size);
        }
    }
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let interval = match case.scale {
        Scale::Full => 2 * SECOND,
        Scale::Short | Scale::Medium => SECOND / 5,
    };
    let policy = match case.cell.scheme.as_str() {
        "pull" => BurstPolicy::Pulled { window: None },
        _ => BurstPolicy::default(),
    };
    let shape = Shape::one_switch(SENDERS as u16 + 1);
    let receiver = SENDERS as u16;
    let pairs = (0..receiver).map(|sender| (sender, receiver)).collect();
    let mut settings = settings(RATE, policy, pairs)?;
    if case.cell.scheme == "burst-one" {
        settings.config.fabric.classes = config::Classes::One;
    }
    let transport = Cloudburst::new(settings, &shape)?;
    let first = (0..receiver).map(|source| {
        let flow = NewFlow { source, destination: receiver, transport: 0, bytes: BYTES, tag: 0 };
        (Time::from(source) * interval, flow)
    });
    let workload = BackToBack { first: List::new(first.collect()), interval };
    let fabric = Clos::new(shape, link(RATE), link(RATE), nic, queue)?;
    let mut simulation =
        Simulation::new(fabric, vec![Box::new(transport)], Box::new(workload), case.seed);
    let arrivals = ArrivedBytes::default();
    let bin = interval / BINS as Time;
    simulation.network_mut().set_tap(Some(Box::new(Counter { arrivals: arrivals.clone(), bin })));
    simulation.run((SENDERS as Time + LASTS) * interval);
    let mut outcome = Outcome::of(simulation.network())?;
    put(&arrivals.0.borrow(), bin, &mut outcome);
    Ok(outcome)
}

/// Adds the shares of senders to `outcome`.
///
/// | value | meaning |
/// |---|---|
/// | `fairness` | Jain's index of the active senders, minimum over intervals with two or more |
/// | `total` | their total throughput, as a share of the link, minimum over intervals |
/// | `settled_ms` | time from a start until the new sender has 0.8 of its fair share, maximum |
///
/// The first two are measured in the second half of each interval between two starts or ends. The series `sender0` to
/// `sender4` are seconds and Mb/s.
fn put(bins: &[[u64; SENDERS]], bin: Time, outcome: &mut Outcome) {
    let seconds = bin as f64 / SECOND as f64;
    let full = RATE as f64 / 8.0 * seconds;
    let is_active =
        |interval: usize, sender: usize| (sender..sender + LASTS as usize).contains(&interval);
    let mut fairness: f64 = 1.0;
    let mut total = f64::INFINITY;
    let mut settled: f64 = 0.0;
    for interval in 0..SENDERS + LASTS as usize - 1 {
        let active: Vec<usize> =
            (0..SENDERS).filter(|&sender| is_active(interval, sender)).collect();
        let measured = interval * BINS + BINS / 2..(interval + 1) * BINS;
        let sum = |&sender: &usize| {
            let bytes = measured.clone().map(|bin| bins.get(bin).map_or(0, |bin| bin[sender]));
            bytes.sum::<u64>() as f64
        };
        let shares: Vec<f64> = active.iter().map(sum).collect();
        let all: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        fairness = fairness.min(all * all / (squares * shares.len() as f64));
        total = total.min(all / (full * (BINS / 2) as f64));
        if (1..SENDERS).contains(&interval) {
            let fair = full / active.len() as f64;
            let mut since = bins.iter().skip(interval * BINS);
            let reached = since.position(|bin| bin[interval] as f64 >= 0.8 * fair);
            let reached = reached.map_or(f64::INFINITY, |bin| (bin + 1) as f64 * seconds * 1e3);
            settled = settled.max(reached);
        }
    }
    outcome.put("fairness", fairness);
    outcome.put("total", total);
    outcome.put("settled_ms", settled);
    outcome.put("bin_ms", seconds * 1e3);
    for sender in 0..SENDERS {
        let dot = |(at, bin): (usize, &[u64; SENDERS])| {
            (at as f64 * seconds, bin[sender] as f64 * 8.0 / seconds / 1e6)
        };
        outcome.put_series(format!("sender{sender}"), bins.iter().enumerate().map(dot).collect());
    }
}

fn report(results: &Results<'_>) -> Part {
    let record = |scheme: &str| results.at(scheme, 0.0, 0.0).next();
    let panel = |(scheme, title): &(&str, &str)| {
        let record = record(scheme)?;
        let series = (0..SENDERS).filter_map(|sender| {
            let curve = record.outcome.series.get(&format!("sender{sender}"))?;
            let dots = curve.iter().map(|&(x, y)| (x, Estimate::exact(y))).collect();
            Some(Series { entry: Entry::nth(sender, format!("sender {}", sender + 1)), dots })
        });
        Some(Panel {
            title: (*title).to_owned(),
            x: "time (s)".to_owned(),
            across: Across::Measured(Axis::Linear),
            joined: true,
            series: series.collect(),
        })
    };
    let panels = SCHEMES.iter().filter_map(panel).collect();
    let chart = Chart { y: "Mb/s".to_owned(), up: Axis::Linear, columns: 1, height: 260.0, panels };
    let values = ["fairness", "total", "settled_ms", "bin_ms"];
    let row = |(scheme, title): &(&str, &str)| {
        let of = |record: &Record| values.map(|name| figure(record.outcome.values[name]));
        Some([vec![(*title).to_owned()], of(record(scheme)?).into()].concat())
    };
    let head = ["messages", "Jain's index", "share of the link", "settled (ms)", "bin (ms)"];
    let rows = SCHEMES.iter().filter_map(row).collect();
    let judged = SCHEMES.map(|(scheme, title)| {
        let values = &record(scheme)?.outcome.values;
        let [fairness, total, settled, bin] =
            ["fairness", "total", "settled_ms", "bin_ms"].map(|name| values[name]);
        let finding = |what: &str, value, whole, part| {
            (Reached::of(whole, part), format!("{what} {}", figure(value)))
        };
        Judged::new(
            title,
            vec![
                finding("Jain's index", fairness, fairness >= 0.99, fairness >= 0.9),
                finding("share of the link", total, total >= 0.95, total >= 0.85),
                finding("settling time in ms:", settled, settled <= bin, settled <= 4.0 * bin),
            ],
        )
    });
    let claim = Claim::new(
        NAME,
        [
            "Five senders that begin one after the other soon share the link fairly",
            "each \"acquires a fair share very quickly\" (Figure 17)",
            "Targets: in the second half of each interval between two starts or ends, Jain's index is at least 0.99 \
             and the senders together have 0.95 of the link; a new sender has 0.8 of its fair share in the first of the \
             20 bins of an interval. Partial targets: 0.9; 0.85; in one of the first four bins.",
        ],
        judged,
    );
    Part {
        figures: vec![chart.figure(NAME, "Throughput of five senders, in IP bytes (Figure 17).")],
        tables: vec![Table::new("Shares of five senders", &head, rows)],
        claims: claim.into_iter().collect(),
    }
}
