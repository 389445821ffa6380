//! Models of queues in slotted time, which validate the simulator and the papers' figures.
//!
//! | file | what | source |
//! |---|---|---|
//! | [`bouncing`] | the queues of RB, RRB and DRB at the first three hops, by simulation of slots | DRB paper, Appendix B |
//! | [`closed`] | closed forms of some of these, and M/D/1 | queueing theory |
//! | [`fabric`] | the same traffic packet by packet, in the simulator | |
//!
//! # The queue
//!
//! All follow q(t+1) = (q(t) - 1)+ + arrivals(t+1): a length counts the packets of its slot after they have
//! arrived and before one of them is sent, the packet in service included. Those that wait behind it are
//! (q - 1)+, whose mean is smaller by the load. The DRB paper's mean of 2.5 at load 1 is of q; its maximum of
//! n/2 (n/2 - 1) for RRB is of q - 1.

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
    /// Those of a distribution: `weights` of the lengths 0, 1, 2 and so on, in any unit.
    pub fn of(weights: impl IntoIterator<Item = f64>) -> Self {
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
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

/// How often a queue had each length.
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

    /// The longest.
    pub fn max(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}
