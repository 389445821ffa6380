//! Poisson flow arrivals with sizes from a distribution.

use super::List;
use crate::engine::{SECOND, Time};
use crate::fabric::Shape;
use crate::flow::NewFlow;
use cloudburst_workload::{Peers, Sizes, WorkloadError, draw};

/// The mean time between flows of a host at which they load its link of `rate` bits per second to the share `load`,
/// in packets of 1,500 bytes that carry 1,460.
///
/// # Errors
///
/// [`WorkloadError`]: a load that is not in (0, 1].
pub fn mean_between(load: f64, rate: u64, sizes: &Sizes) -> Result<Time, WorkloadError> {
    if !(load > 0.0 && load <= 1.0) {
        return Err(WorkloadError::new("load", load, "above 0 and at most 1"));
    }
    let bits = 8.0 * sizes.mean() * 1_500.0 / 1_460.0;
    Ok((SECOND as f64 * bits / (load * rate as f64)) as Time)
}

/// Poisson flow arrivals at all hosts.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    /// The distribution of flow sizes.
    pub sizes: Sizes,
    /// The destinations of flows.
    pub peers: Peers,
    /// The mean time between flows of a host: see [`mean_between`].
    pub mean: Time,
    /// The end of arrivals.
    pub until: Time,
    /// The number of the transport.
    pub transport: u8,
}

impl Arrivals {
    /// Draws all flows. Their tags are 0.
    ///
    /// # Errors
    ///
    /// [`WorkloadError`]: there are no destinations, or the mean time is 0.
    pub fn draw(&self, shape: &Shape, seed: u64) -> Result<List, WorkloadError> {
        let racks = shape.racks();
        self.peers.check(racks)?;
        if self.mean == 0 {
            return Err(WorkloadError::new("time between flows", 0.0, "1 ps or more"));
        }
        let mut flows = Vec::new();
        for source in 0..shape.hosts() as u16 {
            let mut times = draw::stream(seed, "arrival times", source.into());
            let mut rng = draw::stream(seed, "arrival peers and sizes", source.into());
            flows.extend(draw::poisson(&mut times, self.mean, self.until).map(|at| {
                let drawn = rng.below(self.peers.count(racks) as u64);
                let destination = self.peers.nth(racks, source, drawn);
                let bytes = self.sizes.draw(&mut rng);
                (at, NewFlow { source, destination, transport: self.transport, bytes, tag: 0 })
            }));
        }
        Ok(List::new(flows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn arrivals_load_links_to_the_configured_share() {
        let shape = Shape::leaf_spine(16, 9, 4);
        let load = 0.6;
        let rate = 10_000_000_000;
        let sizes = Sizes::WEB_SEARCH;
        let mean = mean_between(load, rate, &sizes).unwrap();
        let until = 2 * SECOND;
        let arrivals = Arrivals { sizes, peers: Peers::All, mean, until, transport: 0 };
        let mut list = arrivals.draw(&shape, 1).unwrap();
        let flows: Vec<_> = core::iter::from_fn(|| list.next()).collect();
        assert!(flows.is_sorted_by_key(|&(at, _)| at));
        let bytes: u64 = flows.iter().map(|(_, flow)| flow.bytes).sum();
        let found = bytes as f64 * 1_500.0 / 1_460.0 * 8.0 / (144.0 * 2.0 * rate as f64);
        assert!((found / load - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn loads_outside_0_to_1_are_refused() {
        for (load, line) in [
            (1.2, "workload: load: got 1.2, expected above 0 and at most 1"),
            (0.0, "workload: load: got 0, expected above 0 and at most 1"),
            (f64::NAN, "workload: load: got NaN, expected above 0 and at most 1"),
        ] {
            let error = mean_between(load, 1_000_000_000, &Sizes::WEB_SEARCH).unwrap_err();
            assert_eq!(error.to_string(), line);
        }
    }
}
