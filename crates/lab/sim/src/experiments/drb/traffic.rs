//! Permutation traffic, and its measurement in the steady state.

use super::fabric::Fabric;
use crate::engine::{MS, NS, SECOND, Time, US};
use crate::experiment::{Case, Outcome};
use crate::fabric::{Clos, PortStats};
use crate::transport::Transport;
use crate::workload::permutation;
use crate::{Network, Simulation};
use core::error::Error;
use hdrhistogram::Histogram;

/// Flows start at random within this time, so that hosts are not synchronised.
const SPREAD: Time = MS;
/// The size of a flow: more than it can send.
const ENDLESS: u64 = 1 << 40;
/// A time that no packet exceeds, in nanoseconds.
const LONGEST: u64 = 10_000_000_000;

/// The simulated time. Its first half is not measured.
fn duration(case: &Case<'_>) -> Time {
    case.scale.span(40 * MS, SECOND)
}

/// Runs permutation traffic, in which each server sends to one other, and measures the second half of the time.
///
/// | value | meaning |
/// |---|---|
/// | `throughput_mbps`, `throughput_p1_mbps` | message bytes that a server receives: mean and 1st percentile over servers |
/// | `hop1_us` to `hop5_us`, `queueing_us` | mean queueing delay of a packet at each switch, from the first leaf to the last; their sum |
/// | `resequencing_mean_us`, `_p99_us` | time for which packets are held until earlier ones arrive |
/// | `rtt_mean_us`, `rtt_p50_us`, `rtt_p99_us` | time from the sending of a packet to its ACK |
/// | `latency_mean_us`, `latency_p99_us` | time from the first switch to the last: queueing, transmissions and links |
/// | `dropped` | share of packets that are dropped by switches |
///
/// The series `rtt` and `resequencing` are the distributions of these times: microseconds and shares.
pub(super) fn measure(
    case: &Case<'_>,
    fabric: Fabric,
    clos: Clos,
    transport: impl Transport + 'static,
) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
    let hosts = clos.shape().hosts() as u16;
    let workload = permutation(hosts, ENDLESS, SPREAD, 0, case.seed)?;
    let mut simulation =
        Simulation::new(clos, vec![Box::new(transport)], Box::new(workload), case.seed);
    let until = duration(case);
    let from = duration(case) / 2;
    simulation.run(from);
    let histogram = || Histogram::new_with_max(LONGEST, 3).map(Some);
    let measures = &mut simulation.network_mut().measures;
    measures.round_trips = histogram()?;
    measures.resequencing = histogram()?;
    measures.queueing = histogram()?;
    let before = Snapshot::of(simulation.network());
    simulation.run(until);

    let network = simulation.network();
    let mut outcome = Outcome::of(network)?;
    before.put(network, until - from, &mut outcome);
    let measures = &network.measures;
    if let Some(times) = &measures.round_trips {
        put(&mut outcome, "rtt", times);
    }
    if let Some(times) = measures.resequencing.as_ref().filter(|times| !times.is_empty()) {
        put(&mut outcome, "resequencing", times);
    }
    if let Some(waited) = &measures.queueing {
        let unqueued = fabric.unqueued() as f64 / US as f64;
        outcome.put("latency_mean_us", unqueued + microseconds(waited.mean()));
        let p99 = waited.value_at_quantile(0.99) as f64;
        outcome.put("latency_p99_us", unqueued + microseconds(p99));
    }
    Ok(outcome)
}

/// The counters at the start of the measurement.
struct Snapshot {
    /// The received bytes of each flow.
    received: Vec<u64>,
    /// The counters of each hop.
    hops: Vec<PortStats>,
}

impl Snapshot {
    fn of(network: &Network) -> Self {
        let received = network.flows().as_slice().iter().map(|flow| flow.received);
        Self { received: received.collect(), hops: hops(network) }
    }

    /// Adds the measures of the `span` since then to `outcome`.
    fn put(&self, network: &Network, span: Time, outcome: &mut Outcome) {
        let flows = network.flows().as_slice().iter().zip(&self.received);
        let mut received: Vec<u64> = flows.map(|(flow, &before)| flow.received - before).collect();
        received.sort_unstable();
        let mbps = |bytes: f64| bytes * 8.0 / 1e6 / (span as f64 / SECOND as f64);
        let mean = received.iter().sum::<u64>() as f64 / received.len() as f64;
        outcome.put("throughput_mbps", mbps(mean));
        outcome.put("throughput_p1_mbps", mbps(received[received.len() / 100] as f64));

        let mut sum = 0.0;
        let mut sent = 0;
        let mut dropped = 0;
        for (hop, (now, before)) in hops(network).iter().zip(&self.hops).enumerate().skip(1) {
            let packets = now.packets - before.packets;
            let waited = (now.waited - before.waited) as f64 / packets.max(1) as f64 / US as f64;
            outcome.put(format!("hop{hop}_us"), waited);
            sum += waited;
            sent += packets;
            dropped += now.dropped - before.dropped;
        }
        outcome.put("queueing_us", sum);
        outcome.put("dropped", dropped as f64 / (sent + dropped).max(1) as f64);
    }
}

/// The sums of the counters of the ports of each hop.
fn hops(network: &Network) -> Vec<PortStats> {
    let clos = network.fabric();
    let of_hop = |hop| {
        let ports = &clos.ports()[clos.ports_of_hop(hop)];
        ports.iter().map(crate::fabric::Port::stats).fold(PortStats::default(), |sum, port| {
            PortStats {
                packets: sum.packets + port.packets,
                dropped: sum.dropped + port.dropped,
                waited: sum.waited + port.waited,
                ..sum
            }
        })
    };
    (0..6).map(of_hop).collect()
}

/// Adds the mean, the quantiles and the distribution of times to `outcome`.
fn put(outcome: &mut Outcome, name: &str, times: &Histogram<u64>) {
    let quantile = |q| microseconds(times.value_at_quantile(q) as f64);
    outcome.put(format!("{name}_mean_us"), microseconds(times.mean()));
    outcome.put(format!("{name}_p50_us"), quantile(0.5));
    outcome.put(format!("{name}_p99_us"), quantile(0.99));
    let shares = (0..100).map(|k| f64::from(k) / 100.0).chain([0.995, 0.999, 1.0]);
    let curve = shares.map(|share| (quantile(share), share)).collect();
    outcome.put_series(name, curve);
}

fn microseconds(nanoseconds: f64) -> f64 {
    nanoseconds * NS as f64 / US as f64
}
