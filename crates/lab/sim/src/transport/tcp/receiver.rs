//! The receiver of one sequence of packets.

use super::wire::BLOCK;
use std::collections::VecDeque;

/// The packets that have arrived.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// The first packet that has not arrived.
    next: u32,
    /// Whether `next` and the packets after it have arrived. Empty unless some have.
    ahead: VecDeque<bool>,
}

impl Receiver {
    /// The first packet that has not arrived.
    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// Takes a packet. Returns whether it is new.
    pub(super) fn take(&mut self, packet: u32) -> bool {
        if packet < self.next {
            return false;
        }
        if packet == self.next {
            self.next += 1;
            // Remove the packet's own place, and the packets that are now in sequence.
            self.ahead.pop_front();
            while self.ahead.front() == Some(&true) {
                self.ahead.pop_front();
                self.next += 1;
            }
            return true;
        }
        let place = (packet - self.next) as usize;
        if place >= self.ahead.len() {
            self.ahead.resize(place + 1, false);
        }
        !core::mem::replace(&mut self.ahead[place], true)
    }

    /// The length of the SACK block that ends with `packet`: the consecutive packets beyond the first gap that have
    /// arrived, at most [`BLOCK`].
    pub(super) fn block(&self, packet: u32) -> u32 {
        if packet < self.next {
            return 0;
        }
        let place = (packet - self.next) as usize;
        let arrived = |count: &u32| {
            let place = place.checked_sub(*count as usize);
            place.is_some_and(|place| self.ahead[place])
        };
        (0..BLOCK).take_while(arrived).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_in_any_order_and_duplicates_are_known() {
        let mut receiver = Receiver::default();
        let arrivals = [(0, true, 1), (2, true, 1), (4, true, 1), (2, false, 1), (1, true, 3)];
        for (packet, is_new, next) in arrivals {
            assert_eq!(receiver.take(packet), is_new);
            assert_eq!(receiver.next(), next);
        }
        assert_eq!((receiver.take(5), receiver.block(5), receiver.block(2)), (true, 2, 0));
        assert_eq!((receiver.take(3), receiver.next()), (true, 6));
        assert_eq!((receiver.take(6), receiver.next()), (true, 7));
    }
}
