//! What is wrong, and what to do about it.

use super::report::{Buffers, Found, Port, Problem, Report, routers};
use std::net::IpAddr;

/// Lost packets of a thousand that are a problem.
const MUCH_PERMILLE: u64 = 50;

/// Everything that is wrong.
pub(super) fn of(report: &Report) -> Vec<Problem> {
    let mut problems = report.addresses.problems();
    dead_ports(report, &mut problems);
    marks(report, &mut problems);
    losses(report, &mut problems);
    paths(report, &mut problems);
    for (end, name) in [(&report.here, "here"), (&report.there, "at the receiver")] {
        buffers(&end.buffers, name, &mut problems);
        if end.kernel_drops > 0 {
            problems.push(problem(
                format!(
                    "{} datagrams were dropped {name}: receive buffers were full",
                    end.kernel_drops
                ),
                "let senders be slower (--rate, --capacity), or allow larger buffers: \
                 sysctl -w net.core.rmem_max=16777216",
            ));
        }
        if !end.gso {
            problems.push(problem(
                format!("the system cannot cut batches {name} (GSO): sending takes more of a processor"),
                "allow the device to compute checksums: ethtool -K DEVICE tx on tx-udp-segmentation on",
            ));
        }
    }
    problems
}

fn problem(what: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem { what: what.into(), remedy: remedy.into() }
}

/// The ports of which that is true: how many, and which.
fn ports_of(report: &Report, is_so: impl Fn(&Found) -> bool) -> Option<(String, Vec<&Port>)> {
    let is_so = |port: &&Port| port.found.as_ref().is_some_and(&is_so);
    let so: Vec<&Port> = report.ports.iter().filter(is_so).collect();
    let numbers = list(so.iter().map(|port| port.port.to_string()));
    let text = format!("{} of {} source ports ({numbers})", so.len(), report.ports.len());
    (!so.is_empty()).then_some((text, so))
}

/// The first few.
fn list(all: impl Iterator<Item = String>) -> String {
    const FEW: usize = 8;
    let mut all: Vec<String> = all.collect();
    if all.len() > FEW {
        all.truncate(FEW);
        all.push("...".into());
    }
    all.join(", ")
}

/// Routers on the way there that all of `so` may pass, as far as routers tell, and no other port
/// that works does.
fn suspects(report: &Report, so: &[&Port]) -> String {
    let others = || report.ports.iter().filter(|port| port.found.is_some());
    let hop = |port: &Port, at: usize| port.hops.get(at).copied().flatten();
    let mut found: Vec<IpAddr> = Vec::new();
    for at in 0..so.iter().map(|port| port.hops.len()).max().unwrap_or(0) {
        let Some(router) = so.iter().find_map(|port| hop(port, at)) else { continue };
        let all = so.iter().all(|port| hop(port, at).is_none_or(|hop| hop == router));
        let is_so = |port: &Port| so.iter().any(|so| so.port == port.port);
        let only = !others().any(|port| !is_so(port) && hop(port, at) == Some(router));
        if all && only && !found.contains(&router) {
            found.push(router);
        }
    }
    match &found[..] {
        [] => String::new(),
        found => format!(", just those by way of {}", list(found.iter().map(IpAddr::to_string))),
    }
}

/// Whether more of the packets had another DSCP than a stray answer would explain.
const fn is_rewritten(foreign: u64, of: u64) -> bool {
    foreign.saturating_mul(4) > of
}

fn dead_ports(report: &Report, problems: &mut Vec<Problem>) {
    let dead: Vec<&Port> = report.ports.iter().filter(|port| port.found.is_none()).collect();
    if !dead.is_empty() {
        let ports =
            list(dead.iter().map(|port| format!("{} ({})", port.port, routers(&port.hops))));
        problems.push(problem(
            format!(
                "{} of {} source ports have no answer, there or back: {}",
                dead.len(),
                report.ports.len(),
                ports
            ),
            "look behind the last router that answers, and at the way back; meanwhile transfers go \
             around it, at the price of some packets",
        ));
    }
    if !report.all_ports_answered {
        problems.push(problem(
            format!(
                "the receiver's answer does not come to an endpoint with {} source ports, though it \
                 does to one with a single port: something on the way drops what comes to ports \
                 that have not sent",
                report.ports.len()
            ),
            "send with --paths ecmp:1, or have firewalls let UDP in from the receiver",
        ));
    }
    if !report.burst_arrived {
        problems.push(problem(
            "a message of 60 kB did not arrive, though single packets do",
            "if the link is slow, say so by --capacity",
        ));
    }
}

fn marks(report: &Report, problems: &mut Vec<Problem>) {
    let (here, there) = (&report.here, &report.there);
    if here.dscp != there.dscp {
        return problems.push(problem(
            format!(
                "the ends have different DSCPs: {} here and {} at the receiver; whether they survive \
                 cannot be told",
                here.dscp, there.dscp
            ),
            "give both the same --dscp, and ask again",
        ));
    }
    let first = |dscp: Option<u8>| dscp.map_or("another".into(), |dscp| dscp.to_string());
    let remedy = "have the switches trust the DSCP of hosts (and of each other): else these packets \
                  miss the shallow queue";
    if let Some((ports, so)) = ports_of(report, Found::is_rewritten_there) {
        let (first, suspects) = (first(there.first_foreign_dscp), suspects(report, &so));
        problems.push(problem(
            format!(
                "DSCP {} does not survive the way there, from {ports}{suspects}: the first other one \
                 that the receiver ever saw was {first}",
                here.dscp
            ),
            remedy,
        ));
    }
    if let Some((ports, so)) = ports_of(report, Found::is_rewritten_back) {
        let found = so.iter().filter_map(|port| port.found.as_ref());
        let first = first(found.filter_map(|found| found.first_foreign_dscp_back).next());
        problems.push(problem(
            format!("DSCP {} does not survive the way back, to {ports}: it is {first}", here.dscp),
            remedy,
        ));
    }
}

fn losses(report: &Report, problems: &mut Vec<Problem>) {
    let much = |lost: u64, of: u64| {
        lost > 0 && lost.saturating_mul(1000) >= of.saturating_mul(MUCH_PERMILLE)
    };
    let remedy = "look at the error and drop counters of the routers on these ways";
    if let Some((ports, so)) = ports_of(report, |found| much(found.lost_there, found.sent)) {
        let suspects = suspects(report, &so);
        problems.push(problem(
            format!(
                "5 % or more of single packets are lost on the way there, from {ports}{suspects}"
            ),
            remedy,
        ));
    }
    if let Some((ports, _)) = ports_of(report, |found| much(found.lost_back, found.answers)) {
        problems.push(problem(
            format!("5 % or more of single packets are lost on the way back, to {ports}"),
            remedy,
        ));
    }
}

impl Found {
    pub(super) const fn is_rewritten_there(&self) -> bool {
        is_rewritten(self.foreign_dscp_there, self.sent)
    }

    pub(super) const fn is_rewritten_back(&self) -> bool {
        is_rewritten(self.foreign_dscp_back, self.answers)
    }
}

fn paths(report: &Report, problems: &mut Vec<Problem>) {
    let Some(paths) = &report.paths else { return };
    if report.ports.len() > 1 && paths.len() == 1 {
        problems.push(problem(
            "all source ports take the same way, as far as routers tell",
            "have the switches hash UDP ports (ECMP, \"layer 4\"); where they cannot, use --paths \
             xpath:... or bounce:...; with one path, TCP is faster",
        ));
    }
}

fn buffers(buffers: &Buffers, name: &str, problems: &mut Vec<Problem>) {
    let Buffers { wanted, receive, send } = *buffers;
    for (granted, what, sysctl) in
        [(receive, "receive", "net.core.rmem_max"), (send, "send", "net.core.wmem_max")]
    {
        if granted < wanted {
            problems.push(problem(
                format!(
                    "{what} buffers {name} have {granted} bytes of {wanted}: bursts overflow them"
                ),
                format!("{name}: sysctl -w {sysctl}={wanted}"),
            ));
        }
    }
}
