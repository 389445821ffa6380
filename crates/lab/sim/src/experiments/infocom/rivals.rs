//! V-B: Cloudburst compared with transports for commodity hardware.

use super::design_choices::run;
use super::setup;
use super::show::{self, finding, mean_reduction, over_sizes};
use crate::experiment::{Cell, Experiment, Part, Results, Scale};
use cloudburst_report::claims::{Claim, Judged, Reached};
use cloudburst_report::statistics::mean;
use cloudburst_workload::paper::{self, LOADS};

const NAME: &str = "rivals";
/// Cloudburst's settings: their names, and the suffixes of their schemes.
const SETTINGS: [(&str, &str); 6] = [
    ("as in the paper", ""),
    ("as in the paper, weight 8", "-weight-8"),
    ("our defaults", "-ours"),
    ("our defaults, weight 8", "-ours-weight-8"),
    ("our defaults, two classes", "-ours-classes"),
    ("our defaults, two classes, weight 8", "-ours-weight-8-classes"),
];

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Rivals (Cloudburst, V-B)",
    description: "All hosts send requests to each other alongside background flows on the paper's testbed. DCTCP's \
                  queues mark from 65 packets on, and its minimum retransmission timeout is 10 ms. PIAS demotes \
                  a message after 95 KB. The copies of replicated DCTCP take different paths. MPTCP has a \
                  subflow on each path, in the queue of messages. The paper does not give the weights of the \
                  two queues: they are equal, except in the schemes named weight 8, where they are 8 to 1. \
                  With two classes, packets of a message with at most 20 KB left have a queue of their own, which \
                  has strict priority over that of the others. Both are tiny, and share one weight.",
    minutes: [0.2, 20.0, 140.0],
    cells,
    run,
    report,
};

fn cells(scale: Scale) -> Vec<Cell> {
    let schemes = [
        "dctcp",
        "pias",
        "replicated-2",
        "replicated-3",
        "replicated-4",
        "mptcp",
        "d",
        "d-weight-8",
        "d-ours",
        "d-ours-weight-8",
        "d-ours-classes",
        "d-ours-weight-8-classes",
    ];
    let loads = scale.of(&LOADS[2..], &LOADS[..]);
    Cell::all(NAME, &schemes, &[0.0], loads, scale.of(1, 5))
}

fn report(results: &Results<'_>) -> Part {
    let loads = show::loads(results);
    let mut part = Part::default();
    let captions =
        ["Figure 12: mean completion times.", "Figure 13: 99th percentile of completion times."];
    let names = [("sim-rivals-mean", "mean_us"), ("sim-rivals-p99", "p99_us")];
    for ((stem, name), caption) in names.into_iter().zip(captions) {
        part.figures.push(show::by_size(results, stem, caption, name, &loads));
    }
    part.tables.push(show::table(results, "p99 (us)", "p99_us", &loads));
    part.tables.push(show::table(results, "Mean (us)", "mean_us", &loads));
    part.tables.push(show::table(results, "Median (us)", "p50_us", &loads).folded());
    let caption = "Table 14: packets sent per packet needed";
    part.tables.push(show::table(results, caption, "sent", &loads));
    let Some(load) = show::highest(results) else { return part };
    let at = |scheme: &str, name| over_sizes(results, scheme, 0.0, load, name);
    let claims = [
        Claim::new(
            NAME,
            [
                "Cloudburst's p99 is far below those of DCTCP and PIAS, and below all others",
                paper::TAIL,
                "The reduction of the p99 at the highest load, averaged over sizes. Targets: 63.69 % below DCTCP, \
                 60.06 % below PIAS, and below replicated DCTCP and MPTCP. Partial targets: below DCTCP and PIAS.",
            ],
            SETTINGS.map(|(of, suffix)| {
                let scheme = format!("d{suffix}");
                let rivals = [
                    ("dctcp", 0.6369),
                    ("pias", 0.6006),
                    ("replicated-2", 0.0),
                    ("replicated-3", 0.0),
                    ("replicated-4", 0.0),
                    ("mptcp", 0.0),
                ];
                let found = rivals.into_iter().map(|(rival, mark)| {
                    let less = mean_reduction(results, &scheme, rival, 0.0, load, "p99_us")?;
                    Some(finding(&format!("p99 compared with {}", setup::title(rival)), less, mark))
                });
                Judged::new(of, found.collect::<Option<_>>()?)
            }),
        ),
        Claim::new(
            NAME,
            [
                "Cloudburst's mean completion time is similar to that of PIAS",
                "similar (Figure 12)",
                "The mean at the highest load, averaged over sizes. Target: at most 1.10 times that of PIAS. \
                 Partial target: at most 1.25 times.",
            ],
            SETTINGS.map(|(of, suffix)| {
                let ratio = at(&format!("d{suffix}"), "mean_us")? / at("pias", "mean_us")?;
                let reached = Reached::of(ratio <= 1.10, ratio <= 1.25);
                Judged::new(of, vec![(reached, format!("{ratio:.2} times the mean of PIAS"))])
            }),
        ),
        Claim::new(
            NAME,
            [
                paper::REDUNDANCY.claim,
                paper::REDUNDANCY.figures,
                "The average over sizes and loads. Target: at most 1.49. Partial target: at most 2.",
            ],
            SETTINGS.map(|(of, suffix)| {
                let scheme = format!("d{suffix}");
                let sent = |&load: &f64| over_sizes(results, &scheme, 0.0, load, "sent");
                let sent = mean(&results.loads().iter().filter_map(sent).collect::<Vec<f64>>())?;
                let reached = Reached::of(sent <= paper::SENT_PER_NEEDED, sent <= 2.0);
                Judged::new(of, vec![(reached, format!("{sent:.2} packets per packet needed"))])
            }),
        ),
        Claim::new(
            NAME,
            [
                "Replication gets worse as the load grows",
                "4 copies are best at 800 r/s and degrade as the rate increases (Figure 12)",
                "Means, averaged over sizes. Targets: 4 copies are below 1 copy at the lowest load, and their \
                 ratio to 1 copy is greater at the highest load than at the lowest.",
            ],
            vec![(|| {
                let ratio = |load| {
                    let mean = |scheme| over_sizes(results, scheme, 0.0, load, "mean_us");
                    Some(mean("replicated-4")? / mean("dctcp")?)
                };
                let lowest = results.loads().into_iter().reduce(f64::min)?;
                let low = ratio(lowest)?;
                let high = ratio(load)?;
                let words = format!("{low:.2} times the mean of 1 copy at {lowest} r/s");
                let findings = vec![
                    (Reached::of(low < 1.0, false), words),
                    (
                        Reached::of(high > low, false),
                        format!("{high:.2} times the mean of 1 copy at {load} r/s"),
                    ),
                ];
                (lowest < load).then(|| Judged::new("DCTCP, 4 copies", findings))?
            })()],
        ),
    ];
    part.claims.extend(claims.into_iter().flatten());
    part
}
