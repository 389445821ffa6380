//! The n symbols of a block in one piece of memory.

use super::block::BlockShape;
use super::kernel;

/// One XOR of a payload into another, by their slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Addition {
    pub(super) from: u8,
    pub(super) to: u8,
}

/// Room for n symbols. It is allocated when the first symbol is stored, and kept by resets.
#[derive(Debug, Default)]
pub(super) struct Slab {
    bytes: Vec<u8>,
    symbol_size: usize,
}

impl Slab {
    /// Makes room for a block. What an earlier block left behind stays until it is overwritten.
    pub(super) fn prepare(&mut self, shape: BlockShape) {
        self.symbol_size = shape.symbol_size();
        self.bytes.resize(shape.len(), 0);
    }

    pub(super) fn symbol_size(&self) -> usize {
        self.symbol_size
    }

    /// The symbols, one after the other.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Stores a symbol of the right size.
    pub(super) fn store(&mut self, slot: usize, symbol: &[u8]) {
        let start = slot * self.symbol_size;
        self.bytes[start..start + self.symbol_size].copy_from_slice(symbol);
    }

    /// Copies the symbol of one slot to another.
    pub(super) fn copy(&mut self, from: usize, to: usize) {
        let size = self.symbol_size;
        self.bytes.copy_within(from * size..(from + 1) * size, to * size);
    }

    /// Adds symbols to each other in the order given: the one in slot `from` to that in slot `to`.
    pub(super) fn run(&mut self, additions: &[Addition]) {
        for &Addition { from, to } in additions {
            let (from, to) = self.pair(from.into(), to.into());
            kernel::xor_into(to, from);
        }
    }

    /// Exchanges two symbols.
    pub(super) fn swap(&mut self, a: usize, b: usize) {
        let (a, b) = self.pair(a, b);
        a.swap_with_slice(b);
    }

    /// Moves the symbol of every slot to the slot that `owner` names; each is named once.
    pub(super) fn put_in_order(&mut self, mut owner: Vec<u8>) {
        for slot in 0..owner.len() {
            while usize::from(owner[slot]) != slot {
                let home = owner[slot].into();
                self.swap(slot, home);
                owner.swap(slot, home);
            }
        }
    }

    /// Two different slots at once, in the order asked for.
    fn pair(&mut self, a: usize, b: usize) -> (&mut [u8], &mut [u8]) {
        let size = self.symbol_size;
        let (low, high) = self.bytes.split_at_mut(a.max(b) * size);
        let low = &mut low[a.min(b) * size..][..size];
        let high = &mut high[..size];
        if a < b { (low, high) } else { (high, low) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_added_copied_and_exchanged() {
        let mut slab = Slab::default();
        slab.prepare(BlockShape::new(3, 2).unwrap());
        slab.store(0, &[1, 2]);
        slab.store(1, &[4, 8]);
        slab.run(&[Addition { from: 0, to: 1 }]);
        slab.copy(1, 2);
        slab.swap(2, 0);
        assert_eq!(slab.bytes(), [5, 10, 5, 10, 1, 2]);
        slab.put_in_order(vec![1, 2, 0]);
        assert_eq!(slab.bytes(), [1, 2, 5, 10, 5, 10]);
    }
}
