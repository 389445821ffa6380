//! The cost of the adaptive rate where the configured capacity is correct.

use super::design_choices::testbed_traffic;
use super::setup::Setup;
use super::show;
use super::site::TESTBED;
use super::traffic;
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use std::error::Error;

const NAME: &str = "adaptive-rate";
const LOAD: f64 = 2_000.0;
const SCHEMES: [&str; 6] =
    ["d", "d-adaptive", "d-ours", "d-ours-adaptive", "d-ours-weight-8", "d-ours-weight-8-adaptive"];
/// The background traffic, by the x of cells.
const POINTS: [&str; 2] = ["background", "no background"];

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Adaptive rate",
    description: "Requests on the paper's testbed, with and without background traffic. Endpoints keep the rate of \
           their link, or lower it while packets are lost on every path to every peer.",
    minutes: [0.3, 4.0, 30.0],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    Cell::all(NAME, &SCHEMES, &[0.0, 1.0], &[LOAD], scale.of(1, 5))
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let scheme = Setup::named(&case.cell.scheme)?;
    let mut traffic = testbed_traffic(LOAD, case.scale);
    if case.cell.x == 1.0 {
        traffic.background = 0..0;
    }
    traffic::run(&TESTBED, scheme, &traffic, case.seed, |_| {})
}

fn report(results: &Results<'_>) -> Part {
    let point = |(&what, x): (&&str, u8)| (what.to_owned(), f64::from(x), LOAD);
    let points: Vec<_> = POINTS.iter().zip(0..).map(point).collect();
    let mut part = Part::default();
    part.tables.push(show::table(results, "p99 (us)", "p99_us", &points));
    part.tables.push(show::table(results, "Mean (us)", "mean_us", &points).folded());
    part.tables
        .push(show::table(results, "Packets sent per packet needed", "sent", &points).folded());
    part
}
