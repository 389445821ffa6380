//! Permutation traffic (DRB paper, 5.1, Figure 6).
//!
//! What limits whom: with 64 KB a flow has 44 packets outstanding, which take 0.55 ms of its link, and less than
//! the link's rate once round trips with all queues are longer. With 256 KB, hosts are never idle, so that
//! hop 1 of all switches is offered all that its links carry.

use super::fabric::{Fabric, tcp};
use super::show::{self, READINGS, at_least, at_most, near, setting};
use super::traffic::measure;
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Record, Results, Scale};
use crate::transport::tcp::Tcp;
use cloudburst_report::claims::{Claim, Finding, Judged};
use cloudburst_report::figures::{Axis, Chart, Entry, Series};
use core::error::Error;

const NAME: &str = "drb-permutation";
const SCHEMES: [&str; 8] = ["ecmp", "rb", "rrb", "drb", "ecmp-64k", "rb-64k", "rrb-64k", "drb-64k"];
const HOPS: [&str; 6] = ["hop1_us", "hop2_us", "hop3_us", "hop4_us", "hop5_us", "queueing_us"];

/// The experiment. The `x` of a cell is the number of its fabric.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "Permutation traffic, path by path (DRB, Figure 6)",
    what: "Each server sends without end to one other, over TCP; packets of a flow take one path (ECMP), or one \
           drawn for each (RB), in turn (RRB) or by digit reversal (DRB). Only the second half of the time \
           counts. The window is 256 KB as the text has it, or the 64 KB that the paper's round trips \
           speak for.",
    minutes: [0.1, 160.0],
    cells,
    run,
    report,
};

/// What the paper has of a fabric.
struct Paper {
    fabric: Fabric,
    /// Mb/s of ECMP, RB, RRB and DRB.
    throughput: [f64; 4],
    /// Mean re-sequencing delay of RB and DRB, in microseconds.
    resequencing: [f64; 2],
    /// p99 of round trips of RB and DRB, in microseconds.
    round_trip: [f64; 2],
}

const PAPER: [Paper; 2] = [
    Paper {
        fabric: Fabric::FatTree,
        throughput: [396.0, 803.0, 725.0, 895.0],
        resequencing: [38.0, 2.4],
        round_trip: [972.0, 795.0],
    },
    Paper {
        fabric: Fabric::Vl2,
        throughput: [671.0, 901.0, 907.0, 950.0],
        resequencing: [17.0, 0.2],
        round_trip: [831.0, 638.0],
    },
];

fn cells(_scale: Scale) -> Vec<Cell> {
    Cell::all(NAME, &SCHEMES, &Fabric::NUMBERS, &[0.0], 1)
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let fabric = Fabric::of(case.cell.x);
    let clos = fabric.build(fabric.shape(case.scale, 1), false)?;
    let config = tcp(&case.cell.scheme, fabric, case.scale)?;
    measure(case, fabric, clos, Tcp::new(config))
}

fn report(results: &Results<'_>) -> Part {
    let mut part = Part::default();
    let of = |record: &Record| {
        vec![Fabric::of(record.cell.x).name().to_owned(), show::name(&record.cell.scheme)]
    };
    let values = [
        "throughput_mbps",
        "throughput_p1_mbps",
        "hop1_us",
        "hop2_us",
        "hop3_us",
        "hop4_us",
        "hop5_us",
        "queueing_us",
        "resequencing_mean_us",
        "rtt_mean_us",
        "rtt_p99_us",
        "latency_mean_us",
        "dropped",
    ];
    let head = [
        "fabric",
        "scheme",
        "Mb/s",
        "1 % of servers (Mb/s)",
        "hop 1 (us)",
        "hop 2",
        "hop 3",
        "hop 4",
        "hop 5",
        "total",
        "re-sequencing (us)",
        "RTT (us)",
        "RTT p99 (us)",
        "latency (us)",
        "dropped",
    ];
    part.tables.push(show::table(results, "Permutation traffic", &head, of, &values));
    part.figures.push(
        bars(results, "Mb/s a server", &["throughput_mbps"], &["throughput"])
            .figure(format!("{NAME}-throughput"), "Throughput of a server (Figure 6 a, e)."),
    );
    let hops = ["hop 1", "hop 2", "hop 3", "hop 4", "hop 5", "total"];
    part.figures.push(bars(results, "mean wait (us)", &HOPS, &hops).figure(
        format!("{NAME}-queues"),
        "How long packets wait at each hop (Figure 6 b, f). The host's own queue is none of them.",
    ));
    for (series, x, caption) in [
        ("resequencing", "delay (us)", "Re-sequencing delays (Figure 6 c, g)."),
        ("rtt", "round trip (us)", "Round trips (Figure 6 d, h)."),
    ] {
        let panels =
            settings().map(|(title, fabric, suffix)| (title, of_setting(results, fabric, suffix)));
        let stem = format!("{NAME}-{series}");
        part.figures.push(show::distributions(&stem, caption, x, series, panels));
    }
    part.claims = claims(results);
    part
}

/// Fabrics and readings: title, fabric, suffix of schemes.
fn settings() -> impl Iterator<Item = (String, Fabric, &'static str)> {
    let readings = |fabric| READINGS.map(|(name, suffix)| (setting(fabric, name), fabric, suffix));
    Fabric::ALL.into_iter().flat_map(readings)
}

fn of_setting<'a>(results: &Results<'a>, fabric: Fabric, suffix: &str) -> Vec<&'a Record> {
    let schemes = ["ecmp", "rb", "rrb", "drb"].map(|scheme| format!("{scheme}{suffix}"));
    schemes.iter().flat_map(|scheme| results.at(scheme, fabric.number(), 0.0)).collect()
}

/// A panel for each fabric and reading, with `values` in groups of these names.
fn bars(results: &Results<'_>, y: &str, values: &[&str], names: &[&str]) -> Chart {
    let panel = |(title, fabric, suffix): (String, Fabric, &str)| {
        let series = ["ecmp", "rb", "rrb", "drb"].into_iter().enumerate().map(|(index, scheme)| {
            let at = |value| {
                let scheme = format!("{scheme}{suffix}");
                results.estimate(&scheme, fabric.number(), 0.0, value)
            };
            let dots =
                values.iter().enumerate().filter_map(|(k, value)| Some((k as f64, at(value)?)));
            Series { entry: Entry::nth(index, scheme.to_uppercase()), dots: dots.collect() }
        });
        show::groups(title, names, series.collect())
    };
    let panels = settings().map(panel).collect();
    Chart { y: y.to_owned(), up: Axis::Linear, columns: 2, height: 240.0, panels }
}

/// A value of a scheme, in one fabric and one reading: takes the names of scheme and value.
type ValueOf<'a> = dyn Fn(&str, &str) -> Option<f64> + 'a;

fn claims(results: &Results<'_>) -> Vec<Claim> {
    let claim = |claim: &str,
                 paper: &str,
                 rule: &str,
                 judge: &dyn Fn(&Paper, &ValueOf<'_>) -> Option<Vec<Finding>>| {
        let judged = PAPER.iter().flat_map(|paper| READINGS.map(|reading| (paper, reading)));
        let judged = judged.map(|(paper, (reading, suffix))| {
            let value_of = |scheme: &str, value: &str| {
                let scheme = format!("{scheme}{suffix}");
                Some(results.estimate(&scheme, paper.fabric.number(), 0.0, value)?.value)
            };
            Judged::new(setting(paper.fabric, reading), judge(paper, &value_of)?)
        });
        Claim::new(NAME, [claim, paper, rule], judged)
    };
    let all = [
        claim(
            "Per-packet balance carries far more than ECMP, and DRB most",
            "ECMP, RB, RRB, DRB: 396, 803, 725, 895 Mb/s in the Fat-tree, 671, 901, 907, 950 in the VL2",
            "Ratios of throughputs. Mark: DRB over RB, RRB and ECMP as large as the paper's. Part: DRB has \
             at least the same.",
            &|paper, value_of| {
                let value = |scheme| value_of(scheme, "throughput_mbps");
                let drb = value("drb")?;
                ["ecmp", "rb", "rrb"]
                    .iter()
                    .zip(paper.throughput)
                    .map(|(&scheme, theirs)| {
                        let what = format!("DRB over {}", scheme.to_uppercase());
                        Some(at_least(
                            &what,
                            drb / value(scheme)?,
                            paper.throughput[3] / theirs,
                            1.0,
                        ))
                    })
                    .collect()
            },
        ),
        claim(
            "Throughputs are the paper's",
            "see above",
            "Mark: within 10 % of the paper's. Part: within 25 %. Where timeouts rule, as with ECMP, this says \
             little: the paper does not give its TCP's.",
            &|paper, value_of| {
                let schemes = ["ecmp", "rb", "rrb", "drb"].iter().zip(paper.throughput);
                schemes
                    .map(|(scheme, theirs)| {
                        let ours = value_of(scheme, "throughput_mbps")?;
                        Some(near(&scheme.to_uppercase(), "Mb/s", ours, theirs))
                    })
                    .collect()
            },
        ),
        claim(
            "DRB's queues are the shortest, at the 1st and 4th hop above all",
            "Figure 6 b, f; Theorem 2",
            "Mean wait of DRB over RB's and RRB's at hop 1, hop 4 and in total. Mark: at most 0.75. Part: \
             less than 1.",
            &|_, value_of| {
                let pairs = ["rb", "rrb"]
                    .map(|other| ["hop1_us", "hop4_us", "queueing_us"].map(|hop| (other, hop)));
                pairs
                    .iter()
                    .flatten()
                    .map(|&(other, hop)| {
                        let ratio = value_of("drb", hop)? / value_of(other, hop)?.max(1e-9);
                        let place = hop.trim_end_matches("_us");
                        Some(at_most(
                            &format!("{place}, over {}", other.to_uppercase()),
                            ratio,
                            0.75,
                            1.0,
                        ))
                    })
                    .collect()
            },
        ),
        claim(
            "DRB hardly has packets wait for those before them",
            "Mean re-sequencing delay of RB and DRB: 38 and 2.4 us in the Fat-tree, 17 and 0.2 in the VL2",
            "Means of DRB over RB. Mark: at most the paper's ratio. Part: at most a half.",
            &|paper, value_of| {
                let value = |scheme| value_of(scheme, "resequencing_mean_us");
                let (rb, drb) = (value("rb")?, value("drb")?);
                let what = format!("{drb:.2} us over RB's {rb:.2}");
                let mark = paper.resequencing[1] / paper.resequencing[0];
                Some(vec![at_most(&what, drb / rb, mark, 0.5)])
            },
        ),
        claim(
            "Round trips are shorter with DRB than with RB",
            "p99 of RB and DRB: 972 and 795 us in the Fat-tree, 831 and 638 in the VL2",
            "p99 of DRB over RB's. Mark: at most the paper's ratio. Part: less. And p99 of both: within 10 % of \
             the paper's; part: within 25 %.",
            &|paper, value_of| {
                let value = |scheme| value_of(scheme, "rtt_p99_us");
                let (rb, drb) = (value("rb")?, value("drb")?);
                let mark = paper.round_trip[1] / paper.round_trip[0];
                Some(vec![
                    at_most("DRB over RB", drb / rb, mark, 1.0),
                    near("RB", "us", rb, paper.round_trip[0]),
                    near("DRB", "us", drb, paper.round_trip[1]),
                ])
            },
        ),
    ];
    all.into_iter().flatten().collect()
}
