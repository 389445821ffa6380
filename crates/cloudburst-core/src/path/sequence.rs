//! The position of the packets to one peer in their order.

use super::order::{Order, OrderError};
use crate::rng::SplitMix64;

/// The endless sequence of paths that the packets to one peer take.
///
/// The state of a pair of hosts is one integer (section 4.2 of the DRB paper); the rest is the same
/// for all pairs.
#[derive(Clone, Debug)]
pub struct Sequence {
    order: Order,
    paths: u64,
    /// The next number, below `paths`; for random and recycled orders, the state of the generator.
    state: u64,
}

impl Sequence {
    /// Creates a sequence of numbers in `0..paths` that starts at the random place given by `seed`.
    ///
    /// Pairs must differ in `seed`: if all started at path 0, the first packets of all messages in
    /// a fabric would meet on one spine. The same seed gives the same sequence.
    ///
    /// # Errors
    ///
    /// [`OrderError`] if the order needs another number of paths, or if there are none.
    pub fn new(order: Order, paths: usize, seed: u64) -> Result<Self, OrderError> {
        order.check_paths(paths)?;
        let paths = paths as u64;
        let state = match order {
            Order::Random | Order::Recycled => seed,
            // The random start matters as much as the order: from one start, digit reversal spares
            // the TORs, and the next hop queues all the same.
            Order::RoundRobin | Order::DigitReversal(_) => seed % paths,
        };
        Ok(Self { order, paths, state })
    }

    /// Returns the path of the next packet; in the recycled order, of the next train that explores.
    pub fn next_path(&mut self) -> usize {
        let number = self.state;
        let path = match self.order {
            Order::Random | Order::Recycled => {
                let mut rng = SplitMix64::new(number);
                let path = rng.below(self.paths);
                self.state = rng.state();
                return path as usize;
            }
            Order::RoundRobin => number,
            Order::DigitReversal(shape) => shape.reverse(number),
        };
        self.state = (number + 1) % self.paths;
        path as usize
    }
}
