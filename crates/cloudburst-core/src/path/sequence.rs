//! Where the packets to one peer stand in their order.

use super::order::{Order, OrderError};
use crate::rng::SplitMix64;

/// The paths to one peer in the order in which packets take them, without end.
///
/// What a pair of hosts has for itself is one integer (section 4.2 of the DRB paper); the rest is
/// the same for all pairs.
#[derive(Clone, Debug)]
pub struct Sequence {
    order: Order,
    paths: u64,
    /// The next turn, below `paths`; for random and recycled orders, the state of the generator.
    state: u64,
}

impl Sequence {
    /// Numbers in `0..paths`, from the random place that `seed` stands for.
    ///
    /// Pairs must differ in `seed`: if all began at path 0, the first packets of all messages of
    /// a fabric would meet on one spine. The same seed gives the same sequence.
    ///
    /// # Errors
    ///
    /// [`OrderError`] if the order is for another number of paths, or if there are none.
    pub fn new(order: Order, paths: usize, seed: u64) -> Result<Self, OrderError> {
        order.check_paths(paths)?;
        let paths = paths as u64;
        let state = match order {
            Order::Random | Order::Recycled => seed,
            Order::RoundRobin | Order::DigitReversal(_) => seed % paths,
        };
        Ok(Self { order, paths, state })
    }

    /// The path of the next packet; in the recycled order, of the next train that explores.
    pub fn next_path(&mut self) -> usize {
        let turn = self.state;
        let path = match self.order {
            Order::Random | Order::Recycled => {
                let mut rng = SplitMix64::new(turn);
                let path = rng.below(self.paths);
                self.state = rng.state();
                return path as usize;
            }
            Order::RoundRobin => turn,
            Order::DigitReversal(shape) => shape.reverse(turn),
        };
        self.state = (turn + 1) % self.paths;
        path as usize
    }
}
