//! A set of source symbols, and its bytes on the wire (the list of indices in Figure 4).

use std::ops::{BitAnd, BitXor, BitXorAssign};

/// A set of indices below 128. Index i is bit 127 - i, so that the big-endian bytes of the number
/// are the bytes on the wire: index i is in byte i / 8, most significant bit first.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct IndexSet(u128);

impl IndexSet {
    pub(super) const EMPTY: Self = Self(0);

    const TOP: u128 = 1 << 127;

    /// The set of one index.
    pub(super) const fn single(index: usize) -> Self {
        Self(Self::TOP >> index)
    }

    /// All of `0..n`, for n from 1 to 128.
    pub(super) const fn all(n: usize) -> Self {
        Self(u128::MAX << (128 - n))
    }

    /// Returns the set whose wire bytes, most significant bit first, are `high` followed by `low`.
    pub(super) const fn from_words(high: u64, low: u64) -> Self {
        Self((high as u128) << 64 | low as u128)
    }

    /// Reads up to 16 bytes in wire format.
    pub(super) fn from_wire(bytes: &[u8]) -> Self {
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(bytes);
        Self(u128::from_be_bytes(all))
    }

    /// Fills `out` (at most 16 bytes) with the first bytes of the set.
    pub(super) fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.to_be_bytes()[..out.len()]);
    }

    pub(super) const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn contains(self, index: usize) -> bool {
        self.0 & Self::TOP >> index != 0
    }

    pub(super) const fn insert(&mut self, index: usize) {
        self.0 |= Self::TOP >> index;
    }

    pub(super) const fn remove(&mut self, index: usize) {
        self.0 &= !(Self::TOP >> index);
    }

    /// Returns the lowest index.
    pub(super) const fn first(self) -> Option<usize> {
        if self.0 == 0 { None } else { Some(self.0.leading_zeros() as usize) }
    }

    /// Returns the index of a set that has exactly one.
    pub(super) const fn only(self) -> Option<usize> {
        if self.0.is_power_of_two() { self.first() } else { None }
    }

    /// Returns which of the four indices from 4 i are in the set, the lowest as the highest bit.
    pub(super) const fn nibble(self, i: usize) -> usize {
        (self.0 >> (124 - 4 * i)) as usize & 15
    }

    /// Returns the indices, lowest first.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self;
        std::iter::from_fn(move || {
            let index = left.first()?;
            left.remove(index);
            Some(index)
        })
    }
}

impl FromIterator<usize> for IndexSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut set = Self::EMPTY;
        indices.into_iter().for_each(|index| set.insert(index));
        set
    }
}

impl BitAnd for IndexSet {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitXor for IndexSet {
    type Output = Self;

    fn bitxor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
}

impl BitXorAssign for IndexSet {
    fn bitxor_assign(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

impl std::fmt::Debug for IndexSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_0_is_the_most_significant_bit_of_the_first_byte() {
        let mut set = IndexSet::single(0);
        set.insert(9);
        set.insert(127);
        let mut wire = [0; 16];
        set.write(&mut wire);
        assert_eq!((wire[0], wire[1], wire[15]), (0x80, 0x40, 0x01));
        assert_eq!(IndexSet::from_wire(&wire), set);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 9, 127]);
    }

    #[test]
    fn all_holds_every_index_below_n_and_none_above() {
        for n in 1..=128 {
            let all = IndexSet::all(n);
            assert_eq!(all.len(), n);
            assert_eq!(all.iter().collect::<Vec<_>>(), (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nibbles_are_four_indices_each() {
        let set: IndexSet = [0, 5, 6, 127].into_iter().collect();
        assert_eq!([0, 1, 2, 31].map(|i| set.nibble(i)), [0b1000, 0b0110, 0, 1]);
    }

    #[test]
    fn only_names_the_index_of_a_single_set_alone() {
        assert_eq!(IndexSet::EMPTY.only(), None);
        assert_eq!(IndexSet::single(77).only(), Some(77));
        assert_eq!(IndexSet::all(2).only(), None);
    }
}
