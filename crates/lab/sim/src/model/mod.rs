//! Models of queues in slotted time, which validate the simulator and the papers' figures.
//!
//! | file | model | source |
//! |---|---|---|
//! | [`bouncing`] | the queues of RB, RRB and DRB at the first three hops, simulated slot by slot | DRB paper, Appendix B |
//! | [`closed`] | closed forms of some of these, and M/D/1 | queueing theory |
//! | [`fabric`] | the same traffic packet by packet, in the simulator | |
//!
//! # The queue
//!
//! All queues follow q(t+1) = (q(t) - 1)+ + arrivals(t+1). The length q of a slot counts the packets after those of the
//! slot have arrived and before one is sent, including the packet in service. (q - 1)+ packets wait behind it; the mean
//! of (q - 1)+ is that of q minus the load. The DRB paper's mean of 2.5 at load 1 is that of q, and its maximum of
//! n/2 (n/2 - 1) for RRB is that of q - 1.

pub mod bouncing;
pub mod closed;
pub mod fabric;

/// Mean and variance of the length of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The mean, in packets.
    pub mean: f64,
    /// The variance.
    pub variance: f64,
}

impl Moments {
    /// The moments of a distribution: `weights` of the lengths 0, 1, 2 and so on, in any unit.
    pub fn of(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let mut first = 0.0;
        let mut second = 0.0;
        for (length, weight) in weights.into_iter().enumerate() {
            let length = length as f64;
            sum += weight;
            first += weight * length;
            second += weight * length * length;
        }
        let mean = first / sum;
        Self { mean, variance: second / sum - mean * mean }
    }
}

/// A histogram of the lengths of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lengths(Vec<u64>);

impl Lengths {
    #[inline]
    fn record(&mut self, length: u32) {
        let length = length as usize;
        if length >= self.0.len() {
            self.0.resize(length + 1, 0);
        }
        self.0[length] += 1;
    }

    /// Mean and variance.
    pub fn moments(&self) -> Moments {
        Moments::of(self.0.iter().map(|&count| count as f64))
    }

    /// The maximum.
    pub fn max(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}
