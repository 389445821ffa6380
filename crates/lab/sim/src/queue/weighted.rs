//! Weighted round robin between classes. The first few classes may share a weight, with strict priority among
//! themselves.

use super::{Classes, Next, Queue};
use crate::engine::{Handle, Packets, Time};

/// Weighted round robin in packets: in turn, each class sends at most as many packets as its weight.
#[derive(Debug)]
pub struct Weighted {
    classes: Classes,
    /// The first `strict` classes share the first weight: the lowest-numbered of them with packets is
    /// served.
    strict: usize,
    weights: Vec<u32>,
    /// The group of classes being served: 0 for those with strict priority, then one for each other class.
    group: usize,
    /// Packets that its classes may still send before the next weight is served.
    left: u32,
}

impl Weighted {
    /// Weighted round robin between `classes`. A weight that is 0 or missing counts as 1.
    pub fn new(classes: Classes, weights: &[u32]) -> Self {
        Self::with_strict(classes, 1, weights)
    }

    /// As [`new`](Self::new), but the first `strict` classes, at least 1, share the first weight, and
    /// have strict priority among themselves.
    pub fn with_strict(classes: Classes, strict: usize, weights: &[u32]) -> Self {
        let weight = |group| weights.get(group).copied().unwrap_or(1).max(1);
        let strict = strict.clamp(1, classes.len());
        let weights: Vec<u32> = (0..=classes.len() - strict).map(weight).collect();
        let left = weights[0];
        Self { classes, strict, weights, group: 0, left }
    }

    /// The class to serve now.
    fn class(&self) -> usize {
        match self.group {
            0 => (0..self.strict).find(|&class| self.classes.waits(class)).unwrap_or(0),
            group => self.strict + group - 1,
        }
    }
}

impl Queue for Weighted {
    fn enqueue(&mut self, now: Time, packet: Handle, packets: &mut Packets) -> Option<Handle> {
        self.classes.push(now, packet, packets)
    }

    fn dequeue(&mut self, now: Time, packets: &mut Packets) -> Next {
        self.classes.settle(now);
        // Once around, and back to a class that had used up its weight.
        for _ in 0..=self.weights.len() {
            if self.left > 0
                && let Some(packet) = self.classes.pop(now, self.class(), packets)
            {
                self.left -= 1;
                return Next::Send(packet);
            }
            self.group = (self.group + 1) % self.weights.len();
            self.left = self.weights[self.group];
        }
        Next::Idle
    }

    fn set_rate(&mut self, rate: u64) {
        self.classes.set_rate(rate);
    }
}
