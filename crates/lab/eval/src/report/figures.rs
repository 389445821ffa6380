//! The figures of each experiment: those of the paper's section V, with the results of this run.

use super::names::{self, TCP};
use super::points::{ExperimentResults, Point};
use cloudburst_report::figures::{
    Across, Axis, Bar, Bars, Chart, Colour, Entry, Figure, Form, Panel, Series,
};
use cloudburst_report::numbers;
use cloudburst_report::statistics::{Estimate, Summary};

const MS: f64 = 1e-3;

/// The figures of an experiment. Unknown experiments have none.
pub(super) fn of(experiment: &ExperimentResults<'_>) -> Vec<Figure> {
    match experiment.name {
        "design-choices" => vec![design_choices(experiment)],
        "schemes" => vec![
            by_size(experiment, "figure-12", "Figure 12: mean", "mean completion time (ms)", |s| {
                s.mean
            }),
            by_size(experiment, "figure-13", "Figure 13: p99", "p99 completion time (ms)", |s| {
                s.p99
            }),
        ],
        "incast" => vec![incast(experiment)],
        "failures" => vec![failures(experiment)],
        "rate" => vec![rate(experiment)],
        "loss" => vec![against_x(
            experiment,
            "loss",
            "packets lost at random on each link between racks (%)",
            "p99 completion time of messages of all sizes against random loss. The paper has no \
             such figure.",
        )],
        "friendly" => friendly(experiment).into_iter().collect(),
        "compare" => experiment.loads().into_iter().map(|load| compare(experiment, load)).collect(),
        _ => Vec::new(),
    }
}

fn design_choices(experiment: &ExperimentResults<'_>) -> Figure {
    let loads = experiment.loads();
    let papers = ["5 KB", "20 KB", "93 KB"];
    let sizes =
        experiment.sizes().into_iter().filter(|bytes| papers.contains(&&*numbers::size(*bytes)));
    let panel = |bytes: u32| Panel {
        title: numbers::size(bytes),
        x: "load (r/s, as in the paper)".to_owned(),
        across: Across::Groups(loads.iter().map(f64::to_string).collect()),
        joined: true,
        series: series(experiment, |point| {
            let place = loads.iter().position(|load| *load == point.load)?;
            Some((place as f64, point.sizes.get(&bytes)?.p99.times(MS)))
        }),
    };
    let chart = Chart {
        y: "p99 completion time (ms)".to_owned(),
        up: Axis::Fitting,
        columns: 3,
        height: 300.0,
        panels: sizes.map(panel).collect(),
    };
    let caption = "Figures 9, 10 and 11: p99 completion time against load. A: coding on one path; \
                   B: coding on all paths; C: coding on one path with tiny queues; D: coding on \
                   all paths with tiny queues.";
    chart.figure("figures-9-10-11", format!("{caption}{}", if_longest(experiment)))
}

/// The sentence that a caption adds if a p99 is the longest time.
fn if_longest(experiment: &ExperimentResults<'_>) -> &'static str {
    if experiment.has_longest_for_p99() {
        " With fewer than 100 messages, the longest time stands in place of the p99."
    } else {
        ""
    }
}

fn by_size(
    experiment: &ExperimentResults<'_>,
    stem: &str,
    what: &str,
    y: &str,
    of: impl Fn(&Summary) -> Estimate,
) -> Figure {
    let sizes = experiment.sizes();
    let panel = |load: f64| Panel {
        title: format!("{load} r/s"),
        x: "message size".to_owned(),
        across: Across::Groups(sizes.iter().map(|bytes| numbers::size(*bytes)).collect()),
        joined: false,
        series: (experiment.schemes().into_iter().filter(|scheme| *scheme != "none"))
            .map(|scheme| Series {
                entry: names::entry(scheme),
                dots: experiment.at(scheme, load, 0.0).map_or_else(Vec::new, |point| {
                    let place = |bytes: &u32| sizes.iter().position(|size| size == bytes);
                    let dot = |(bytes, size)| Some((place(bytes)? as f64, of(size).times(MS)));
                    point.sizes.iter().filter_map(dot).collect()
                }),
            })
            .collect(),
    };
    let panels = experiment.loads().into_iter().map(panel).collect();
    let chart = Chart { y: y.to_owned(), up: Axis::Fitting, columns: 1, height: 230.0, panels };
    let caption = format!("{what} completion time by message size, with a panel for each load.");
    chart.figure(stem, format!("{caption}{}", if_longest(experiment)))
}

fn incast(experiment: &ExperimentResults<'_>) -> Figure {
    let panel = Panel {
        title: "To one receiver, from all hosts of another rack".to_owned(),
        x: "flows at once (N)".to_owned(),
        across: Across::Values(experiment.xs()),
        joined: true,
        series: series(experiment, |point| Some((point.x, point.completion()?.times(MS)))),
    };
    let chart = Chart {
        y: "last flow complete (ms)".to_owned(),
        // The claim is of a straight line.
        up: Axis::Linear,
        columns: 1,
        height: 340.0,
        panels: vec![panel],
    };
    chart.figure(
        "figure-15",
        "Figure 15: the time from the common start of N flows until the last one is complete, \
         averaged over repetitions, without incasts in which a flow did not arrive. Paper: \
         it grows almost linearly with N for Cloudburst, and faster and faster for DCTCP and PIAS.",
    )
}

fn failures(experiment: &ExperimentResults<'_>) -> Figure {
    against_x(
        experiment,
        "figure-16",
        "dead paths, of four",
        "Figure 16: p99 completion time of messages of all sizes against the number of dead paths. \
         Paper, at 2000 r/s and 1 Gb/s: from 5.41 ms with none dead to 6.91 ms, 1.28 times as \
         long.",
    )
}

/// The p99 over all sizes against an experiment's variable, a panel a load.
fn against_x(experiment: &ExperimentResults<'_>, stem: &str, x: &str, caption: &str) -> Figure {
    let xs = experiment.xs();
    let loads = experiment.loads();
    let panel = |load: f64| Panel {
        title: format!("{load} r/s"),
        x: x.to_owned(),
        across: Across::Groups(xs.iter().map(|x| numbers::value(*x)).collect()),
        joined: true,
        series: series(experiment, |point| {
            let place = xs.iter().position(|x| *x == point.x).filter(|_| point.load == load)?;
            Some((place as f64, point.all?.p99.times(MS)))
        }),
    };
    let chart = Chart {
        y: "p99 completion time (ms)".to_owned(),
        up: Axis::Fitting,
        columns: loads.len().clamp(1, 3),
        height: 320.0,
        panels: loads.iter().copied().map(panel).collect(),
    };
    chart.figure(stem, format!("{caption}{}", if_longest(experiment)))
}

fn rate(experiment: &ExperimentResults<'_>) -> Figure {
    // From dark to light, as sizes grow.
    const SIZES: [(Colour, Form); 5] = [
        ((60, 10, 90), Form::Circle),
        ((50, 85, 145), Form::Square),
        ((30, 145, 140), Form::Triangle),
        ((110, 190, 80), Form::Diamond),
        ((225, 170, 20), Form::Wedge),
    ];
    let load = experiment.highest_load();
    let tcp = experiment.points.iter().find(|p| p.scheme == TCP && p.load == load);
    let ours = experiment.schemes().into_iter().filter(|scheme| names::is_cloudburst(scheme));
    let line = |scheme: &str, k: usize, bytes: u32| {
        let (colour, form) = SIZES[k % SIZES.len()];
        let entry = Entry { name: numbers::size(bytes), colour, form, hollow: false };
        let of = experiment.points.iter().filter(|p| p.scheme == scheme && p.load == load);
        let dot = |point: &Point<'_>| {
            // A p99 past the deadline gives no ratio.
            let tcp = Some(tcp?.sizes.get(&bytes)?.p99.value).filter(|tcp| tcp.is_finite())?;
            Some((point.x, point.sizes.get(&bytes)?.p99.times(1.0 / tcp)))
        };
        Series { entry, dots: of.filter_map(dot).collect() }
    };
    let rates = |scheme: &str| {
        let of = experiment.points.iter().filter(|p| p.scheme == scheme && p.load == load);
        of.map(|point| point.x).collect()
    };
    let sizes = experiment.sizes();
    let panel = |scheme: &str| Panel {
        title: names::display(scheme),
        x: "r, share of the link's rate".to_owned(),
        across: Across::Values(rates(scheme)),
        joined: true,
        series: sizes.iter().enumerate().map(|(k, bytes)| line(scheme, k, *bytes)).collect(),
    };
    let panels: Vec<_> = ours.map(panel).collect();
    let dots = || panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.dots);
    let bars = if dots().any(|(_, dot)| dot.has_interval()) {
        " Error bars show the uncertainty of Cloudburst's p99 alone."
    } else {
        ""
    };
    let caption = format!(
        "Figure 18: p99 completion time by message size, as a multiple of that of TCP cubic, \
         against the sending rate r. A value below 1 is shorter than TCP's.{bars} Paper: best near \
         r = 0.5 at an over-subscription of 2:1, at least 12.88 % shorter than DCTCP for every \
         size.{}",
        if_longest(experiment)
    );
    let columns = panels.len().clamp(1, 2);
    let chart = Chart {
        y: "p99 over that of TCP cubic".to_owned(),
        up: Axis::Fitting,
        columns,
        height: 320.0,
        panels,
    };
    chart.figure("figure-18", caption)
}

fn friendly(experiment: &ExperimentResults<'_>) -> Option<Figure> {
    let load = experiment.highest_load();
    let goodput = |point: &Point<'_>| (point.load == load).then(|| point.goodput()).flatten();
    let tcp = experiment.points.iter().find(|p| p.scheme == TCP && p.load == load)?;
    let tcp = tcp.goodput().filter(|tcp| tcp.value > 0.0)?;
    let bar = |point: &Point<'_>| {
        let goodput = goodput(point)?;
        let share = numbers::percent(goodput.value / tcp.value);
        Some(Bar {
            entry: names::entry(point.scheme),
            value: goodput.times(100.0 / tcp.value),
            note: format!("{share}, {} Mb/s", numbers::figure(goodput.value / 1e6)),
        })
    };
    let bars = Bars {
        title: format!("background flows beside {load} r/s"),
        x: "goodput of background flows, % of that beside TCP cubic short flows".to_owned(),
        bars: experiment.points.iter().filter_map(bar).collect(),
    };
    let caption = "The goodput of background flows beside the short flows of each scheme. The \
                   paper has no such figure.";
    Some(bars.figure("friendly", caption))
}

fn compare(experiment: &ExperimentResults<'_>, load: f64) -> Figure {
    let bar = |point: &Point<'_>| {
        let value = point.p99_over_sizes()?.times(MS);
        let time = numbers::milliseconds(value.value / MS);
        let sent = point.sent_over_original(None);
        let sent = sent.map(|sent| format!(", {sent:.2} sent/original"));
        let unit = if value.value.is_finite() { " ms" } else { "" };
        let note = format!("{time}{unit}{}", sent.unwrap_or_default());
        Some(Bar { entry: names::entry(point.scheme), value, note })
    };
    let points = experiment.points.iter().filter(|point| point.load == load);
    let bars = Bars {
        title: format!("{load} r/s"),
        x: "p99 completion time, mean over sizes (ms)".to_owned(),
        bars: points.filter_map(bar).collect(),
    };
    let caption = format!(
        "p99 completion time, averaged over message sizes, and the packets sent for each packet of \
         the messages.{}",
        if_longest(experiment)
    );
    bars.figure(format!("compare-{load}"), caption)
}

/// A series for each scheme that has dots, except the background alone.
fn series(
    experiment: &ExperimentResults<'_>,
    dot: impl Fn(&Point<'_>) -> Option<(f64, Estimate)>,
) -> Vec<Series> {
    let of = |scheme: &str| Series {
        entry: names::entry(scheme),
        dots: experiment.points.iter().filter(|p| p.scheme == scheme).filter_map(&dot).collect(),
    };
    let schemes = experiment.schemes().into_iter().filter(|scheme| *scheme != "none");
    schemes.map(of).filter(|series| !series.dots.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::synthetic;

    #[test]
    fn figures_have_no_clipped_or_overlapping_text() {
        let mut run = synthetic::run(2, &synthetic::EXPERIMENTS);
        // Some messages are late, because their arrows may not cover anything either.
        for message in run.trials.iter_mut().flat_map(|trial| &mut trial.messages).step_by(70) {
            message.took_us = None;
        }
        for figure in ExperimentResults::of(&run).iter().flat_map(of) {
            assert_eq!(figure.flaws(), [""; 0], "{}", figure.stem);
            let words = figure.svg().unwrap().matches("<text").count();
            assert!(words > 5, "{}", figure.stem);
        }
    }
}
