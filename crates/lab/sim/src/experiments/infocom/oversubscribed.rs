//! V-D: the rate r in a network with an over-subscription of 2:1 (Figure 18).

use super::large::{BACKGROUNDS, large_traffic};
use super::setup::{self, Setup};
use super::show::{self, finding, of_size, over_sizes};
use super::site::{LARGE, Site};
use super::traffic;
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use crate::fabric::Link;
use cloudburst_report::Table;
use cloudburst_report::claims::{Claim, Judged, Reached};
use cloudburst_report::numbers::{figure, size};
use cloudburst_report::statistics::{Estimate, reduction};
use cloudburst_workload::paper::{self, RESPONSES};
use std::error::Error;

const NAME: &str = "oversubscribed";
/// Requests per second of all hosts together: 2000 for each.
const LOAD: f64 = 288_000.0;
/// The schemes whose r varies.
const CLOUDBURSTS: [&str; 3] = ["d", "d-ours", "model"];

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Over-subscription and the rate r (Cloudburst, V-D)",
    description: "The network of 144 hosts has uplinks of 20 Gb/s, which is an over-subscription of 2:1. \
                  Cloudburst sends at a share r of the host link's rate and is compared with DCTCP. Each host \
                  sends 2000 r/s, without background and with background flows from all hosts.",
    minutes: [1.0, 3.0, 30.0],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let rates: Vec<f64> =
        scale.of(vec![0.3, 0.5, 1.0], (1..=10).map(|tenth| f64::from(tenth) / 10.0).collect());
    // The load of a cell is the reading of the background.
    let readings = scale.of(vec![0.0], vec![0.0, 2.0]);
    let mut cells = Cell::all(NAME, &["dctcp"], &[1.0], &readings, 1);
    cells.extend(Cell::all(NAME, &CLOUDBURSTS, &rates, &readings, 1));
    cells
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let site = Site { core: Link { rate: 20_000_000_000, ..LARGE.core }, ..LARGE };
    let setup = Setup::named(&case.cell.scheme)?.at_rate(case.cell.x);
    let traffic = large_traffic(LOAD, case.cell.load, case.scale);
    traffic::run(&site, setup, &traffic, case.seed, |_| {})
}

fn report(results: &Results<'_>) -> Part {
    let mut part = Part::default();
    let mut rows = Vec::new();
    for reading in results.loads() {
        // A mean completion time as a multiple of DCTCP's.
        let ratio = |scheme: &str, x: f64, bytes: u64| {
            let name = of_size("mean_us", bytes);
            let value = |scheme, x| Some(results.estimate(scheme, x, reading, &name)?.value);
            Some(value(scheme, x)? / value("dctcp", 1.0)?)
        };
        for scheme in CLOUDBURSTS {
            let of = setup::title(scheme);
            for x in results.xs() {
                let shown = |&bytes: &u64| ratio(scheme, x, bytes).map_or("-".to_owned(), figure);
                let begin =
                    vec![of.to_owned(), BACKGROUNDS[reading as usize].to_owned(), x.to_string()];
                rows.push([begin, RESPONSES.iter().map(shown).collect()].concat());
            }
        }
        let caption = format!(
            "Figure 18: mean completion time as a multiple of DCTCP's, averaged over sizes; {}.",
            BACKGROUNDS[reading as usize]
        );
        let value = |scheme: &str, x| {
            let ratios = RESPONSES.iter().map(|&bytes| ratio(scheme, x, bytes));
            let ratios: Vec<f64> = ratios.collect::<Option<_>>()?;
            Some(Estimate::exact(ratios.iter().sum::<f64>() / ratios.len() as f64))
        };
        let stem = format!("sim-oversubscribed-{reading}");
        let axes = ["r", "multiple of DCTCP"];
        part.figures.push(show::lines(results, &stem, &caption, axes, value));
    }
    let mut head = vec!["Cloudburst".to_owned(), "background".to_owned(), "r".to_owned()];
    head.extend(RESPONSES.iter().map(|&bytes| size(bytes as u32)));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    part.tables.push(Table::new("Mean completion time as a multiple of DCTCP's", &head, rows));
    let readings = results.loads().into_iter().flat_map(|r| CLOUDBURSTS.map(|scheme| (r, scheme)));
    let judged = readings.map(|(reading, scheme)| {
        let of = setup::title(scheme);
        let mean = |scheme: &str, x| over_sizes(results, scheme, x, reading, "mean_us");
        let rates = results.xs();
        let best = rates.iter().copied().filter_map(|x| Some((mean(scheme, x)?, x)));
        let best = best.min_by(|a, b| a.0.total_cmp(&b.0))?.1;
        let mut found = vec![(Reached::near_half(best), format!("best at r = {best}"))];
        for bytes in RESPONSES {
            let name = of_size("mean_us", bytes);
            let value = |scheme, x| Some(results.estimate(scheme, x, reading, &name)?.value);
            let less = reduction(value(scheme, 0.5)?, value("dctcp", 1.0)?);
            let what = format!("{} at r = 0.5, compared with DCTCP", size(bytes as u32));
            found.push(finding(&what, less, paper::SLOWER_BELOW_DCTCP));
        }
        Judged::new(format!("{of}, {}", BACKGROUNDS[reading as usize]), found)
    });
    part.claims.extend(Claim::new(
        NAME,
        [
            paper::RATE.claim,
            paper::RATE.figures,
            "Mean completion times. Targets: the r with the lowest average over sizes is between 0.4 and 0.6, \
             and at r = 0.5 each size is at least 12.88 % below DCTCP. Partial targets: between 0.25 and 0.75; \
             below DCTCP.",
        ],
        judged,
    ));
    part
}
