//! The targets, and the rows that README.md shows.

use crate::calls::{Figure, Group, RESPONSES};
use crate::floods::{Flooding, QUINN, SMALL};
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

/// Returns two Markdown tables of what was measured: whether targets are met, and the rows for README.md.
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
    let three = |groups: &[Group], waits, ours, rival, figure| {
        let ratios = (0..RESPONSES.len())
            .filter_map(|at| ratio(groups, waits, ours, rival, at, figure))
            .map(|ratio| format!("{:.2}", ratio.value));
        ratios.collect::<Vec<_>>().join(", ")
    };
    let tasks = |groups, rival, figure| three(groups, "tasks on tokio", "call", rival, figure);
    let mut text = String::from("\nRows for README.md:\n\n");
    let mut row = |what: &str, beside: &str, ratios: String| {
        text += &format!("| {what} | {beside} | {ratios} |\n");
    };
    row(
        "p99 of a call, 1 % lost each way",
        "QUIC (quinn), tokio",
        tasks(lossy, "quinn", Figure::P99),
    );
    row("", "TCP, tokio", tasks(lossy, "TCP", Figure::P99));
    row(
        "median of a call, nothing lost",
        "TCP, threads that sleep",
        three(groups, "asleep", "send, recv", "TCP", Figure::P50),
    );
    row("", "TCP, threads that spin", three(groups, "spinning", "send, recv", "TCP", Figure::P50));
    for rival in ["TCP", "HTTP/2", "quinn"] {
        row("", &format!("{rival}, tokio"), tasks(groups, rival, Figure::P50));
    }
    for (at, rival) in ["TCP", "HTTP/2", "quinn"].into_iter().enumerate() {
        let what = if at == 0 { "processor time of a call, both ends" } else { "" };
        row(what, &format!("{rival}, tokio"), tasks(groups, rival, Figure::Cpu));
    }
    let rate = rate(floods).map_or(String::new(), |ratio| format!("{:.2}", ratio.value));
    row("messages of 5 KB a second, 64 in flight", "quinn, tokio", rate);
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
    Some(floods.get(QUINN + 1)?.ratio(&floods[QUINN], SMALL))
}
