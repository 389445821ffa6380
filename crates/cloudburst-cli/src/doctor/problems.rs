//! Finds problems in measurements, and their remedies.

use super::addresses::{Addresses, Named};
use super::exam::Findings;
use super::measured::{Buffers, Measured, Port, Sizes, routers};
use serde::Serialize;
use std::net::IpAddr;

/// The loss that counts as a problem, in packets per thousand.
const MUCH_PERMILLE: u64 = 50;

/// A problem and its remedy.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    pub(super) what: String,
    pub(super) remedy: String,
}

/// Returns all problems.
pub(super) fn of(measured: &Measured) -> Vec<Problem> {
    let mut problems = Vec::new();
    addresses(&measured.addresses, &mut problems);
    sizes(measured, &mut problems);
    dead_ports(measured, &mut problems);
    marks(measured, &mut problems);
    losses(measured, &mut problems);
    paths(measured, &mut problems);
    for (end, name) in [(&measured.here, "here"), (&measured.there, "at the receiver")] {
        buffers(&end.buffers, name, &mut problems);
        if end.kernel_drops > 0 {
            problems.push(problem(
                format!(
                    "{} datagrams were dropped {name}: receive buffers were full",
                    end.kernel_drops
                ),
                "slow senders down (--rate, --capacity), or allow larger buffers: \
                 sysctl -w net.core.rmem_max=16777216",
            ));
        }
        if !end.gso {
            problems.push(problem(
                format!("the system cannot segment batches {name} (GSO): sending takes more processor time"),
                "allow the device to compute checksums: ethtool -K DEVICE tx on tx-udp-segmentation on",
            ));
        }
    }
    problems
}

fn problem(what: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem { what: what.into(), remedy: remedy.into() }
}

/// Returns the ports that `selects` selects by their findings, and a text that names them; `None` if there are none.
fn ports_of(
    measured: &Measured,
    selects: impl Fn(&Findings) -> bool,
) -> Option<(String, Vec<&Port>)> {
    let affected: Vec<&Port> =
        measured.ports.iter().filter(|port| port.found.as_ref().is_some_and(&selects)).collect();
    if affected.is_empty() {
        return None;
    }
    let numbers = list(affected.iter().map(|port| port.port.to_string()));
    let text = format!("{} of {} source ports ({numbers})", affected.len(), measured.ports.len());
    Some((text, affected))
}

/// Joins the first few.
fn list(all: impl Iterator<Item = String>) -> String {
    const FEW: usize = 8;
    let mut all: Vec<String> = all.collect();
    if all.len() > FEW {
        all.truncate(FEW);
        all.push("...".into());
    }
    all.join(", ")
}

/// Names the routers on the way there that all `affected` ports may pass, judging by the routers that answer, and that
/// no other working port passes.
fn suspects(measured: &Measured, affected: &[&Port]) -> String {
    let hop = |port: &Port, at: usize| port.hops.get(at).copied().flatten();
    let is_affected = |port: &Port| affected.iter().any(|each| each.port == port.port);
    let others: Vec<&Port> =
        measured.ports.iter().filter(|port| port.found.is_some() && !is_affected(port)).collect();
    let mut found: Vec<IpAddr> = Vec::new();
    for at in 0..affected.iter().map(|port| port.hops.len()).max().unwrap_or(0) {
        let Some(router) = affected.iter().find_map(|port| hop(port, at)) else { continue };
        let passes = |port: &Port| hop(port, at) == Some(router);
        let may_pass = |port: &Port| hop(port, at).is_none() || passes(port);
        let is_suspect =
            affected.iter().all(|port| may_pass(port)) && !others.iter().any(|port| passes(port));
        if is_suspect && !found.contains(&router) {
            found.push(router);
        }
    }
    match &found[..] {
        [] => String::new(),
        found => {
            format!(", exactly those that cross {}", list(found.iter().map(IpAddr::to_string)))
        }
    }
}

/// Whether packets are too long for the path, and no router has reported it.
fn are_silently_too_long(measured: &Measured) -> bool {
    let Sizes { mtu, path_mtu, full_packets_arrive, .. } = measured.sizes;
    !full_packets_arrive && path_mtu.is_none_or(|path_mtu| path_mtu >= mtu)
}

fn addresses(addresses: &Addresses, problems: &mut Vec<Problem>) {
    if addresses.naming == Some(Named::Foreign) {
        let peer = addresses.peer;
        problems.push(problem(
            format!(
                "the peer is behind destination NAT or a virtual IP address, and does not know \
                 that it is known as {peer}; {}",
                addresses.listening()
            ),
            format!("start it as cbrst-recv --known-as {peer}, or set Builder::known_as"),
        ));
    }
}

fn sizes(measured: &Measured, problems: &mut Vec<Problem>) {
    let Sizes { mtu, path_mtu, .. } = measured.sizes;
    if let Some(path_mtu) = path_mtu.filter(|path_mtu| *path_mtu < mtu) {
        problems.push(problem(
            format!(
                "full packets have {mtu} bytes, but the path there carries {path_mtu} bytes: each sender finds \
                 that out with its first long message"
            ),
            format!(
                "nothing, or send with --mtu {path_mtu} (services: Config::mtu), or raise the MTU of the links"
            ),
        ));
    }
    if are_silently_too_long(measured) {
        problems.push(problem(
            format!("single packets of {mtu} bytes do not arrive, though short ones do"),
            "senders find that out with their first long message, down to 1280 bytes; to save them the time, \
             send with the --mtu of the narrowest link on the way, such as 1450 over VXLAN or 1420 over \
             WireGuard, and let ICMP through (\"fragmentation needed\", \"packet too big\")",
        ));
    }
}

fn dead_ports(measured: &Measured, problems: &mut Vec<Problem>) {
    let dead: Vec<&Port> = measured.ports.iter().filter(|port| port.found.is_none()).collect();
    if !dead.is_empty() && !are_silently_too_long(measured) {
        let ports =
            list(dead.iter().map(|port| format!("{} ({})", port.port, routers(&port.hops))));
        problems.push(problem(
            format!(
                "{} of {} source ports get no answer; packets may be lost in either direction: {}",
                dead.len(),
                measured.ports.len(),
                ports
            ),
            "look beyond the last router that answers, and at the way back; meanwhile transfers use \
             the other ports, at the cost of some packets",
        ));
    }
    if !measured.all_ports_answered {
        problems.push(problem(
            format!(
                "the receiver's answer does not reach an endpoint with {} source ports, though it \
                 reaches one with a single port: a device on the way drops packets to ports that \
                 have not sent",
                measured.ports.len()
            ),
            "send with --paths ecmp:1, or have firewalls let UDP in from the receiver",
        ));
    }
    if !measured.sizes.burst_arrived && !are_silently_too_long(measured) {
        problems.push(problem(
            "a message of 60 kB did not arrive, though single packets do",
            "if the link is slow, state its capacity with --capacity",
        ));
    }
}

fn marks(measured: &Measured, problems: &mut Vec<Problem>) {
    let here = &measured.here;
    let there = &measured.there;
    if here.dscp != there.dscp {
        return problems.push(problem(
            format!(
                "the ends have different DSCPs: {} here and {} at the receiver, so it is not known \
                 whether they survive",
                here.dscp, there.dscp
            ),
            "give both the same --dscp, and run this again",
        ));
    }
    let first = |dscp: Option<u8>| dscp.map_or("another".into(), |dscp| dscp.to_string());
    let remedy = "have the switches trust the DSCP of hosts (and of each other): otherwise these \
                  packets miss the shallow queue";
    if let Some((ports, affected)) = ports_of(measured, Findings::is_rewritten_there) {
        let first = first(there.first_foreign_dscp);
        let suspects = suspects(measured, &affected);
        problems.push(problem(
            format!(
                "DSCP {} does not survive the way there, from {ports}{suspects}: the first other \
                 DSCP that the receiver ever saw was {first}",
                here.dscp
            ),
            remedy,
        ));
    }
    if let Some((ports, affected)) = ports_of(measured, Findings::is_rewritten_back) {
        let found = affected.iter().filter_map(|port| port.found.as_ref());
        let first = first(found.filter_map(|found| found.first_foreign_dscp_back).next());
        problems.push(problem(
            format!(
                "DSCP {} does not survive the way back, to {ports}: it becomes {first}",
                here.dscp
            ),
            remedy,
        ));
    }
}

fn losses(measured: &Measured, problems: &mut Vec<Problem>) {
    let much = |lost: u64, of: u64| {
        lost > 0 && lost.saturating_mul(1000) >= of.saturating_mul(MUCH_PERMILLE)
    };
    let much_percent = MUCH_PERMILLE / 10;
    let remedy = "check the error and drop counters of the routers on these paths";
    let too_long = are_silently_too_long(measured);
    let is_lossy = |found: &Findings| !too_long && much(found.lost_there, found.sent);
    if let Some((ports, affected)) = ports_of(measured, is_lossy) {
        let suspects = suspects(measured, &affected);
        problems.push(problem(
            format!(
                "{much_percent} % or more of single packets are lost on the way there, from {ports}{suspects}"
            ),
            remedy,
        ));
    }
    if let Some((ports, _)) = ports_of(measured, |found| much(found.lost_back, found.answers)) {
        problems.push(problem(
            format!(
                "{much_percent} % or more of single packets are lost on the way back, to {ports}"
            ),
            remedy,
        ));
    }
}

fn paths(measured: &Measured, problems: &mut Vec<Problem>) {
    let Some(paths) = &measured.paths else { return };
    if measured.ports.len() > 1 && paths.len() == 1 {
        problems.push(problem(
            "all source ports take the same path, as far as routers answer",
            "have the switches hash UDP ports (ECMP, \"layer 4\"); where they cannot, use --paths \
             xpath:... or bounce:...; with one path, Cloudburst gains little for long messages",
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
                    "{what} buffers {name} have {granted} of the {wanted} bytes requested: bursts overflow them"
                ),
                format!("{name}: sysctl -w {sysctl}={wanted}"),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_peer_that_does_not_know_its_translated_address_is_a_problem() {
        let problems_with = |naming: Option<Named>| {
            let address = |text: &str| text.parse().unwrap();
            let exchange = Addresses {
                local: address("10.0.0.1:4000"),
                peer: address("192.0.2.7:443"),
                seen: Some(address("10.0.0.1:4000")),
                listens: Some(address("10.0.0.2:7000")),
                naming,
                unasked_arrive: Some(true),
            };
            let mut problems = Vec::new();
            addresses(&exchange, &mut problems);
            problems
        };
        for naming in [None, Some(Named::Own), Some(Named::Translated)] {
            assert!(problems_with(naming).is_empty(), "{naming:?}");
        }
        let problems = problems_with(Some(Named::Foreign));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].remedy.contains("cbrst-recv --known-as 192.0.2.7:443"), "{problems:?}");
    }
}
