//! Figures and tables of completion times, and the arithmetic of claims.

use crate::experiment::Results;
use crate::workload::RESPONSES;
use cloudburst_report::Table;
use cloudburst_report::claims::{Finding, Reached};
use cloudburst_report::figures::{Across, Axis, Chart, Entry, Figure, Panel, Series};
use cloudburst_report::numbers::{figure, percent, size};
use cloudburst_report::statistics::{Estimate, mean};

/// What a scheme is to people.
pub(super) fn title(scheme: &str) -> String {
    let (name, rest) = scheme.split_once('-').unwrap_or((scheme, ""));
    let letter = |letter: &str| match rest {
        "" => format!("Cloudburst {letter}, as in the paper"),
        "ours" => format!("Cloudburst {letter}, our defaults"),
        "ours-blocking" => format!("Cloudburst {letter}, our defaults, blocking"),
        "ours-hashed" => format!("Cloudburst {letter}, 16 hashed ports"),
        "ours-known" => format!("Cloudburst {letter}, by the last spine alone"),
        "ours-recycled" => format!("Cloudburst {letter}, paths recycled"),
        "ours-recycled-hashed" => format!("Cloudburst {letter}, 16 hashed ports, recycled"),
        "ours-rb" => format!("Cloudburst {letter}, paths drawn"),
        "weight-8" => format!("Cloudburst {letter}, as in the paper, weight 8"),
        _ => format!("Cloudburst {letter}, our defaults, weight 8"),
    };
    match (name, rest) {
        ("a" | "b" | "c" | "d", _) => letter(&name.to_uppercase()),
        ("dctcp", "") => "DCTCP".to_owned(),
        ("dctcp", _) => "DCTCP, RTO of 200 us".to_owned(),
        ("model", _) => "Algorithm 1 as a model".to_owned(),
        ("pias", _) => "PIAS".to_owned(),
        ("mptcp", _) => "MPTCP".to_owned(),
        ("replicated", copies) => format!("DCTCP, {copies} copies"),
        ("pfabric", _) => "pFabric".to_owned(),
        ("qjump", "") => "QJump, f = 1".to_owned(),
        ("qjump", _) => "QJump, its scripts".to_owned(),
        ("expresspass", "") => "ExpressPass, alpha 1/16".to_owned(),
        ("expresspass", _) => "ExpressPass, alpha 1/2".to_owned(),
        _ => scheme.to_owned(),
    }
}

/// The name of a value of a size.
pub(super) fn of_size(name: &str, bytes: u64) -> String {
    format!("{name}/{bytes}")
}

/// The mean over sizes of a value at a point; `None` if a size has none.
pub(super) fn over_sizes(
    results: &Results<'_>,
    scheme: &str,
    (x, load): (f64, f64),
    name: &str,
) -> Option<f64> {
    let value =
        |&bytes: &u64| Some(results.estimate(scheme, x, load, &of_size(name, bytes))?.value);
    let values: Vec<f64> = RESPONSES.iter().map(value).collect::<Option<_>>()?;
    mean(&values)
}

/// By how much a value of one scheme is less than that of another, as a share of it: the mean over sizes of the
/// reductions. `None` if a size is missing.
pub(super) fn reduction(
    results: &Results<'_>,
    (scheme, rival): (&str, &str),
    (x, load): (f64, f64),
    name: &str,
) -> Option<f64> {
    let of_size = |&bytes: &u64| {
        let value = |scheme| Some(results.estimate(scheme, x, load, &of_size(name, bytes))?.value);
        Some(less(value(scheme)?, value(rival)?))
    };
    let reductions: Vec<f64> = RESPONSES.iter().map(of_size).collect::<Option<_>>()?;
    mean(&reductions)
}

/// How much less `value` is than `other`, as a share of it; negative if it is more.
pub(super) fn less(value: f64, other: f64) -> f64 {
    1.0 - value / other
}

/// A finding about `less`: whole from `mark` on, part if `least` or more.
pub(super) fn finding(what: &str, less: f64, mark: f64, least: f64) -> Finding {
    let words = match less {
        less if less >= 0.0 => format!("{what}: {} less", percent(less)),
        less => format!("{what}: {} more", percent(-less)),
    };
    (Reached::of(less >= mark, less >= least), words)
}

/// A panel for each load (or x), with the sizes side by side.
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
            x: "size of message".to_owned(),
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

/// Lines over x, one for each scheme: `value` of a scheme at an x.
pub(super) fn lines(
    results: &Results<'_>,
    (stem, caption): (&str, &str),
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
    let (y, panels) = (y.to_owned(), vec![panel]);
    Chart { y, up: Axis::Fitting, columns: 1, height: 340.0, panels }.figure(stem, caption)
}

/// A row for each scheme and point, with a value of each size and their mean.
pub(super) fn table(
    results: &Results<'_>,
    caption: &str,
    name: &str,
    points: &[(String, f64, f64)],
) -> Table {
    let mut head = vec!["scheme".to_owned(), "at".to_owned()];
    head.extend(RESPONSES.iter().map(|&bytes| size(bytes as u32)));
    head.push("mean over sizes".to_owned());
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
            let over = over_sizes(results, scheme, (*x, *load), name);
            row.push(over.map_or("-".to_owned(), figure));
            rows.push(row);
        }
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    Table::new(caption, &head, rows)
}

/// Points that differ in load: `800 r/s`.
pub(super) fn loads(results: &Results<'_>) -> Vec<(String, f64, f64)> {
    let loads = results.loads();
    loads.into_iter().map(|load| (format!("{load} r/s"), 0.0, load)).collect()
}

/// The highest load.
pub(super) fn highest(results: &Results<'_>) -> Option<f64> {
    results.loads().into_iter().reduce(f64::max)
}

/// Cloudburst's settings, with what is added to its name.
pub(super) const SETTINGS: [(&str, &str); 2] = [("as in the paper", ""), ("our defaults", "-ours")];
