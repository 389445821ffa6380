//! The requests and the background of section V, and the measurement of requests.

use super::setup::{BACKGROUND, MESSAGES, Setup};
use super::site::Site;
use crate::engine::{SECOND, Time};
use crate::experiment::{Completion, Outcome};
use crate::fabric::Clos;
use crate::transport::cloudburst::codec_time;
use crate::workload::{Background, Mix, Peers, RequestConfig, Requests, Workload, part};
use crate::{Network, Simulation};
use cloudburst_core::code::Code;
use cloudburst_workload::paper;
use core::ops::Range;
use std::error::Error;

/// The symbol size in bytes for which the times of codes were measured. `Flow::needed` cannot be used instead: it
/// counts the symbols of the endpoint's layout, whose sizes differ, and is set only when the sender knows of the
/// delivery.
const SYMBOL: u64 = 1_408;

/// Requests and background flows.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    /// Requests per second of each host.
    pub(super) rate: f64,
    /// The hosts that send background flows, each one after the other.
    pub(super) background: Range<u16>,
    /// The start of all traffic. Sessions are opened earlier.
    pub(super) from: Time,
    /// The time from then until requests are measured, in which the windows of background flows converge.
    pub(super) warm_up: Time,
    /// The time in which requests are measured.
    pub(super) span: Time,
}

/// Runs `traffic` with `setup`, in a network that `change` has modified.
pub(super) fn run(
    site: &Site,
    setup: Setup,
    traffic: &Traffic,
    seed: u64,
    change: impl FnOnce(&mut Clos),
) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let counted = traffic.from + traffic.warm_up;
    let until = counted + traffic.span;
    let config =
        RequestConfig { rate: traffic.rate, from: traffic.from, until, ..RequestConfig::default() };
    let requests = Requests::new(&site.shape, &config, [MESSAGES; 2], seed)?;
    let due = requests.all();
    let mut parts: Vec<Box<dyn Workload>> = vec![Box::new(requests)];
    if !traffic.background.is_empty() {
        let senders = traffic.background.clone();
        let peers = Peers::OtherRacks;
        let background = Background::new(
            &site.shape,
            senders,
            peers,
            paper::BACKGROUND,
            BACKGROUND,
            traffic.from,
            seed,
        )?;
        parts.push(Box::new(background));
    }
    let mut fabric = setup.fabric(site)?;
    change(&mut fabric);
    let transports = setup.transports(site)?;
    let mut simulation = Simulation::new(fabric, transports, Box::new(Mix::new(parts)), seed);
    simulation.run(counted);
    let before = background_bytes(simulation.network());
    simulation.run(until);
    let long = background_bytes(simulation.network()) - before;
    // The last requests may take until their deadline of 10 s. Most take a millisecond.
    let mut now = until;
    while now < until + 11 * SECOND && is_waiting(simulation.network()) {
        now += SECOND / 20;
        simulation.run(now);
    }
    let network = simulation.network();
    let mut outcome = Outcome::of(network)?;
    let mut took = Completion::new();
    let mut took_all = Completion::new();
    let mut sent = PacketSums::default();
    let mut needed = PacketSums::default();
    let code = setup.code(site);
    for flow in network.flows().as_slice() {
        if part(flow.spec.tag) != 0 {
            continue;
        }
        let request = &due[flow.spec.tag as usize / 2];
        // An undelivered request has no response and is counted in its place.
        let is_request = flow.spec.tag % 2 == 0;
        if request.at < counted || (is_request && flow.delivered.is_some()) {
            continue;
        }
        let coding = code.map_or(0, |code| coding(code, request.response));
        let whole = flow.delivered.filter(|_| !is_request).map(|at| at + coding);
        took.record(request.response, whole.map(|at| at - flow.begun));
        took_all.record(request.response, whole.map(|at| at - request.at));
        if flow.acknowledged.is_some() && !is_request {
            sent.add(request.response, flow.sent.into());
            needed.add(request.response, flow.needed.into());
        }
    }
    took.put("", &mut outcome);
    took_all.put("call_", &mut outcome);
    for (bytes, packets) in &needed.0 {
        outcome.put(format!("sent/{bytes}"), sent.0[bytes] as f64 / *packets as f64);
    }
    let seconds = traffic.span as f64 / SECOND as f64;
    outcome.put("background_mbps", long as f64 * 8.0 / seconds / 1e6);
    let dropped: u64 = network.fabric().ports().iter().map(|port| port.stats().dropped).sum();
    outcome.put("dropped", dropped as f64);
    let fabric = network.fabric();
    let hosts = fabric.ports_of_hop(0).map(|port| fabric.ports()[port].stats().dropped);
    outcome.put("dropped_by_hosts", hosts.sum::<u64>() as f64);
    Ok(outcome)
}

/// The time of encoding and decoding a message, which is added to its completion time as in the paper (V-D).
fn coding(code: Code, bytes: u64) -> Time {
    codec_time(code, bytes.div_ceil(SYMBOL) as usize).unwrap_or(0)
}

fn background_bytes(network: &Network) -> u64 {
    let flows = network.flows().as_slice().iter();
    flows.filter(|flow| part(flow.spec.tag) == 1).map(|flow| flow.received).sum()
}

fn is_waiting(network: &Network) -> bool {
    let mut flows = network.flows().as_slice().iter();
    flows.any(|flow| part(flow.spec.tag) == 0 && flow.acknowledged.is_none())
}

/// Sums by message size.
#[derive(Default)]
struct PacketSums(std::collections::BTreeMap<u64, u64>);

impl PacketSums {
    fn add(&mut self, bytes: u64, packets: u64) {
        *self.0.entry(bytes).or_default() += packets;
    }
}

#[cfg(test)]
mod tests {
    use super::super::setup::SETUPS;
    use super::super::site::TESTBED;
    use super::*;
    use crate::engine::MS;

    #[test]
    fn every_scheme_delivers_everything_and_no_host_drops_its_own_packets() {
        for (name, _, setup) in SETUPS {
            let from = 100 * MS;
            let warm_up = 10 * MS;
            let span = 40 * MS;
            let traffic = Traffic { rate: 250.0, background: 0..4, from, warm_up, span };
            let outcome = run(&TESTBED, setup, &traffic, 1, |_| {}).unwrap();
            let value = |value: &str| outcome.values[value];
            // Ports drop credits by design, even those of hosts.
            if !matches!(setup, Setup::ExpressPass { .. }) {
                assert_eq!(value("dropped_by_hosts"), 0.0, "{name}");
            }
            // Bursts until STOP leave it less.
            let until_stop = matches!(setup, Setup::Cloudburst(setup) if setup.paper);
            let least = if until_stop { 80.0 } else { 100.0 };
            let background = value("background_mbps");
            assert!(background > least, "{name}: {background} Mb/s");
            let counts = outcome.values.iter().filter(|(name, _)| name.starts_with("undelivered"));
            assert_eq!(counts.map(|(_, &count)| count).sum::<f64>(), 0.0, "{name}");
        }
    }
}
