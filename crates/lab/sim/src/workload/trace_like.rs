//! Flows like those of the production trace of CoNEXT 2013, 5.2, which is not public.
//!
//! The paper says: 80 % of flows are below 4 KB and 1 % above 50 MB; servers are sorted by the traffic they send, so
//! that the first two racks are the busiest, at loads of 92 and 90 %; some servers send nothing; and one server in
//! each of the first two racks has no flows other than probe flows from one to the other. The rest is our choice: the
//! sizes between ([`Sizes::TRACE_LIKE`]), decreasing loads of racks, and uniform destinations.

use super::{List, mean_between};
use crate::engine::Time;
use crate::fabric::Shape;
use crate::flow::NewFlow;
use cloudburst_workload::{Peers, Sizes, WorkloadError, draw};

/// Flows of busy and idle racks, and probe flows.
#[derive(Clone, Debug)]
pub struct TraceLike {
    /// The load of the hosts of each rack, excluding the two hosts of the probe flows. Racks without an entry are
    /// idle.
    pub loads: Vec<f64>,
    /// The rate of a host's link, in bits per second.
    pub rate: u64,
    /// Bytes of a probe flow.
    pub probe: u64,
    /// The mean time between probe flows.
    pub between_probes: Time,
    /// The end of arrivals.
    pub until: Time,
    /// The number of the transport.
    pub transport: u8,
}

impl TraceLike {
    /// The tag of probe flows; that of others is 0.
    pub const PROBE: u32 = 1;

    /// Loads for `racks` racks: 0.92, 0.9, then linearly decreasing; the last tenth is idle.
    pub fn skewed(racks: usize) -> Vec<f64> {
        let talking = racks - racks / 10;
        let load = |rack: usize| match rack {
            0 => 0.92,
            1 => 0.9,
            _ => 0.9 * (talking - rack) as f64 / talking as f64,
        };
        (0..talking).map(load).collect()
    }

    /// The source and destination of probe flows: the first host of each of the first two racks.
    pub const fn probed(shape: &Shape) -> [u16; 2] {
        [0, shape.hosts_per_leaf]
    }

    /// Draws all flows.
    ///
    /// # Errors
    ///
    /// [`WorkloadError`]: a load that is not in (0, 1], or fewer than two racks of two hosts.
    pub fn draw(&self, shape: &Shape, seed: u64) -> Result<List, WorkloadError> {
        let racks = shape.racks();
        if shape.leaves() < 2 {
            return Err(WorkloadError::new("leaves", shape.leaves() as f64, "2 or more"));
        }
        if racks.rack < 2 {
            return Err(WorkloadError::new("hosts per leaf", racks.rack.into(), "2 or more"));
        }
        if self.between_probes == 0 {
            return Err(WorkloadError::new("time between probes", 0.0, "1 ps or more"));
        }
        let probed = Self::probed(shape);
        let mut flows = Vec::new();
        for source in (0..racks.hosts).filter(|host| !probed.contains(host)) {
            let number = usize::from(source / racks.rack);
            let Some(&load) = self.loads.get(number) else { continue };
            let mean = mean_between(load, self.rate, &Sizes::TRACE_LIKE)?;
            let mut times = draw::stream(seed, "trace times", source.into());
            let mut rng = draw::stream(seed, "trace peers and sizes", source.into());
            flows.extend(draw::poisson(&mut times, mean, self.until).map(|at| {
                let destination = loop {
                    let drawn = rng.below(Peers::OtherRacks.count(racks) as u64);
                    let host = Peers::OtherRacks.nth(racks, source, drawn);
                    if !probed.contains(&host) {
                        break host;
                    }
                };
                let bytes = Sizes::TRACE_LIKE.draw(&mut rng);
                (at, NewFlow { source, destination, transport: self.transport, bytes, tag: 0 })
            }));
        }
        let [source, destination] = probed;
        let mut times = draw::stream(seed, "probe times", 0);
        flows.extend(draw::poisson(&mut times, self.between_probes, self.until).map(|at| {
            let transport = self.transport;
            let bytes = self.probe;
            (at, NewFlow { source, destination, transport, bytes, tag: Self::PROBE })
        }));
        Ok(List::new(flows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{MS, SECOND};
    use crate::workload::Workload;

    #[test]
    fn the_first_racks_are_the_busiest_and_only_probes_go_between_the_probed() {
        let shape = Shape::fat_tree(8, 1);
        let loads = TraceLike::skewed(shape.leaves());
        assert_eq!((loads.len(), &loads[..2]), (29, &[0.92, 0.9][..]));
        let until = 100 * SECOND;
        let rate = 1_000_000_000;
        let trace =
            TraceLike { loads, rate, probe: 4_000, between_probes: 10 * MS, until, transport: 0 };
        let mut list = trace.draw(&shape, 5).unwrap();
        let flows: Vec<_> = core::iter::from_fn(|| list.next()).map(|(_, flow)| flow).collect();
        let (probes, others): (Vec<NewFlow>, Vec<NewFlow>) =
            flows.into_iter().partition(|flow| flow.tag == TraceLike::PROBE);
        assert!((9_700..10_300).contains(&probes.len()), "{}", probes.len());
        assert!(probes.iter().all(|probe| (probe.source, probe.destination) == (0, 4)));
        assert!(others.iter().all(|flow| ![flow.source, flow.destination].contains(&0)));
        assert!(others.iter().all(|flow| ![flow.source, flow.destination].contains(&4)));
        assert!(others.iter().all(|flow| flow.source / 4 != flow.destination / 4));
        let share = |least: u64, most: u64| {
            let count = others.iter().filter(|flow| (least..most).contains(&flow.bytes)).count();
            count as f64 / others.len() as f64
        };
        assert!((share(0, 4_001) - 0.8).abs() < 0.01);
        assert!((share(50_000_000, u64::MAX) - 0.01).abs() < 0.001);
        let sent = |rack: u16| -> u64 {
            others.iter().filter(|flow| flow.source / 4 == rack).map(|flow| flow.bytes).sum()
        };
        let load = |rack| sent(rack) as f64 * 8.0 * 1_500.0 / 1_460.0 / (3.0 * 100.0 * rate as f64);
        assert!((load(0) - 0.92).abs() < 0.1, "{}", load(0));
        assert_eq!((29..32).map(sent).sum::<u64>(), 0);
    }

    #[test]
    fn a_load_above_one_is_refused() {
        let trace = TraceLike {
            loads: vec![1.5],
            rate: 1_000_000_000,
            probe: 4_000,
            between_probes: MS,
            until: SECOND,
            transport: 0,
        };
        let error = trace.draw(&Shape::fat_tree(4, 1), 1).unwrap_err().to_string();
        assert_eq!(error, "workload: load: got 1.5, expected above 0 and at most 1");
    }
}
