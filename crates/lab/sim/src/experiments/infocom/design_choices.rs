//! V-A: the contributions of coding (A), many paths (B) and tiny queues (C) to Cloudburst (D).

use super::setup::Setup;
use super::show::{self, SETTINGS, finding, mean_reduction, of_size};
use super::site::TESTBED;
use super::traffic::{self, Traffic};
use crate::engine::SECOND;
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use cloudburst_report::claims::{Claim, Judged, Reached};
use cloudburst_report::numbers::{self, percent};
use cloudburst_report::statistics::{mean, reduction};
use cloudburst_workload::paper::{self, LOADS};
use std::error::Error;

const NAME: &str = "design-choices";

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Design choices (Cloudburst, V-A)",
    description: "All hosts send requests to each other alongside background flows on the paper's testbed, which \
                  has 8 hosts, 2 leaves and 4 spines at 1 Gb/s. Scheme A uses coding alone. B adds many paths \
                  to A, C adds tiny queues to A, and D has all three. The paper's settings are LT with d = 5, \
                  Algorithm 1, one packet per path in turn, XPath, and equal weights for the two queues.",
    minutes: [0.2, 12.0, 90.0],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let schemes = ["dctcp", "a", "b", "c", "d", "a-ours", "b-ours", "c-ours", "d-ours"];
    let loads = scale.of(&LOADS[2..], &LOADS[..]);
    Cell::all(NAME, &schemes, &[0.0], loads, scale.of(1, 5))
}

/// Requests at a load on the testbed, alongside background flows from the hosts of the first leaf.
pub(super) fn testbed_traffic(load: f64, scale: Scale) -> Traffic {
    Traffic {
        rate: load / TESTBED.shape.hosts() as f64,
        background: 0..TESTBED.shape.hosts_per_leaf,
        from: SECOND / 10,
        warm_up: 4 * SECOND / 10,
        // Five repetitions are the paper's ten minutes.
        span: scale.span(SECOND, 120 * SECOND),
    }
}

/// Runs a scheme at a load on the testbed.
pub(super) fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let setup = Setup::named(&case.cell.scheme)?;
    let traffic = testbed_traffic(case.cell.load, case.scale);
    traffic::run(&TESTBED, setup, &traffic, case.seed, |_| {})
}

fn report(results: &Results<'_>) -> Part {
    let loads = show::loads(results);
    let caption = "Figures 9 to 11: 99th percentile of completion times.";
    let mut part = Part::default();
    part.figures.push(show::by_size(results, "sim-design-choices", caption, "p99_us", &loads));
    part.tables.push(show::table(results, "p99 (us)", "p99_us", &loads));
    part.tables.push(show::table(results, "Mean (us)", "mean_us", &loads).folded());
    part.tables
        .push(show::table(results, "Packets sent per packet needed", "sent", &loads).folded());
    let Some(load) = show::highest(results) else { return part };
    let less_than_dctcp =
        |scheme: &str| mean_reduction(results, scheme, "dctcp", 0.0, load, "p99_us");
    // The p99 of a size, averaged over loads.
    let size = |scheme: &str, bytes| {
        let value = |&load: &f64| {
            Some(results.estimate(scheme, 0.0, load, &of_size("p99_us", bytes))?.value)
        };
        mean(&results.loads().iter().map(value).collect::<Option<Vec<f64>>>()?)
    };
    let claims = [
        Claim::new(
            NAME,
            [
                paper::ALL_CHOICES.claim,
                paper::ALL_CHOICES.figures,
                "The reduction of the p99 at the highest load, averaged over sizes. Target: 75.32 % below DCTCP. \
                 Partial target: below DCTCP.",
            ],
            SETTINGS.map(|(of, suffix)| {
                let less = less_than_dctcp(&format!("d{suffix}"))?;
                Judged::new(
                    of,
                    vec![finding("p99 compared with DCTCP", less, paper::D_BELOW_DCTCP)],
                )
            }),
        ),
        Claim::new(
            NAME,
            [
                paper::CODING_ALONE.claim,
                paper::CODING_ALONE.figures,
                "The increase of the p99 at the highest load, averaged over sizes. Target: at least 51.12 % \
                 above DCTCP. Partial target: above DCTCP.",
            ],
            SETTINGS.map(|(of, suffix)| {
                let more = -less_than_dctcp(&format!("a{suffix}"))?;
                let reached = Reached::of(more >= paper::A_ABOVE_DCTCP, more > 0.0);
                let words = if more >= 0.0 { "above" } else { "below" };
                let found = format!("p99 {} {words} DCTCP", percent(more.abs()));
                Judged::new(of, vec![(reached, found)])
            }),
        ),
        Claim::new(
            NAME,
            [
                paper::MANY_PATHS.claim,
                paper::MANY_PATHS.figures,
                "The p99 of a size, averaged over loads. Targets: 44.52 % below A for 5 KB, and 23.88 % below A \
                 for 93 KB. Partial targets: below A.",
            ],
            SETTINGS.map(|(of, suffix)| {
                let a = format!("a{suffix}");
                let b = format!("b{suffix}");
                let findings = paper::B_BELOW_A.map(|(bytes, mark)| {
                    let less = reduction(size(&b, bytes)?, size(&a, bytes)?);
                    Some(finding(&numbers::size(bytes as u32), less, mark))
                });
                Judged::new(of, findings.into_iter().collect::<Option<_>>()?)
            }),
        ),
        Claim::new(
            NAME,
            [
                paper::TINY_QUEUES.claim,
                paper::TINY_QUEUES.figures,
                "The p99 of 5 KB, averaged over loads. Target: 51.42 % below DCTCP. Partial target: below DCTCP.",
            ],
            SETTINGS.map(|(of, suffix)| {
                let less = reduction(size(&format!("c{suffix}"), 5_000)?, size("dctcp", 5_000)?);
                Judged::new(
                    of,
                    vec![finding("5 KB compared with DCTCP", less, paper::C_BELOW_DCTCP)],
                )
            }),
        ),
    ];
    part.claims.extend(claims.into_iter().flatten());
    part
}
