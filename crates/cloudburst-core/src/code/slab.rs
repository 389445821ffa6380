//! The n symbols of a block in contiguous memory.

use super::block::BlockShape;

/// Memory for n symbols, allocated when the first one is stored and kept by resets.
#[derive(Debug, Default)]
pub(super) struct Slab {
    /// The slots up to the last one stored. Symbols mostly arrive in order, and appended bytes need
    /// not be cleared first.
    pub(super) bytes: Vec<u8>,
    pub(super) symbol_size: usize,
}

impl Slab {
    /// Makes room for a block.
    pub(super) fn prepare(&mut self, shape: BlockShape) {
        self.symbol_size = shape.symbol_size();
        self.bytes.clear();
        self.bytes.reserve_exact(shape.len());
    }

    /// Returns the symbols by slot, up to the last one stored.
    pub(super) fn symbols_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bytes.chunks_exact_mut(self.symbol_size)
    }

    /// Stores a symbol of the right size.
    pub(super) fn store(&mut self, slot: usize, symbol: &[u8]) {
        let start = slot * self.symbol_size;
        match self.bytes.get_mut(start..start + symbol.len()) {
            Some(place) => place.copy_from_slice(symbol),
            None => {
                self.bytes.resize(start, 0);
                self.bytes.extend_from_slice(symbol);
            }
        }
    }

    /// Copies the symbol of one slot to another.
    pub(super) fn copy(&mut self, from: usize, to: usize) {
        let size = self.symbol_size;
        self.bytes.resize(self.bytes.len().max((to + 1) * size), 0);
        self.bytes.copy_within(from * size..(from + 1) * size, to * size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_stored_in_any_order_and_copied() {
        let mut slab = Slab::default();
        for _ in 0..2 {
            slab.prepare(BlockShape::new(4, 2).unwrap());
            slab.store(1, &[4, 8]);
            assert_eq!(slab.bytes, [0, 0, 4, 8], "what is not there yet is zero");
            slab.store(0, &[1, 2]);
            slab.copy(1, 3);
            slab.store(1, &[5, 6]);
            assert_eq!(slab.bytes, [1, 2, 5, 6, 0, 0, 4, 8]);
        }
        assert_eq!(slab.symbols_mut().count(), 4);
    }
}
