//! MPTCP with 1 to 32 subflows (DRB paper, 5.3, Figure 8).
//!
//! Subflows take different paths. The paper does not give their window. The subflows of `mptcp` share a window of
//! 256 KB, as RFC 8684 requires; each subflow of `mptcp-64k` has a window of 65,535 bytes.

use super::fabric::{Fabric, tcp, window, window_name};
use super::show::{READINGS, at_least, at_most, near, setting, table};
use super::traffic::measure;
use crate::experiment::{Case, Cell, Experiment, Outcome, Part, Record, Results, Scale};
use crate::transport::tcp::{Mptcp, Tcp};
use cloudburst_report::claims::{Claim, Judged};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Panel, Series};
use core::error::Error;

const NAME: &str = "drb-mptcp";
const SUBFLOWS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
const DRB: [&str; 2] = ["drb", "drb-64k"];
const MPTCP: [&str; 2] = ["mptcp", "mptcp-64k"];

/// The experiment. The `x` of a cell is the number of subflows, and the load the number of its fabric.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "MPTCP compared with DRB (DRB, Figure 8)",
    description: "Permutation traffic as in Figure 6, over MPTCP with 1 to 32 subflows on different paths, and over \
                  TCP with DRB. Network latency is from the first switch to the last. The subflows of MPTCP share \
                  a window of 256 KB, or have windows of 64 KB each.",
    minutes: [0.2, 27.0, 270.0],
    cells,
    run,
    report,
};

fn cells(_scale: Scale) -> Vec<Cell> {
    let mut cells = Cell::all(NAME, &DRB, &[1.0], &Fabric::NUMBERS, 1);
    cells.extend(Cell::all(NAME, &MPTCP, &SUBFLOWS, &Fabric::NUMBERS, 1));
    cells
}

fn run(case: &Case<'_>) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let cell = case.cell;
    let fabric = Fabric::of(cell.load);
    let clos = fabric.build(fabric.shape(case.scale, 1), false)?;
    let config = tcp(&cell.scheme, fabric, case.scale)?;
    if DRB.contains(&cell.scheme.as_str()) {
        return measure(case, fabric, clos, Tcp::new(config));
    }
    let mptcp = Mptcp::new(config, cell.x as u8);
    let is_apart = cell.scheme == MPTCP[1];
    measure(case, fabric, clos, if is_apart { mptcp.with_windows_apart() } else { mptcp })
}

/// The name of a scheme in figures and tables.
fn name(scheme: &str) -> String {
    let each = if scheme == MPTCP[1] { " each" } else { "" };
    format!("{}, {}{each}", window(scheme).0.to_uppercase(), window_name(scheme))
}

fn report(results: &Results<'_>) -> Part {
    let of = |record: &Record| {
        let cell = &record.cell;
        vec![Fabric::of(cell.load).name().to_owned(), name(&cell.scheme), cell.x.to_string()]
    };
    let head = ["fabric", "scheme", "subflows", "Mb/s", "latency (us)", "p99 (us)", "dropped"];
    let values = ["throughput_mbps", "latency_mean_us", "latency_p99_us", "dropped"];
    let figure = |value, y: &str, stem: &str, caption: &str| {
        curves(results, value, y).figure(format!("{NAME}-{stem}"), caption)
    };
    Part {
        figures: vec![
            figure(
                "throughput_mbps",
                "Mb/s per server",
                "throughput",
                "Mean throughput per server (Figure 8 a, b).",
            ),
            figure(
                "latency_mean_us",
                "latency (us)",
                "latency",
                "Mean network latency (Figure 8 c, d).",
            ),
        ],
        tables: vec![table(results, "MPTCP and DRB", &head, of, &values)],
        claims: claims(results),
    }
}

/// A chart with a panel for each fabric. DRB has no subflows, so its line is level.
fn curves(results: &Results<'_>, value: &str, y: &str) -> Chart {
    let panel = |fabric: Fabric| {
        let series = DRB.iter().chain(&MPTCP).enumerate().map(|(index, scheme)| {
            let dot = |&x: &f64| {
                let at = if DRB.contains(scheme) { 1.0 } else { x };
                Some((x, results.estimate(scheme, at, fabric.number(), value)?))
            };
            let dots = SUBFLOWS.iter().filter_map(dot).collect();
            Series { entry: Entry::nth(index, name(scheme)), dots }
        });
        Panel {
            title: fabric.name().to_owned(),
            x: "subflows".to_owned(),
            across: Across::Values(SUBFLOWS.to_vec()),
            joined: true,
            series: series.collect(),
        }
    };
    let panels = Fabric::ALL.map(panel).to_vec();
    Chart { y: y.to_owned(), up: Axis::Linear, columns: 2, height: 260.0, panels }
}

fn claims(results: &Results<'_>) -> Vec<Claim> {
    let mut throughput = Vec::new();
    let mut latency = Vec::new();
    // The paper's latency with 32 subflows, in microseconds and as a multiple of DRB's.
    for (fabric, paper, ratio) in [(Fabric::FatTree, 1154.0, 4.4), (Fabric::Vl2, 1090.0, 6.0)] {
        for ((reading, _), (mptcp, drb)) in READINGS.iter().zip(MPTCP.iter().zip(DRB)) {
            let value_of = |scheme: &str, x, value: &str| {
                Some(results.estimate(scheme, x, fabric.number(), value)?.value)
            };
            let value = |subflows| value_of(mptcp, subflows, "throughput_mbps");
            let mut findings = Vec::new();
            if let (Some(one), Some(eight), Some(most)) = (value(1.0), value(8.0), value(32.0)) {
                findings.push(at_least("throughput, 8 subflows / 1", eight / one, 1.2, 1.0));
                findings.push(at_least("throughput, 32 subflows / 8", most / eight, 1.0, 0.95));
                if fabric == Fabric::FatTree {
                    findings.push(near("throughput of 8 subflows", "Mb/s", eight, 760.0));
                }
                if let Some(drb) = value_of(drb, 1.0, "throughput_mbps") {
                    findings.push(at_least("throughput, DRB / 32 subflows", drb / most, 1.0, 0.95));
                }
            }
            throughput.push(Judged::new(setting(fabric, reading), findings));
            let mut findings = Vec::new();
            let value = |scheme, x| value_of(scheme, x, "latency_mean_us");
            if let (Some(most), Some(drb)) = (value(mptcp, 32.0), value(drb, 1.0)) {
                findings.push(at_most("latency, DRB / 32 subflows", drb / most, 1.0 / ratio, 0.5));
                findings.push(near("latency of 32 subflows", "us", most, paper));
                findings.push(near("latency of DRB", "us", drb, paper / ratio));
            }
            latency.push(Judged::new(setting(fabric, reading), findings));
        }
    }
    let all = [
        Claim::new(
            NAME,
            [
                "MPTCP needs many subflows to fill the network, and DRB needs none",
                "8 subflows use 76 % of the Fat-tree, more subflows use more, and DRB's throughput is higher",
                "Targets: the throughput of 8 subflows is at least 1.2 times that of one, that of 32 at least that \
                 of 8, and that of DRB at least that of 32; 8 subflows are within 10 % of 760 Mb/s in the Fat-tree. \
                 Partial targets: at least 1.0 times; at least 0.95 times; at least 0.95 times; within 25 %.",
            ],
            throughput,
        ),
        Claim::new(
            NAME,
            [
                "MPTCP fills queues, and DRB keeps them short",
                "with 32 subflows, 1154 us in the Fat-tree and 1090 us in the VL2, 4.4 and 6 times DRB's",
                "Mean network latency. Target: the ratio of DRB to 32 subflows is at most the paper's. Partial target: \
                 at most a half. Further targets: both are within 10 % of the paper's. Partial targets: within 25 %.",
            ],
            latency,
        ),
    ];
    all.into_iter().flatten().collect()
}
