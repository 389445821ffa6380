//! Distributions of flow sizes.

use crate::draw;
use cloudburst_core::rng::SplitMix64;

/// The unit of the published distributions: a packet, in bytes.
const PACKET: f64 = 1_460.0;

/// A distribution of flow sizes as a piecewise linear CDF. A point is a size and the share of flows that are not
/// larger; the flows of the first point have exactly its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The unit of sizes, in bytes.
    unit: f64,
    points: &'static [(f64, f64)],
}

impl Sizes {
    /// Web search (DCTCP, SIGCOMM 2010), as in pFabric's simulations: a mean of 1,141 packets.
    pub const WEB_SEARCH: Self = Self {
        unit: PACKET,
        points: &[
            (6.0, 0.15),
            (13.0, 0.2),
            (19.0, 0.3),
            (33.0, 0.4),
            (53.0, 0.53),
            (133.0, 0.6),
            (667.0, 0.7),
            (1_333.0, 0.8),
            (3_333.0, 0.9),
            (6_667.0, 0.97),
            (20_000.0, 1.0),
        ],
    };

    /// Data mining (VL2, SIGCOMM 2009), as in pFabric's simulations: a mean of 5,117 packets.
    pub const DATA_MINING: Self = Self {
        unit: PACKET,
        points: &[
            (1.0, 0.5),
            (2.0, 0.6),
            (3.0, 0.7),
            (7.0, 0.8),
            (267.0, 0.9),
            (2_107.0, 0.95),
            (66_667.0, 0.99),
            (666_667.0, 1.0),
        ],
    };

    /// The trace of CoNEXT 2013, 5.2, as far as it is published: 80 % of flows are below 4 KB, 1 % above 50 MB. The
    /// points between are our choice, about evenly spaced on a logarithmic scale. The mean is 2.24 MB.
    pub const TRACE_LIKE: Self = Self {
        unit: 1.0,
        points: &[
            (100.0, 0.02),
            (400.0, 0.35),
            (4_000.0, 0.8),
            (40_000.0, 0.846),
            (400_000.0, 0.893),
            (4_000_000.0, 0.939),
            (50_000_000.0, 0.99),
            (100_000_000.0, 1.0),
        ],
    };

    /// The mean in bytes.
    pub fn mean(&self) -> f64 {
        let first = self.points[0].0 * self.points[0].1;
        let between = self.points.windows(2).map(|pair| {
            let [(low, before), (high, until)] = [pair[0], pair[1]];
            f64::midpoint(low, high) * (until - before)
        });
        self.unit * (first + between.sum::<f64>())
    }

    /// Draws a size.
    pub fn draw(&self, rng: &mut SplitMix64) -> u64 {
        let share = draw::uniform(rng);
        let above = self.points.iter().position(|point| share <= point.1);
        let size = match above.unwrap_or(self.points.len() - 1) {
            0 => self.points[0].0,
            k => {
                let (low, before) = self.points[k - 1];
                let (high, until) = self.points[k];
                low + (high - low) * (share - before) / (until - before)
            }
        };
        (self.unit * size) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_of_the_distributions() {
        let packets = |sizes: Sizes| (sizes.mean() / PACKET).round();
        assert_eq!(packets(Sizes::WEB_SEARCH), 1_141.0);
        assert_eq!(packets(Sizes::DATA_MINING), 5_117.0);
        assert_eq!((Sizes::TRACE_LIKE.mean() / 1e4).round(), 224.0);
    }

    #[test]
    fn draws_have_the_shares_and_the_mean() {
        for sizes in [Sizes::WEB_SEARCH, Sizes::DATA_MINING, Sizes::TRACE_LIKE] {
            let mut rng = draw::stream(1, "sizes", 0);
            let drawn: Vec<u64> = (0..200_000).map(|_| sizes.draw(&mut rng)).collect();
            for &(size, share) in sizes.points {
                let size = (size * sizes.unit) as u64;
                let found = drawn.iter().filter(|&&drawn| drawn <= size).count() as f64 / 2e5;
                assert!((found - share).abs() < 0.004, "{size}: {found}, not {share}");
            }
            let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
            assert!((mean / sizes.mean() - 1.0).abs() < 0.04, "{mean}");
        }
    }
}
