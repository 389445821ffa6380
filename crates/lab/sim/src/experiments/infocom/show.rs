//! Figures and tables of completion times, and arithmetic for claims.

use super::setup::title;
use crate::experiment::Results;
use cloudburst_report::Table;
use cloudburst_report::claims::{Finding, Reached};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Figure, Panel, Series};
use cloudburst_report::numbers::{figure, percent, size};
use cloudburst_report::statistics::{Estimate, mean, reduction};
use cloudburst_workload::paper::RESPONSES;

/// The name of the value `name` for messages of `bytes`.
pub(super) fn of_size(name: &str, bytes: u64) -> String {
    format!("{name}/{bytes}")
}

/// A value at a point, averaged over sizes; `None` if it is missing for a size.
pub(super) fn over_sizes(
    results: &Results<'_>,
    scheme: &str,
    x: f64,
    load: f64,
    name: &str,
) -> Option<f64> {
    let value =
        |&bytes: &u64| Some(results.estimate(scheme, x, load, &of_size(name, bytes))?.value);
    let values: Vec<f64> = RESPONSES.iter().map(value).collect::<Option<_>>()?;
    mean(&values)
}

/// The share by which a value of `scheme` is below that of `rival`, averaged over sizes. `None` if it is missing
/// for a size.
pub(super) fn mean_reduction(
    results: &Results<'_>,
    scheme: &str,
    rival: &str,
    x: f64,
    load: f64,
    name: &str,
) -> Option<f64> {
    let of_size = |&bytes: &u64| {
        let value = |scheme| Some(results.estimate(scheme, x, load, &of_size(name, bytes))?.value);
        Some(reduction(value(scheme)?, value(rival)?))
    };
    let reductions: Vec<f64> = RESPONSES.iter().map(of_size).collect::<Option<_>>()?;
    mean(&reductions)
}

/// A finding on the share `less` by which a value is below another one. The target is `mark`; the partial target is
/// any value below.
pub(super) fn finding(what: &str, less: f64, mark: f64) -> Finding {
    let words = match less {
        less if less >= 0.0 => format!("{what}: {} lower", percent(less)),
        less => format!("{what}: {} higher", percent(-less)),
    };
    (Reached::of(less > 0.0 && less >= mark, less > 0.0), words)
}

/// A figure with a panel for each point, where the sizes are side by side. A point is its title, x and load.
pub(super) fn by_size(
    results: &Results<'_>,
    stem: &str,
    caption: &str,
    name: &str,
    points: &[(String, f64, f64)],
) -> Figure {
    let schemes = results.schemes();
    let panel = |(title_of, x, load): &(String, f64, f64)| {
        let series = schemes.iter().enumerate().map(|(index, scheme)| {
            let dot = |(place, &bytes): (usize, &u64)| {
                let value = results.estimate(scheme, *x, *load, &of_size(name, bytes))?;
                Some((place as f64, value))
            };
            let dots = RESPONSES.iter().enumerate().filter_map(dot).collect();
            Series { entry: Entry::nth(index, title(scheme)), dots }
        });
        Panel {
            title: title_of.clone(),
            x: "message size".to_owned(),
            across: Across::Groups(RESPONSES.iter().map(|&bytes| size(bytes as u32)).collect()),
            joined: false,
            series: series.filter(|series| !series.dots.is_empty()).collect(),
        }
    };
    let panels: Vec<Panel> = points.iter().map(panel).collect();
    let columns = panels.len().min(2);
    let chart = Chart { y: "us".to_owned(), up: Axis::Logarithmic, columns, height: 300.0, panels };
    chart.figure(stem, caption)
}

/// A figure with a line over x for each scheme. `value` gives the value of a scheme at an x.
pub(super) fn lines(
    results: &Results<'_>,
    stem: &str,
    caption: &str,
    [x, y]: [&str; 2],
    value: impl Fn(&str, f64) -> Option<Estimate>,
) -> Figure {
    let mut xs = results.xs();
    xs.sort_by(f64::total_cmp);
    let series = results.schemes().into_iter().enumerate().map(|(index, scheme)| Series {
        entry: Entry::nth(index, title(scheme)),
        dots: xs.iter().filter_map(|&x| Some((x, value(scheme, x)?))).collect(),
    });
    let panel = Panel {
        title: String::new(),
        x: x.to_owned(),
        across: Across::Measured(Axis::Linear),
        joined: true,
        series: series.filter(|series| !series.dots.is_empty()).collect(),
    };
    let y = y.to_owned();
    let panels = vec![panel];
    Chart { y, up: Axis::Fitting, columns: 1, height: 340.0, panels }.figure(stem, caption)
}

/// A table with a row for each scheme and point: the value for each size, and their average.
pub(super) fn table(
    results: &Results<'_>,
    caption: &str,
    name: &str,
    points: &[(String, f64, f64)],
) -> Table {
    let mut head = vec!["scheme".to_owned(), "at".to_owned()];
    head.extend(RESPONSES.iter().map(|&bytes| size(bytes as u32)));
    head.push("average over sizes".to_owned());
    let mut rows = Vec::new();
    for (point, x, load) in points {
        for scheme in results.schemes() {
            let value = |&bytes: &u64| results.estimate(scheme, *x, *load, &of_size(name, bytes));
            let values: Vec<Option<Estimate>> = RESPONSES.iter().map(value).collect();
            if values.iter().all(Option::is_none) {
                continue;
            }
            let mut row = vec![title(scheme), point.clone()];
            let shown =
                |value: &Option<Estimate>| value.map_or("-".to_owned(), |e| figure(e.value));
            row.extend(values.iter().map(shown));
            let over = over_sizes(results, scheme, *x, *load, name);
            row.push(over.map_or("-".to_owned(), figure));
            rows.push(row);
        }
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    Table::new(caption, &head, rows)
}

/// All loads as points, with titles such as `800 r/s`.
pub(super) fn loads(results: &Results<'_>) -> Vec<(String, f64, f64)> {
    let loads = results.loads();
    loads.into_iter().map(|load| (format!("{load} r/s"), 0.0, load)).collect()
}

/// The highest load.
pub(super) fn highest(results: &Results<'_>) -> Option<f64> {
    results.loads().into_iter().reduce(f64::max)
}

/// Cloudburst's settings: their names, and the suffixes of their schemes.
pub(super) const SETTINGS: [(&str, &str); 2] = [("as in the paper", ""), ("our defaults", "-ours")];
