//! Strict priority between classes: the lowest-numbered class with packets is served.

use super::{Classes, Next, Queue};
use crate::engine::{Handle, Packets, Time};

/// Strict priority. ECN thresholds may be per class or per port; PIAS marks per port (NSDI 2015, section 4.3).
#[derive(Debug)]
pub struct Strict(Classes);

impl Strict {
    /// Strict priority between `classes`.
    pub const fn new(classes: Classes) -> Self {
        Self(classes)
    }
}

impl Queue for Strict {
    fn enqueue(&mut self, now: Time, packet: Handle, packets: &mut Packets) -> Option<Handle> {
        self.0.push(now, packet, packets)
    }

    fn dequeue(&mut self, now: Time, packets: &mut Packets) -> Next {
        self.0.settle(now);
        let class = (0..self.0.len()).find(|&class| self.0.waits(class));
        class.and_then(|class| self.0.pop(now, class, packets)).map_or(Next::Idle, Next::Send)
    }

    fn set_rate(&mut self, rate: u64) {
        self.0.set_rate(rate);
    }
}
