//! V-D: 144 hosts at 10 Gb/s (Figure 17).

use super::setup::Setup;
use super::show::{self, SETTINGS, finding, over_sizes, reduction};
use super::site::LARGE;
use super::traffic::{self, Traffic};
use crate::engine::{MS, SECOND};
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Results, Scale};
use cloudburst_report::claims::{Claim, Judged, Reached};
use core::ops::Range;
use std::error::Error;

const NAME: &str = "large";
/// Requests a second of all hosts together: the two readings of "2000 rps".
const LOADS: [f64; 2] = [2_000.0, 288_000.0];
/// Readings of the background, by number.
pub(super) const BACKGROUNDS: [&str; 3] =
    ["no background", "background from one rack", "background from all hosts"];

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "144 hosts (Cloudburst, V-D)",
    what: "All-to-all requests among 144 hosts below 9 leaves, 4 spines, 10 and 40 Gb/s, 2 us a link. The paper \
           leaves open whether its 2000 r/s are of all hosts together or of each, and whether there is background \
           traffic: both loads are run, without background, with flows of 10 MB from the hosts of one rack as on \
           the testbed, and from all hosts. The time that codes take is added to completion times.",
    minutes: [1.0, 25.0],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let schemes = [
        "dctcp",
        "dctcp-fast",
        "pfabric",
        "qjump",
        "qjump-scripts",
        "expresspass",
        "expresspass-half",
        "d",
        "d-ours",
        "d-ours-blocking",
    ];
    let readings = scale.of(vec![0.0], vec![0.0, 1.0, 2.0]);
    Cell::all(NAME, &schemes, &readings, scale.of(&LOADS[1..], &LOADS[..]), 1)
}

/// The hosts that send background flows, in a reading of the paper.
pub(super) fn background(reading: f64) -> Range<u16> {
    match reading as u16 {
        0 => 0..0,
        1 => 0..LARGE.shape.hosts_per_leaf,
        _ => 0..LARGE.shape.hosts() as u16,
    }
}

/// Requests at a load in a reading of the background.
pub(super) fn large_traffic(load: f64, reading: f64, scale: Scale) -> Traffic {
    let full = match (load < LOADS[1], reading as u16) {
        (true, 2) => SECOND / 4,
        (true, _) => 4 * SECOND,
        (false, 2) => 50 * MS,
        (false, _) => 200 * MS,
    };
    Traffic {
        rate: load / LARGE.shape.hosts() as f64,
        background: background(reading),
        from: 300 * MS,
        warm_up: 5 * MS,
        span: scale.span(10 * MS, full),
    }
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let setup = Setup::named(&case.cell.scheme)?;
    let traffic = large_traffic(case.cell.load, case.cell.x, case.scale);
    traffic::run(&LARGE, setup, &traffic, case.seed, |_| {})
}

fn report(results: &Results<'_>) -> Part {
    let mut points = Vec::new();
    for load in results.loads() {
        for x in results.xs() {
            points.push((format!("{load} r/s, {}", BACKGROUNDS[x as usize]), x, load));
        }
    }
    let mut part = Part::default();
    let caption = "Figure 17: 99th percentile of completion times.";
    part.figures.push(show::by_size(results, "sim-large", caption, "p99_us", &points));
    part.tables.push(show::table(results, "p99 (us)", "p99_us", &points));
    part.tables.push(show::table(results, "Mean (us)", "mean_us", &points).folded());
    part.tables.push(show::table(results, "Packets sent over needed", "sent", &points).folded());
    let readings = points.iter().flat_map(|point| SETTINGS.map(|settings| (point, settings)));
    let judged = readings.map(|((at, x, load), (of, suffix))| {
        let ours = format!("d{suffix}");
        let rivals =
            [("dctcp", 0.4012), ("pfabric", 0.24), ("qjump", 0.2963), ("qjump-scripts", 0.2963)];
        // At the high load, f = 1 admits a nineteenth of what is offered: any completion time would do.
        let rivals = rivals.into_iter().filter(|(rival, _)| *rival != "qjump" || *load < LOADS[1]);
        let found = rivals.map(|(rival, mark)| {
            let less = reduction(results, (&ours, rival), (*x, *load), "p99_us")?;
            Some(finding(&format!("p99 against {}", show::title(rival)), less, mark, 0.0))
        });
        Judged::new(format!("{of}, {at}"), found.collect::<Option<_>>()?)
    });
    part.claims.extend(Claim::new(
        NAME,
        [
            "Cloudburst's p99 is below those of DCTCP, pFabric and QJump",
            "40.12 % below DCTCP, 24 % below pFabric, 29.63 % below QJump",
            "p99, mean over sizes of the reduction. Marks: those shares. Part: less. QJump with f = 1 is judged at the low \
             load alone, as its level admits less than the high one.",
        ],
        judged,
    ));
    let worst = points.iter().map(|(at, x, load)| {
        let p99 = |scheme: &str| over_sizes(results, scheme, (*x, *load), "p99_us");
        let express = p99("expresspass")?;
        let better =
            results.schemes().into_iter().filter(|scheme| !scheme.starts_with("expresspass"));
        let above: Vec<&str> =
            better.filter(|scheme| p99(scheme).is_some_and(|other| other > express)).collect();
        let words = match above.as_slice() {
            [] => "every other scheme is below it".to_owned(),
            above => {
                let names: Vec<String> = above.iter().map(|scheme| show::title(scheme)).collect();
                format!("{} above it", names.join(", "))
            }
        };
        Judged::new(at.clone(), vec![(Reached::of(above.is_empty(), above.len() == 1), words)])
    });
    part.claims.extend(Claim::new(
        NAME,
        [
            "ExpressPass is worst",
            "the worst of all schemes",
            "p99, mean over sizes. Mark: above all others. Part: above all but one.",
        ],
        worst,
    ));
    part
}
