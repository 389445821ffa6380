//! V-C: N messages to one host at once.

use super::setup::{self, MESSAGES, Setup};
use super::show;
use super::site::{Site, TESTBED};
use crate::Simulation;
use crate::engine::{MS, SECOND, Time, US};
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use crate::flow::NewFlow;
use crate::queue::Depth;
use crate::workload::List;
use cloudburst_report::Table;
use cloudburst_report::claims::{Claim, Judged, Reached};
use cloudburst_report::numbers::figure;
use cloudburst_report::statistics::linear_fit;
use cloudburst_workload::paper;
use std::error::Error;

const NAME: &str = "incast";
/// The size of a message in bytes.
const BYTES: u64 = paper::INCAST_PACKETS * 1_460;
/// When all messages start. Sessions are opened earlier.
const BEGINS: Time = 100 * MS;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Incast (Cloudburst, V-C)",
    description: "N messages of 60 packets start at the same time on the paper's testbed. Each of the four hosts of \
                  one rack sends the same number of them, all to one host of the other rack. Switch ports hold 100 KB. \
                  There is no other traffic.",
    minutes: [0.1, 0.5, 0.5],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let flows = scale.of(vec![4.0, 16.0, 32.0], (1..=16).map(|step| f64::from(4 * step)).collect());
    let schemes = ["dctcp", "pias", "replicated-2", "mptcp", "d", "d-ours", "d-pull"];
    Cell::all(NAME, &schemes, &flows, &[0.0], scale.of(1, 20))
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let site = Site { port: Depth::Bytes(100_000), ..TESTBED };
    let setup = Setup::named(&case.cell.scheme)?;
    let flow = |tag: u32| NewFlow {
        source: (tag % 4) as u16,
        destination: 7,
        transport: MESSAGES,
        bytes: BYTES,
        tag,
    };
    let flows = (0..case.cell.x as u32).map(|tag| (BEGINS, flow(tag))).collect();
    let transports = setup.transports(&site)?;
    let workload = Box::new(List::new(flows));
    let mut simulation = Simulation::new(setup.fabric(&site)?, transports, workload, case.seed);
    simulation.run(BEGINS + 11 * SECOND);
    let network = simulation.network();
    let took = |delivered: Option<Time>| match delivered {
        Some(at) => (at - BEGINS) as f64 / US as f64,
        None => f64::INFINITY,
    };
    let times: Vec<f64> =
        network.flows().as_slice().iter().map(|flow| took(flow.delivered)).collect();
    let mut outcome = Outcome::of(network)?;
    outcome.put("last_us", times.iter().copied().fold(0.0, f64::max));
    outcome.put("mean_us", times.iter().sum::<f64>() / times.len() as f64);
    Ok(outcome)
}

fn report(results: &Results<'_>) -> Part {
    let mut part = Part::default();
    for (stem, name, caption) in [
        (
            "sim-incast",
            "mean_us",
            "Figure 15: mean completion time of N messages that start at the same time.",
        ),
        (
            "sim-incast-last",
            "last_us",
            "Completion time of the last of N messages that start at the same time.",
        ),
    ] {
        let value = |scheme: &str, x| results.estimate(scheme, x, 0.0, name);
        part.figures.push(show::lines(results, stem, caption, ["N", "us"], value));
    }
    let mut rows = Vec::new();
    for scheme in results.schemes() {
        for x in results.xs() {
            let value = |name| results.estimate(scheme, x, 0.0, name);
            if let (Some(mean), Some(last)) = (value("mean_us"), value("last_us")) {
                let shown = [figure(mean.value), figure(last.value)];
                rows.push([vec![setup::title(scheme), x.to_string()], shown.into()].concat());
            }
        }
    }
    let head = ["scheme", "N", "mean (us)", "last (us)"];
    part.tables.push(Table::new("Incast", &head, rows).folded());
    let judged = show::SETTINGS.map(|(of, suffix)| {
        let scheme = format!("d{suffix}");
        let mean = |scheme: &str, x| Some(results.estimate(scheme, x, 0.0, "mean_us")?.value);
        let xs = results.xs();
        let points: Vec<(f64, f64)> =
            xs.iter().filter_map(|&x| Some((x, mean(&scheme, x)?))).collect();
        let (slope, fit) = linear_fit(&points)?;
        let mut findings = vec![(Reached::linear_growth(slope, fit), format!("R2 = {fit:.3}"))];
        let beyond = xs.iter().filter(|&&x| x > 8.0);
        let beyond: Vec<bool> =
            beyond.filter_map(|&x| Some(mean(&scheme, x)? < mean("dctcp", x)?)).collect();
        if !beyond.is_empty() {
            let below = beyond.iter().filter(|&&is_below| is_below).count();
            let found =
                format!("below DCTCP at {below} of the {} values of N above 8", beyond.len());
            findings.push((Reached::at(below, beyond.len()), found));
        }
        Judged::new(of, findings)
    });
    part.claims.extend(Claim::new(
        NAME,
        [
            "The completion time of an incast grows linearly with N, and is below that of DCTCP",
            paper::INCAST,
            "The mean completion time. Targets: a least-squares line rises and has an R2 of at least 0.95, and \
             the mean is below that of DCTCP at every N above 8. Partial targets: an R2 of at least 0.80; below \
             DCTCP at some N above 8.",
        ],
        judged,
    ));
    part
}
