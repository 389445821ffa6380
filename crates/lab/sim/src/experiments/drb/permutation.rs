//! Permutation traffic (DRB paper, 5.1, Figure 6).
//!
//! With a window of 64 KB, a flow has 44 packets outstanding, which occupy its link for 0.55 ms. It sends below the
//! link's rate when round trips, including queueing, are longer. With 256 KB, hosts are never idle, so the first hop
//! is offered the full rate of its links.

use super::fabric::{Fabric, tcp};
use super::show::{self, READINGS, ValueOf, at_least, at_most, near, setting};
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
    title: "Permutation traffic (DRB, Figure 6)",
    description: "Each server sends one endless TCP flow to another server. The packets of a flow all take one \
                  path (ECMP), or each takes a random path (RB), the next path (RRB), or the next path in \
                  digit-reversed order (DRB). Only the second half of the time is measured. The window is \
                  256 KB, as the paper's text says, or 64 KB, as its round trips suggest.",
    minutes: [0.1, 16.0, 160.0],
    cells,
    run,
    report,
};

/// The paper's figures for a fabric.
struct Paper {
    fabric: Fabric,
    /// The throughput of ECMP, RB, RRB and DRB in Mb/s.
    throughput: [f64; 4],
    /// The mean re-sequencing delay of RB and DRB in microseconds.
    resequencing: [f64; 2],
    /// The p99 of the round trips of RB and DRB in microseconds.
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
        "1st percentile (Mb/s)",
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
        bars(results, "Mb/s per server", &["throughput_mbps"], &["throughput"])
            .figure(format!("{NAME}-throughput"), "Mean throughput per server (Figure 6 a, e)."),
    );
    let hops = ["hop 1", "hop 2", "hop 3", "hop 4", "hop 5", "total"];
    part.figures.push(bars(results, "mean queueing delay (us)", &HOPS, &hops).figure(
        format!("{NAME}-queues"),
        "Mean queueing delay at each hop of the network (Figure 6 b, f), without the host's own queue.",
    ));
    for (series, x, caption) in [
        ("resequencing", "delay (us)", "Re-sequencing delays (Figure 6 c, g)."),
        ("rtt", "round trip (us)", "Round-trip times (Figure 6 d, h)."),
    ] {
        let panels =
            settings().map(|(title, fabric, suffix)| (title, of_setting(results, fabric, suffix)));
        let stem = format!("{NAME}-{series}");
        part.figures.push(show::distributions(&stem, caption, x, series, panels));
    }
    part.claims = claims(results);
    part
}

/// All fabrics and readings: title, fabric, and suffix of schemes.
fn settings() -> impl Iterator<Item = (String, Fabric, &'static str)> {
    let readings = |fabric| READINGS.map(|(name, suffix)| (setting(fabric, name), fabric, suffix));
    Fabric::ALL.into_iter().flat_map(readings)
}

fn of_setting<'a>(results: &Results<'a>, fabric: Fabric, suffix: &str) -> Vec<&'a Record> {
    let schemes = ["ecmp", "rb", "rrb", "drb"].map(|scheme| format!("{scheme}{suffix}"));
    schemes.iter().flat_map(|scheme| results.at(scheme, fabric.number(), 0.0)).collect()
}

/// A chart with a panel for each fabric and reading, in which each of `values` is a group with its name.
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
            "Per-packet load balancing has a far higher throughput than ECMP, and DRB has the highest",
            "396, 803, 725 and 895 Mb/s for ECMP, RB, RRB and DRB in the Fat-tree; 671, 901, 907 and 950 in the VL2",
            "Targets: the ratios of DRB's throughput to those of RB, RRB and ECMP are at least the paper's. Partial \
             targets: at least 1.",
            &|paper, value_of| {
                let value = |scheme| value_of(scheme, "throughput_mbps");
                let drb = value("drb")?;
                ["ecmp", "rb", "rrb"]
                    .iter()
                    .zip(paper.throughput)
                    .map(|(&scheme, theirs)| {
                        let what = format!("DRB / {}", scheme.to_uppercase());
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
            "Throughputs match the paper's",
            "the throughputs of Figure 6 a and e",
            "Targets: within 10 % of the paper's. Partial targets: within 25 %. Where timeouts dominate, as with \
             ECMP, this says little, because the paper does not give the timeouts of its TCP.",
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
            "DRB has the shortest queues, above all at the 1st and 4th hops",
            "Figure 6 b, f; Theorem 2",
            "Targets: the ratio of DRB's mean queueing delay to those of RB and RRB is at most 0.75 at hop 1, at \
             hop 4, and in total. Partial targets: at most 1.",
            &|_, value_of| {
                let pairs = ["rb", "rrb"]
                    .map(|other| ["hop1_us", "hop4_us", "queueing_us"].map(|hop| (other, hop)));
                pairs
                    .iter()
                    .flatten()
                    .map(|&(other, hop)| {
                        let ratio = value_of("drb", hop)? / value_of(other, hop)?.max(1e-9);
                        let place = match hop {
                            "hop1_us" => "hop 1",
                            "hop4_us" => "hop 4",
                            _ => "total",
                        };
                        Some(at_most(
                            &format!("{place}, DRB / {}", other.to_uppercase()),
                            ratio,
                            0.75,
                            1.0,
                        ))
                    })
                    .collect()
            },
        ),
        claim(
            "DRB hardly reorders packets",
            "mean re-sequencing delays of 38 us for RB and 2.4 us for DRB in the Fat-tree, and of 17 and \
             0.2 us in the VL2",
            "Mean re-sequencing delay. Target: the ratio of DRB to RB is at most the paper's. Partial target: \
             at most a half.",
            &|paper, value_of| {
                let value = |scheme| value_of(scheme, "resequencing_mean_us");
                let rb = value("rb")?;
                let drb = value("drb")?;
                let what = format!("{drb:.2} us / {rb:.2} us");
                let mark = paper.resequencing[1] / paper.resequencing[0];
                Some(vec![at_most(&what, drb / rb, mark, 0.5)])
            },
        ),
        claim(
            "Round-trip times are shorter with DRB than with RB",
            "a p99 of 972 us for RB and 795 us for DRB in the Fat-tree, and of 831 and 638 us in the VL2",
            "The p99 of round-trip times. Target: the ratio of DRB to RB is at most the paper's. Partial target: at \
             most 1. Further targets: both are within 10 % of the paper's. Partial targets: within 25 %.",
            &|paper, value_of| {
                let value = |scheme| value_of(scheme, "rtt_p99_us");
                let rb = value("rb")?;
                let drb = value("drb")?;
                let mark = paper.round_trip[1] / paper.round_trip[0];
                Some(vec![
                    at_most("DRB / RB", drb / rb, mark, 1.0),
                    near("RB", "us", rb, paper.round_trip[0]),
                    near("DRB", "us", drb, paper.round_trip[1]),
                ])
            },
        ),
    ];
    all.into_iter().flatten().collect()
}
