//! V-C: dead spines.

use super::design_choices::testbed_traffic;
use super::setup::Setup;
use super::show::{self, over_sizes};
use super::site::TESTBED;
use super::traffic;
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use cloudburst_report::claims::{Claim, Judged, Reached};
use cloudburst_report::statistics::Estimate;
use cloudburst_workload::paper;
use std::error::Error;

const NAME: &str = "dead-paths";
const LOAD: f64 = 2_000.0;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Dead paths (Cloudburst, V-C)",
    description: "Some of the four spines of the paper's testbed drop every packet. Background flows are routed \
                  around them. Cloudburst is not told about them and keeps trying all paths, except in the scheme \
                  that uses the last spine alone.",
    minutes: [0.1, 3.0, 30.0],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let dead = scale.of(vec![0.0, 3.0], vec![0.0, 1.0, 2.0, 3.0]);
    Cell::all(
        NAME,
        &["d", "d-ours", "d-ours-hashed", "d-ours-recycled", "d-ours-known"],
        &dead,
        &[LOAD],
        scale.of(1, 5),
    )
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let setup = Setup::named(&case.cell.scheme)?;
    let traffic = testbed_traffic(LOAD, case.scale);
    let dead = case.cell.x as u16;
    traffic::run(&TESTBED, setup, &traffic, case.seed, |fabric| {
        for spine in 0..dead {
            fabric.withdraw(spine);
            for leaf in 0..2 {
                let up = fabric.up_port(leaf, spine.into());
                let down = fabric.down_port(spine.into(), leaf);
                fabric.set_up(up, false);
                fabric.set_up(down, false);
            }
        }
    })
}

fn report(results: &Results<'_>) -> Part {
    let mut part = Part::default();
    let p99 = |scheme: &str, x| over_sizes(results, scheme, x, LOAD, "p99_us");
    let caption =
        "Figure 16: 99th percentile of completion times with dead spines, averaged over sizes.";
    let value = |scheme: &str, x| p99(scheme, x).map(Estimate::exact);
    let axes = ["dead spines", "p99 (us)"];
    part.figures.push(show::lines(results, "sim-dead-paths", caption, axes, value));
    let points: Vec<_> = results.xs().iter().map(|&x| (format!("{x} dead"), x, LOAD)).collect();
    part.tables.push(show::table(results, "p99 (us)", "p99_us", &points));
    let undelivered = show::table(results, "Undelivered messages", "undelivered", &points);
    part.tables.push(undelivered.folded());
    let judged = show::SETTINGS.map(|(of, suffix)| {
        let scheme = format!("d{suffix}");
        let ratio = p99(&scheme, 3.0)? / p99(&scheme, 0.0)?;
        let reached = Reached::of(ratio <= 1.28, ratio <= 2.0);
        Judged::new(of, vec![(reached, format!("{ratio:.2} times the p99 without dead paths"))])
    });
    part.claims.extend(Claim::new(
        NAME,
        [
            "With three of four paths dead, the p99 is little higher than with none",
            paper::DEAD_PATHS,
            "The p99, averaged over sizes. Target: at most 1.28 times that without dead paths. Partial target: at \
             most 2 times.",
        ],
        judged,
    ));
    part
}
