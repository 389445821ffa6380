//! Weighted round robin between classes.

use super::{Classes, Next, Queue};
use crate::engine::{Handle, Packets, Time};

/// Weighted round robin in packets: each class in turn sends at most its weight.
#[derive(Debug)]
pub struct Weighted {
    classes: Classes,
    weights: Vec<u32>,
    /// The class whose turn it is.
    turn: usize,
    /// Packets that it may still send in this turn.
    left: u32,
}

impl Weighted {
    /// Weighted round robin between `classes`. A weight that is 0 or missing counts as 1.
    pub fn new(classes: Classes, weights: &[u32]) -> Self {
        let weight = |class| weights.get(class).copied().unwrap_or(1).max(1);
        let weights: Vec<u32> = (0..classes.len()).map(weight).collect();
        let left = weights[0];
        Self { classes, weights, turn: 0, left }
    }
}

impl Queue for Weighted {
    fn enqueue(&mut self, now: Time, packet: Handle, packets: &mut Packets) -> Option<Handle> {
        self.classes.push(now, packet, packets)
    }

    fn dequeue(&mut self, now: Time, packets: &mut Packets) -> Next {
        self.classes.settle(now);
        // Once around, and back to a class whose turn was over.
        for _ in 0..=self.classes.len() {
            if self.left > 0
                && let Some(packet) = self.classes.pop(now, self.turn, packets)
            {
                self.left -= 1;
                return Next::Send(packet);
            }
            self.turn = (self.turn + 1) % self.classes.len();
            self.left = self.weights[self.turn];
        }
        Next::Idle
    }

    fn set_rate(&mut self, rate: u64) {
        self.classes.set_rate(rate);
    }
}
