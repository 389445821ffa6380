//! The targets, and the table that README.md shows.

use crate::calls::{Figure, Group, RESPONSES};
use crate::floods::{ASLEEP, Flooding, QUINN, SMALL};
use cloudburst_benches::stats::Median;

/// A ratio to a rival that waits in the same way.
struct Target {
    waits: &'static str,
    ours: &'static str,
    rival: &'static str,
    figure: Figure,
    /// The maximum for each response.
    at_most: [f64; RESPONSES.len()],
}

const fn call(rival: &'static str, figure: Figure, at_most: f64) -> Target {
    Target { waits: "tasks on tokio", ours: "call", rival, figure, at_most: [at_most; 3] }
}

const WITHOUT_LOSS: [Target; 5] = [
    call("HTTP/2", Figure::P50, 0.9),
    call("HTTP/2", Figure::Cpu, 0.9),
    call("quinn", Figure::P50, 0.8),
    call("quinn", Figure::Cpu, 0.8),
    Target {
        waits: "asleep",
        ours: "send, recv",
        rival: "TCP",
        figure: Figure::P50,
        at_most: [1.8, 1.8, 2.0],
    },
];
const WITH_LOSS: Target = call("quinn", Figure::P99, 0.2);
/// The minimum of messages a second relative to quinn's.
const RATE: f64 = 1.0;

/// Returns two Markdown tables of what was measured: whether targets are met, and the table for README.md.
pub(crate) fn tables(groups: &[Group], lossy: &[Group], floods: &[Flooding]) -> String {
    let mut text = String::from("\n| target | bound | measured | |\n|---|---:|---:|---|\n");
    let mut row = |what: String, bound: &str, ratio: Median, met: bool| {
        let met = if met { "met" } else { "**missed**" };
        text += &format!("| {what} | {bound} | {ratio} | {met} |\n");
    };
    let without = WITHOUT_LOSS.iter().map(|target| (target, groups, ""));
    for (target, groups, loss) in without.chain([(&WITH_LOSS, lossy, ", 1 % loss")]) {
        let Target { ours, rival, figure, at_most, .. } = target;
        for (at, (_, size)) in RESPONSES.iter().enumerate() {
            let Some(ratio) = ratio(groups, target.waits, ours, rival, at, *figure) else {
                continue;
            };
            let bound = at_most[at];
            let what = format!("`{ours}` x {rival}: {figure:?}, {size}{loss}");
            row(what, &format!("at most {bound}"), ratio, ratio.value <= bound);
        }
    }
    if let Some(ratio) = rate(floods) {
        let what = "5 KB messages a second, 64 in flight, x quinn".into();
        row(what, &format!("at least {RATE}"), ratio, ratio.value >= RATE);
    }
    text + &readme(groups, lossy, floods)
}

fn readme(groups: &[Group], lossy: &[Group], floods: &[Flooding]) -> String {
    let mut text = String::from(
        "\nFor README.md:\n\n| | beside | 5 KB | 20 KB | 93 KB |\n|---|---|---:|---:|---:|\n",
    );
    let mut row = |what: &str, beside: &str, ratios: &[Option<Median>]| {
        let cell = |ratio: &Option<Median>| {
            ratio.map_or(String::new(), |ratio| format!("{:.2}", ratio.value))
        };
        let cells: Vec<_> = ratios.iter().map(cell).collect();
        text += &format!("| {what} | {beside} | {} |\n", cells.join(" | "));
    };
    let three = |groups: &[Group], waits, ours, rival, figure| {
        [0, 1, 2].map(|at| ratio(groups, waits, ours, rival, at, figure))
    };
    let call = |groups, rival, figure| three(groups, "tasks on tokio", "call", rival, figure);
    const RIVALS: [(&str, &str); 3] =
        [("HTTP/2", "HTTP/2 (hyper)"), ("quinn", "QUIC (quinn)"), ("TCP", "kernel TCP")];
    for (what, figure) in
        [("median of `call`, tokio", Figure::P50), ("its processor time", Figure::Cpu)]
    {
        for (at, (rival, name)) in RIVALS.into_iter().enumerate() {
            row(if at == 0 { what } else { "" }, name, &call(groups, rival, figure));
        }
    }
    for (what, waits) in [("threads that sleep", "asleep"), ("threads that spin", "spinning")] {
        let what = format!("median of `send` and back, {what}");
        let ratios = three(groups, waits, "send, recv", "TCP", Figure::P50);
        row(&what, "kernel TCP", &ratios);
    }
    row("p99 of `call`, 1 % lost each way", "QUIC (quinn)", &call(lossy, "quinn", Figure::P99));
    row("", "kernel TCP", &call(lossy, "TCP", Figure::P99));
    row("messages a second, 64 in flight", "QUIC (quinn)", &[rate(floods), None, None]);
    text
}

fn ratio(
    groups: &[Group],
    waits: &str,
    ours: &str,
    rival: &str,
    response: usize,
    figure: Figure,
) -> Option<Median> {
    let group = groups.iter().find(|group| group.waits == waits)?;
    Some(group.rival(ours).ratio(group.rival(rival), response, figure))
}

/// Returns the messages of 5 KB a second relative to quinn's, of an endpoint that sleeps like quinn's.
fn rate(floods: &[Flooding]) -> Option<Median> {
    Some(floods.get(ASLEEP)?.ratio(&floods[QUINN], SMALL))
}
