//! Helpers shared by the reports of these experiments.

use super::fabric::{Fabric, window, window_name};
use crate::experiment::{Record, Results};
use cloudburst_report::Table;
use cloudburst_report::claims::{Finding, Reached};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Figure, Panel, Series};
use cloudburst_report::numbers::figure;
use cloudburst_report::statistics::Estimate;

/// The readings of the window: their names, and the suffixes of their schemes.
pub(super) const READINGS: [(&str, &str); 2] = [("256 KB", ""), ("64 KB", "-64k")];

/// The name of a scheme in figures and tables: `DRB, 64 KB`.
pub(super) fn name(scheme: &str) -> String {
    format!("{}, {}", window(scheme).0.to_uppercase(), window_name(scheme))
}

/// A table with a row for each cell: first the columns that `of` gives for its record, then its `values`.
pub(super) fn table(
    results: &Results<'_>,
    caption: &str,
    head: &[&str],
    of: impl Fn(&Record) -> Vec<String>,
    values: &[&str],
) -> Table {
    let row = |record: &&Record| {
        let value = |name: &&str| match record.outcome.values.get(*name) {
            Some(value) if value.is_infinite() => "never".to_owned(),
            Some(&value) => figure(value),
            None => "—".to_owned(),
        };
        of(record).into_iter().chain(values.iter().map(value)).collect()
    };
    Table::new(caption, head, results.records.iter().map(row).collect())
}

/// A figure of distributions, with a panel for each title and its records.
pub(super) fn distributions<'a>(
    stem: &str,
    caption: &str,
    x: &str,
    series: &str,
    panels: impl IntoIterator<Item = (String, Vec<&'a Record>)>,
) -> Figure {
    let panel = |(title, records): (String, Vec<&Record>)| Panel {
        title,
        x: x.to_owned(),
        across: Across::Measured(Axis::Linear),
        joined: true,
        series: records
            .into_iter()
            .enumerate()
            .filter_map(|(index, record)| {
                let curve = record.outcome.series.get(series)?;
                let dots = curve.iter().map(|&(x, share)| (x, Estimate::exact(share)));
                let entry = Entry::nth(index, window(&record.cell.scheme).0.to_uppercase());
                Some(Series { entry, dots: dots.collect() })
            })
            .collect(),
    };
    let panels: Vec<Panel> =
        panels.into_iter().map(panel).filter(|panel| !panel.series.is_empty()).collect();
    let chart =
        Chart { y: "share".to_owned(), up: Axis::Linear, columns: 2, height: 240.0, panels };
    chart.figure(stem, caption)
}

/// A panel of groups side by side.
pub(super) fn groups(title: String, names: &[&str], series: Vec<Series>) -> Panel {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    Panel { title, x: String::new(), across: Across::Groups(names), joined: false, series }
}

/// A finding on a value: the target is at most `mark`, the partial target at most `part`.
pub(super) fn at_most(what: &str, value: f64, mark: f64, part: f64) -> Finding {
    let reached = Reached::of(value <= mark, value <= part);
    (reached, format!("{what}: {}", figure(value)))
}

/// A finding on a value: the target is at least `mark`, the partial target at least `part`.
pub(super) fn at_least(what: &str, value: f64, mark: f64, part: f64) -> Finding {
    let reached = Reached::of(value >= mark, value >= part);
    (reached, format!("{what}: {}", figure(value)))
}

/// A finding on a value: the target is within 10 % of the paper's, the partial target within 25 %.
pub(super) fn near(what: &str, unit: &str, value: f64, paper: f64) -> Finding {
    let off = (value / paper - 1.0).abs();
    let reached = Reached::of(off <= 0.1, off <= 0.25);
    (reached, format!("{what}: {} {unit} (paper: {})", figure(value), figure(paper)))
}

/// The name of a fabric with a reading of the window.
pub(super) fn setting(fabric: Fabric, reading: &str) -> String {
    format!("{}, {reading}", fabric.name())
}

/// A value of a scheme at one point: takes the names of scheme and value.
pub(super) type ValueOf<'a> = dyn Fn(&str, &str) -> Option<f64> + 'a;
