//! V-B: Cloudburst beside what can be had on commodity hardware.

use super::design_choices::{LOADS, run};
use super::show::{self, finding, over_sizes, reduction};
use crate::experiment::{Cell, Experiment, Part, Results, Scale};
use cloudburst_report::claims::{Claim, Judged, Reached};
use cloudburst_report::statistics::mean;

const NAME: &str = "rivals";
/// Cloudburst's settings, with what is added to its name.
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
    what: "All-to-all requests beside background flows on the paper's testbed. DCTCP has K = 65 and a \
           smallest timeout of 10 ms; PIAS demotes after 95 KB; copies take different paths; MPTCP has a \
           subflow a path in the queue of messages. The paper does not say how the two queues are weighted: \
           they have equal weights, and 8 to 1 where it says so. With two classes, those of a message with at most \
           20 KB to go have a queue of their own that comes first; both queues are tiny and have one weight.",
    minutes: [0.2, 100.0],
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
    let captions = ["Figure 12: mean completion times.", "Figure 13: 99th percentile."];
    let names = [("sim-rivals-mean", "mean_us"), ("sim-rivals-p99", "p99_us")];
    for ((stem, name), caption) in names.into_iter().zip(captions) {
        part.figures.push(show::by_size(results, stem, caption, name, &loads));
    }
    part.tables.push(show::table(results, "p99 (us)", "p99_us", &loads));
    part.tables.push(show::table(results, "Mean (us)", "mean_us", &loads));
    part.tables.push(show::table(results, "Median (us)", "p50_us", &loads).folded());
    let caption = "Table 14: packets sent over packets needed";
    part.tables.push(show::table(results, caption, "sent", &loads));
    let Some(load) = show::highest(results) else { return part };
    let at = |scheme: &str, name| over_sizes(results, scheme, (0.0, load), name);
    let claims = [
        Claim::new(
            NAME,
            [
                "Cloudburst's p99 is far below those of DCTCP and PIAS, and below all others",
                "at 2000 r/s 63.69 % below DCTCP with ECMP, 60.06 % below PIAS",
                "p99 at the highest load, mean over sizes of the reduction. Marks: 63.69 % less than DCTCP's, 60.06 % less than \
                 PIAS's, less than those of copies and MPTCP. Part: less.",
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
                    let less = reduction(results, (&scheme, rival), (0.0, load), "p99_us")?;
                    Some(finding(&format!("p99 against {}", show::title(rival)), less, mark, 0.0))
                });
                Judged::new(of, found.collect::<Option<_>>()?)
            }),
        ),
        Claim::new(
            NAME,
            [
                "Its mean completion time is similar to that of PIAS",
                "similar (Figure 12)",
                "Mean at the highest load, mean over sizes. Mark: at most 1.10 times PIAS's. Part: at most 1.25 \
                 times.",
            ],
            SETTINGS.map(|(of, suffix)| {
                let ratio = at(&format!("d{suffix}"), "mean_us")? / at("pias", "mean_us")?;
                let reached = Reached::of(ratio <= 1.10, ratio <= 1.25);
                Judged::new(of, vec![(reached, format!("{ratio:.2} times PIAS's mean"))])
            }),
        ),
        Claim::new(
            NAME,
            [
                "It sends at most 1.49 packets for each that is needed",
                "1.490, mean over sizes and loads (Table 14)",
                "Mean over sizes and loads. Mark: at most 1.49. Part: at most 2.",
            ],
            SETTINGS.map(|(of, suffix)| {
                let scheme = format!("d{suffix}");
                let sent = |&load: &f64| over_sizes(results, &scheme, (0.0, load), "sent");
                let sent = mean(&results.loads().iter().filter_map(sent).collect::<Vec<f64>>())?;
                let reached = Reached::of(sent <= 1.49, sent <= 2.0);
                Judged::new(of, vec![(reached, format!("{sent:.2} packets"))])
            }),
        ),
        Claim::new(
            NAME,
            [
                "More copies lose as load grows",
                "4 copies are best at 800 r/s, and degrade as the rate increases (Figure 12)",
                "Mean over sizes of the mean. Marks: 4 copies below 1 at the lowest load; their ratio to 1 copy \
                 grows with load.",
            ],
            vec![(|| {
                let ratio = |load| {
                    let mean = |scheme| over_sizes(results, scheme, (0.0, load), "mean_us");
                    Some(mean("replicated-4")? / mean("dctcp")?)
                };
                let lowest = results.loads().into_iter().reduce(f64::min)?;
                let (low, high) = (ratio(lowest)?, ratio(load)?);
                let words =
                    format!("{low:.2} times DCTCP's mean at {lowest} r/s, {high:.2} at {load}");
                let findings = vec![
                    (Reached::of(low < 1.0, false), words),
                    (Reached::of(high > low, false), "the ratio grows".to_owned()),
                ];
                (lowest < load).then(|| Judged::new("DCTCP, 4 copies", findings))?
            })()],
        ),
    ];
    part.claims.extend(claims.into_iter().flatten());
    part
}
