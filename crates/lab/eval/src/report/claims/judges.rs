//! The findings for each claim, by one experiment and for given settings of Cloudburst.

use crate::report::names::{self, TCP, display, with_settings};
use crate::report::points::{ExperimentResults, Point};
use cloudburst_report::claims::{Finding, Reached};
use cloudburst_report::numbers::{self, milliseconds, percent};
use cloudburst_report::statistics::{Summary, linear_fit, mean, reduction};
use cloudburst_workload::paper;

/// The p99; `None` with too few messages for one.
fn p99(messages: &Summary) -> Option<f64> {
    (!messages.is_longest(0.99)).then_some(messages.p99.value)
}

/// The mean over sizes of the p99; `None` if one of them has none.
fn p99_over_sizes(point: &Point<'_>) -> Option<f64> {
    mean(&point.sizes.values().map(p99).collect::<Option<Vec<_>>>()?)
}

/// `Cloudburst D 1.20 ms, TCP cubic 4.80 ms: 75.0 % less`.
fn compared(a: (&str, f64), b: (&str, f64)) -> String {
    let times = |(scheme, us): (&str, f64)| {
        let unit = if us.is_finite() { " ms" } else { "" };
        format!("{} {}{unit}", display(scheme), milliseconds(us))
    };
    let less = reduction(a.1, b.1);
    let difference = match (less.is_finite() && a.1.is_finite() && b.1.is_finite(), less >= 0.0) {
        (false, _) => String::new(),
        (true, true) => format!(": {} less", percent(less)),
        (true, false) => format!(": {} more", percent(-less)),
    };
    format!("{}, {}{difference}", times(a), times(b))
}

/// A scheme's point at the highest load, at x 0.
fn at_highest<'e, 'a>(
    experiment: &'e ExperimentResults<'a>,
    scheme: &str,
) -> Option<&'e Point<'a>> {
    experiment.at(scheme, experiment.highest_load(), 0.0)
}

pub(super) fn sizes_below(
    e: &ExperimentResults<'_>,
    ours: &str,
    other: &str,
    mark: f64,
) -> Vec<Finding> {
    let time = |scheme| p99_over_sizes(at_highest(e, scheme)?);
    let (Some(a), Some(b)) = (time(ours), time(other)) else { return Vec::new() };
    let less = reduction(a, b);
    vec![(Reached::of(less >= mark, less > 0.0), compared((ours, a), (other, b)))]
}

/// The same for one size, averaged over all loads that both have.
pub(super) fn size_below(
    e: &ExperimentResults<'_>,
    ours: &str,
    other: &str,
    bytes: u64,
    mark: f64,
) -> Option<Finding> {
    let bytes = bytes as u32;
    let of = |scheme, load: f64| p99(e.at(scheme, load, 0.0)?.sizes.get(&bytes)?);
    let both = |load: &f64| Some((of(ours, *load)?, of(other, *load)?));
    let (a, b): (Vec<_>, Vec<_>) = e.loads().iter().filter_map(both).unzip();
    let a = mean(&a)?;
    let b = mean(&b)?;
    let less = reduction(a, b);
    let words = format!("{}: {}", numbers::size(bytes), compared((ours, a), (other, b)));
    Some((Reached::of(less >= mark, less > 0.0), words))
}

pub(super) fn tail(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let ours = with_settings("d", settings);
    let others = e.schemes().into_iter().filter(|scheme| !names::is_cloudburst(scheme));
    let mark = |scheme| if matches!(scheme, "quic" | "mptcp") { f64::MIN_POSITIVE } else { 0.6 };
    others.flat_map(|other| sizes_below(e, &ours, other, mark(other))).collect()
}

pub(super) fn median(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let ours = with_settings("d", settings);
    let time = |scheme| at_highest(e, scheme)?.over_sizes(|size| size.p50.value);
    let others = e.schemes().into_iter().filter(|scheme| !names::is_cloudburst(scheme));
    let best = others.filter_map(|scheme| Some((scheme, time(scheme)?)));
    let best = best.min_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(time), Some(best)) = (time(&ours), best) else { return Vec::new() };
    let reached = Reached::of(time <= best.1 * 1.1, time <= best.1 * 1.25);
    let reached = if time.is_finite() { reached } else { Reached::No };
    vec![(reached, compared((&ours, time), best))]
}

pub(super) fn redundancy(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let ours = with_settings("d", settings);
    let points = e.points.iter().filter(|point| point.scheme == ours);
    let cells = points.flat_map(|point| {
        point.sizes.keys().filter_map(|bytes| point.sent_over_original(Some(*bytes)))
    });
    let Some(mean) = mean(&cells.collect::<Vec<_>>()) else { return Vec::new() };
    let aim = if mean <= 1.2 { "within the aim" } else { "beyond the aim" };
    let mut counted = 0;
    let mut all = 0;
    for message in
        e.points.iter().filter(|point| point.scheme == ours).flat_map(|point| point.messages())
    {
        counted += usize::from(message.packets.is_some());
        all += 1;
    }
    let words = format!("{mean:.3}, {aim} of 1.2, over {counted} of {all} messages");
    vec![(Reached::of(mean <= paper::SENT_PER_NEEDED, false), words)]
}

pub(super) fn coding_alone(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let ours = with_settings("a", settings);
    let time = |scheme| p99_over_sizes(at_highest(e, scheme)?);
    let (Some(a), Some(b)) = (time(&ours), time(TCP)) else { return Vec::new() };
    let longer = -reduction(a, b);
    vec![(
        Reached::of(longer >= paper::A_ABOVE_DCTCP, longer > 0.0),
        compared((&ours, a), (TCP, b)),
    )]
}

pub(super) fn many_paths(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let b = with_settings("b", settings);
    let a = with_settings("a", settings);
    let marks = paper::B_BELOW_A.into_iter();
    marks.filter_map(|(bytes, mark)| size_below(e, &b, &a, bytes, mark)).collect()
}

/// The time until the last flow of an incast is complete; infinite if a flow did not arrive.
fn whole(point: &Point<'_>) -> f64 {
    match point.completion() {
        Some(time) if point.incomplete() == 0 => time.value,
        _ => f64::INFINITY,
    }
}

pub(super) fn incast_is_linear(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let ours = with_settings("d", settings);
    let points = e.points.iter().filter(|point| point.scheme == ours);
    let dots: Vec<_> = points.map(|point| (point.x, whole(point))).collect();
    if dots.iter().any(|dot| dot.1.is_infinite()) {
        return vec![(Reached::No, "some flows did not arrive".to_owned())];
    }
    let Some((slope, fit)) = linear_fit(&dots) else { return Vec::new() };
    let words = format!("{} ms for each further flow, R² = {fit:.3}", milliseconds(slope));
    vec![(Reached::linear_growth(slope, fit), words)]
}

pub(super) fn incast_below_tcp(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let ours = with_settings("d", settings);
    let points = e.points.iter().filter(|point| point.scheme == ours && point.x > 8.0);
    let both = points.filter_map(|point| Some((point, e.at(TCP, point.load, point.x)?)));
    let is_below: Vec<bool> = both.map(|(point, tcp)| whole(point) < whole(tcp)).collect();
    let below = is_below.iter().filter(|below| **below).count();
    let points = is_below.len();
    if points == 0 {
        return Vec::new();
    }
    let words = format!("below TCP cubic at {below} of {points} points with N above 8");
    vec![(Reached::at(below, points), words)]
}

pub(super) fn dead_paths(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let ours = with_settings("d", settings);
    let time = |dead| p99(e.at(&ours, e.highest_load(), dead)?.all.as_ref()?);
    let (Some(none), Some(three)) = (time(0.0), time(3.0)) else { return Vec::new() };
    let ratio = three / none;
    let unit = |us: f64| if us.is_finite() { " ms" } else { "" };
    let words = format!(
        "{}{} with none dead, {}{} with three",
        milliseconds(none),
        unit(none),
        milliseconds(three),
        unit(three)
    );
    let words = if ratio.is_finite() { format!("{words}: {ratio:.2} times") } else { words };
    // Not a number if both are infinite, and then within neither.
    vec![(Reached::of(ratio <= 1.5, ratio <= 2.0), words)]
}

pub(super) fn rate(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let ours = with_settings("d", settings);
    let load = e.highest_load();
    let points: Vec<_> = e.points.iter().filter(|p| p.scheme == ours && p.load == load).collect();
    let times = points.iter().filter_map(|point| Some((point.x, p99_over_sizes(point)?)));
    let mut findings = Vec::new();
    if let Some((r, time)) =
        times.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|best| best.1.is_finite())
    {
        let words =
            format!("best r of {} tried: {r}, with {} ms", points.len(), milliseconds(time));
        findings.push((Reached::near_half(r), words));
    }
    let tcp = e.points.iter().find(|point| point.scheme == TCP && point.load == load);
    let near = points.iter().min_by(|a, b| (a.x - 0.5).abs().total_cmp(&(b.x - 0.5).abs()));
    if let (Some(tcp), Some(near)) = (tcp, near) {
        let of = |(bytes, size): (&u32, &Summary)| {
            Some(reduction(p99(size)?, p99(tcp.sizes.get(bytes)?)?))
        };
        let all: Option<Vec<f64>> = near.sizes.iter().map(of).collect();
        let least = all.into_iter().flatten().reduce(f64::min);
        findings.extend(least.map(|least| {
            let words = format!(
                "at r = {}: every size at least {} below TCP cubic",
                near.x,
                percent(least)
            );
            (Reached::of(least >= paper::SLOWER_BELOW_DCTCP, least > 0.0), words)
        }));
    }
    findings
}

pub(super) fn background(e: &ExperimentResults<'_>, settings: &str) -> Vec<Finding> {
    let ours = with_settings("d", settings);
    let of = |scheme| Some(at_highest(e, scheme)?.goodput()?.value);
    let (Some(a), Some(b)) = (of(&ours), of(TCP).filter(|tcp| *tcp > 0.0)) else {
        return Vec::new();
    };
    let share = a / b;
    let words = format!(
        "{} Mb/s, {} Mb/s beside TCP cubic: {}",
        numbers::figure(a / 1e6),
        numbers::figure(b / 1e6),
        percent(share)
    );
    vec![(Reached::of(share >= 0.9, share >= 0.8), words)]
}
