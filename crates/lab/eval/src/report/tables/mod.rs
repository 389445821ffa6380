//! The tables of the report.

mod table_14;

use super::names;
use super::points::{ExperimentResults, Point};
use cloudburst_report::Table;
use cloudburst_report::numbers::{self, figure, milliseconds, percent, within};
use cloudburst_report::statistics::{Estimate, Summary};

/// The tables of an experiment.
pub(super) fn of(experiment: &ExperimentResults<'_>) -> Vec<Table> {
    let mut tables = Vec::new();
    match experiment.name {
        "incast" => tables.push(incast(experiment)),
        "schemes" => tables.extend(table_14::of(experiment)),
        _ => {}
    }
    for (load, x) in places(experiment) {
        tables.extend(p99_by_size(experiment, load, x));
    }
    tables.push(network(experiment).folded());
    tables.push(all(experiment).folded());
    tables
}

fn places(experiment: &ExperimentResults<'_>) -> Vec<(f64, f64)> {
    let mut places: Vec<_> = experiment.points.iter().map(|point| (point.load, point.x)).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    places.dedup();
    // With a single size, a table by size says nothing more: an incast is judged by its last flow.
    if experiment.sizes().len() < 2 { Vec::new() } else { places }
}

/// The name of an experiment's other variable.
fn variable(experiment: &str) -> &str {
    match experiment {
        "incast" => "flows",
        "failures" => "dead paths",
        "rate" => "r",
        "loss" => "loss (%)",
        _ => "x",
    }
}

/// `, 2000 r/s, dead paths 3`.
fn place(experiment: &ExperimentResults<'_>, load: f64, x: f64) -> String {
    let mut text = String::new();
    if experiment.highest_load() > 0.0 {
        text.push_str(&format!(", {load} r/s"));
    }
    if experiment.xs().len() > 1 {
        text.push_str(&format!(", {} {x}", variable(experiment.name)));
    }
    text
}

fn p99_by_size(experiment: &ExperimentResults<'_>, load: f64, x: f64) -> Option<Table> {
    let sizes = experiment.sizes();
    let points = experiment.points.iter().filter(|point| point.load == load && point.x == x);
    let row = |point: &&Point<'_>| {
        let p99 = |size: &Summary| quantile(size, 0.99, within(size.p99));
        let of = |bytes| point.sizes.get(bytes).map_or_else(dash, p99);
        let mean = point.over_sizes(|size| size.p99.value).map_or_else(dash, milliseconds);
        let mut row = vec![names::display(point.scheme)];
        row.extend(sizes.iter().map(of));
        row.extend([mean, point.late().to_string()]);
        row
    };
    let points: Vec<_> = points.filter(|point| point.all.is_some()).collect();
    let rows: Vec<_> = points.iter().map(row).collect();
    let mut head = vec!["scheme".to_owned()];
    head.extend(sizes.iter().map(|bytes| numbers::size(*bytes)));
    head.extend(["mean over sizes".to_owned(), "not arrived".to_owned()]);
    let place = place(experiment, load, x);
    let estimates = points.iter().flat_map(|point| point.sizes.values()).map(|size| size.p99);
    let caption = format!("p99 completion time in ms{}{place}", if_intervals(estimates));
    let fold = load < experiment.highest_load();
    (!rows.is_empty()).then_some(Table { caption, head, rows, fold })
}

fn all(experiment: &ExperimentResults<'_>) -> Table {
    let mut rows = Vec::new();
    let mut estimates = Vec::new();
    for point in &experiment.points {
        let sizes = point.sizes.iter().map(|(bytes, size)| (numbers::size(*bytes), size));
        let whole = point.all.iter().map(|all| ("all".to_owned(), all));
        for (name, summary) in sizes.chain(whole) {
            let Summary { messages, late, mean, p50, p90, p99, p999 } = summary;
            rows.push(vec![
                names::display(point.scheme),
                point.load.to_string(),
                point.x.to_string(),
                name,
                messages.to_string(),
                late.to_string(),
                milliseconds(mean.value),
                within(*p50),
                quantile(summary, 0.9, milliseconds(*p90)),
                quantile(summary, 0.99, within(*p99)),
                quantile(summary, 0.999, milliseconds(*p999)),
            ]);
            estimates.extend([*p50, *p99]);
        }
    }
    let head = [
        "scheme",
        "load (r/s)",
        variable(experiment.name),
        "size",
        "messages",
        "not arrived",
        "mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
    ];
    let caption = format!("All completion times in ms{}", if_intervals(estimates));
    Table::new(caption, &head, rows)
}

/// The part of a caption that explains intervals, if there are any.
fn if_intervals(estimates: impl IntoIterator<Item = Estimate>) -> &'static str {
    let any = estimates.into_iter().any(|estimate| estimate.has_interval());
    if any { ", [95 % interval]" } else { "" }
}

/// The text of a quantile, marked if it is the longest time.
fn quantile(summary: &Summary, q: f64, text: String) -> String {
    if summary.is_longest(q) { format!("max {text}") } else { text }
}

/// The goodput of the background, the load of the processors, and the counters of the switches.
fn network(experiment: &ExperimentResults<'_>) -> Table {
    let drops = |(sent, dropped): (u64, u64)| match sent + dropped {
        0 => dash(),
        all => format!("{dropped} ({})", percent(dropped as f64 / all as f64)),
    };
    let row = |point: &Point<'_>| {
        let goodput = point.goodput().map(|goodput| goodput.times(1e-6));
        let goodput = goodput.map_or_else(dash, |g| match figure(g.value) {
            value if g.has_interval() => format!("{value} [{}, {}]", figure(g.low), figure(g.high)),
            value => value,
        });
        vec![
            names::display(point.scheme),
            point.load.to_string(),
            point.x.to_string(),
            goodput,
            percent(point.processors(|trial| trial.busy)),
            percent(point.processors(|trial| trial.stolen)),
            drops(point.queue(|trial| (trial.tiny_sent, trial.tiny_dropped))),
            drops(point.queue(|trial| (trial.default_sent, trial.default_dropped))),
            point.sent_over_original(None).map_or_else(dash, |sent| format!("{sent:.3}")),
        ]
    };
    let head = [
        "scheme",
        "load (r/s)",
        variable(experiment.name),
        "background (Mb/s)",
        "processors busy",
        "taken by other VMs",
        "dropped by tiny queues",
        "dropped by default queues",
        "sent/original",
    ];
    let rows = experiment.points.iter().map(row).collect();
    let estimates = experiment.points.iter().filter_map(Point::goodput);
    let caption = format!("Background goodput{}, processors and queues", if_intervals(estimates));
    Table::new(caption, &head, rows)
}

fn incast(experiment: &ExperimentResults<'_>) -> Table {
    let xs = experiment.xs();
    let row = |scheme: &str| {
        let cell = |x: &f64| {
            let load = experiment.highest_load();
            let Some(point) = experiment.at(scheme, load, *x) else { return dash() };
            let time = point.completion().map_or_else(dash, within);
            match point.incomplete() {
                0 => time,
                count => format!("{time}; {count} incomplete"),
            }
        };
        let mut row = vec![names::display(scheme)];
        row.extend(xs.iter().map(cell));
        row
    };
    let mut head = vec!["scheme".to_owned()];
    head.extend(xs.iter().map(|x| format!("N = {x}")));
    let caption = format!(
        "Time until the last flow is complete in ms{}, without incomplete incasts, in which a flow \
         did not arrive",
        if_intervals(experiment.points.iter().filter_map(Point::completion))
    );
    let rows = experiment.schemes().into_iter().map(row).collect();
    Table { caption, head, rows, fold: false }
}

fn dash() -> String {
    "—".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::synthetic;

    #[test]
    fn every_row_is_as_long_as_the_head() {
        let run = synthetic::run(1, &synthetic::EXPERIMENTS);
        for experiment in ExperimentResults::of(&run) {
            let tables = of(&experiment);
            assert!(tables.len() >= 2, "{}", experiment.name);
            for table in tables {
                assert!(!table.rows.is_empty(), "{}", table.caption);
                for row in &table.rows {
                    assert_eq!(row.len(), table.head.len(), "{}", table.caption);
                }
            }
        }
    }

    #[test]
    fn messages_that_did_not_arrive_are_counted_and_count_in_quantiles() {
        let late = crate::Message { took_us: None, ..synthetic::message() };
        let messages =
            vec![synthetic::message(), late.clone(), crate::Message { bytes: 9000, ..late }];
        let run = crate::Run {
            trials: vec![crate::Trial {
                messages,
                load: 800.0,
                ..synthetic::trial("schemes", "quic")
            }],
            ..synthetic::run(1, &[])
        };
        let experiment = &ExperimentResults::of(&run)[0];
        let table = p99_by_size(experiment, 800.0, 0.0).unwrap().markdown();
        let row = table.trim_end().lines().last().unwrap();
        assert!(row.starts_with("| QUIC (quinn) | max > deadline |"), "{row}");
        assert!(row.ends_with("| > deadline | 2 |"), "{row}");
    }
}
