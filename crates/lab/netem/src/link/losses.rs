//! The choice of lost packets.

use super::Loss;

/// The losses of one link, packet by packet.
#[derive(Clone, Debug)]
pub struct Losses {
    loss: Loss,
    /// The state of [`Loss::Bursty`].
    in_burst: bool,
}

impl Losses {
    /// Creates the losses of a new link. [`Loss::Bursty`] starts in its good state.
    pub const fn new(loss: Loss) -> Self {
        Self { loss, in_burst: false }
    }

    /// Returns whether the next packet is lost. `chance` returns true with the given probability.
    pub fn draw(&mut self, mut chance: impl FnMut(f64) -> bool) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Independent(p) => chance(p),
            Loss::Bursty { to_bad, to_good, loss_good, loss_bad } => {
                let (loss, change) =
                    if self.in_burst { (loss_bad, to_good) } else { (loss_good, to_bad) };
                let lost = chance(loss);
                self.in_burst ^= chance(change);
                lost
            }
        }
    }
}
