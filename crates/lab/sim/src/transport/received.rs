//! A set of packet numbers: those that have arrived, or have been acknowledged.

/// A set of the numbers of a flow's packets.
#[derive(Debug)]
pub(crate) struct Received {
    bits: Vec<u64>,
    packets: u32,
    /// The first number that is not in the set.
    first_missing: u32,
}

impl Received {
    /// The empty set, of numbers below `packets`.
    pub(crate) fn empty(packets: u32) -> Self {
        Self { bits: vec![0; packets.div_ceil(64) as usize], packets, first_missing: 0 }
    }

    /// Inserts a number. Returns `false` if it was present or is out of range.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        if number >= self.packets || self.contains(number) {
            return false;
        }
        self.bits[number as usize / 64] |= 1 << (number % 64);
        if number == self.first_missing {
            self.first_missing = self.missing_from(number + 1);
        }
        true
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.bits[number as usize / 64] >> (number % 64) & 1 != 0
    }

    /// The first missing number: the cumulative acknowledgement.
    pub(crate) const fn first_missing(&self) -> u32 {
        self.first_missing
    }

    /// The first missing number from `from` on; the number of packets if there is none.
    pub(crate) fn missing_from(&self, from: u32) -> u32 {
        let mut number = from;
        while number < self.packets {
            let missing = !self.bits[number as usize / 64] >> (number % 64);
            if missing != 0 {
                return (number + missing.trailing_zeros()).min(self.packets);
            }
            number = (number / 64 + 1) * 64;
        }
        self.packets
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.first_missing == self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_found_whatever_the_order_of_arrival() {
        let mut received = Received::empty(130);
        for number in (0..130).rev().filter(|number| number % 64 != 1) {
            assert!(received.insert(number));
            assert!(!received.insert(number));
        }
        assert!(!received.insert(130));
        assert_eq!(received.first_missing(), 1);
        assert_eq!([0, 1, 2, 65, 66].map(|from| received.missing_from(from)), [1, 1, 65, 65, 129]);
        for (number, next) in [(65, 1), (1, 129), (129, 130)] {
            assert!(received.insert(number));
            assert_eq!(received.first_missing(), next);
        }
        assert!(received.is_complete());
    }
}
