//! How a message is cut into blocks, and blocks into symbols (section III-A; RFC 6330, 4.4.1.2).

use crate::code::{BlockShape, MAX_SOURCE_SYMBOLS};
use core::ops::Range;

/// The cut of a message: a function of its length and its symbol size alone.
///
/// The message is `total = max(1, ceil(length / symbol_size))` source symbols, the last one padded
/// with zeros. They go into `ceil(total / 128)` blocks of nearly equal size: the first `large` of
/// them have one symbol more than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    length: usize,
    symbol_size: usize,
    total: usize,
    blocks: usize,
}

impl Layout {
    /// The cut of a message of `length` bytes that a peer announced; `None` where it makes none
    /// (a symbol size of 0, or more blocks than a block number can say).
    pub fn new(length: usize, symbol_size: usize) -> Option<Self> {
        if symbol_size == 0 {
            return None;
        }
        let total = length.div_ceil(symbol_size).max(1);
        let blocks = total.div_ceil(MAX_SOURCE_SYMBOLS);
        u32::try_from(blocks).ok()?;
        Some(Self { length, symbol_size, total, blocks })
    }

    /// The cut with the fewest symbols, none larger than `max_symbol`, and the least padding.
    ///
    /// # Panics
    ///
    /// When `max_symbol` is 0.
    pub fn fit(length: usize, max_symbol: usize) -> Self {
        let symbols = length.div_ceil(max_symbol).max(1);
        let symbol_size = length.div_ceil(symbols).max(1);
        Self::new(length, symbol_size).expect("a message in memory has fewer than 2^32 blocks")
    }

    /// Bytes in the message.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Bytes in each symbol.
    pub const fn symbol_size(&self) -> usize {
        self.symbol_size
    }

    /// Source symbols in all blocks.
    pub const fn source_symbols(&self) -> usize {
        self.total
    }

    /// How many blocks there are, at least 1.
    pub const fn blocks(&self) -> usize {
        self.blocks
    }

    /// The shape of block `block`, or `None` if there is no such block.
    pub fn shape(&self, block: usize) -> Option<BlockShape> {
        let symbols = self.symbols(block)?;
        BlockShape::new(symbols.len(), self.symbol_size).ok()
    }

    /// Where the bytes of block `block` lie in the message, without padding.
    pub fn bytes(&self, block: usize) -> Option<Range<usize>> {
        let symbols = self.symbols(block)?;
        let end = (symbols.end * self.symbol_size).min(self.length);
        Some((symbols.start * self.symbol_size).min(end)..end)
    }

    fn symbols(&self, block: usize) -> Option<Range<usize>> {
        if block >= self.blocks {
            return None;
        }
        let (small, large) = (self.total / self.blocks, self.total % self.blocks);
        let start = block * small + block.min(large);
        Some(start..start + small + usize::from(block < large))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_messages_are_one_block_of_unpadded_symbols() {
        for (length, symbols, size) in
            [(0, 1, 1), (1, 1, 1), (1366, 1, 1366), (1367, 2, 684), (93_000, 69, 1348)]
        {
            let layout = Layout::fit(length, 1366);
            assert_eq!((layout.source_symbols(), layout.symbol_size()), (symbols, size));
            assert_eq!((layout.blocks(), layout.bytes(0)), (1, Some(0..length)));
        }
    }

    #[test]
    fn nonsense_makes_no_layout() {
        assert_eq!(Layout::new(10, 0), None);
        assert_eq!(Layout::new(usize::MAX, 1), None);
        assert_eq!(Layout::new(10, 10).unwrap().shape(1), None);
    }

    proptest! {
        #[test]
        fn blocks_cover_the_message_once_and_differ_by_one_symbol(
            length in 0..2_000_000_usize, size in 1..2000_usize,
        ) {
            let layout = Layout::new(length, size).unwrap();
            let mut at = 0;
            let mut sizes = Vec::new();
            for block in 0..layout.blocks() {
                let bytes = layout.bytes(block).unwrap();
                prop_assert_eq!(bytes.start, at);
                at = bytes.end;
                let shape = layout.shape(block).unwrap();
                prop_assert!(shape.len() >= bytes.len());
                prop_assert!(block + 1 == layout.blocks() || shape.len() == bytes.len());
                sizes.push(shape.source_symbols());
            }
            prop_assert_eq!(at, length);
            prop_assert_eq!(sizes.iter().sum::<usize>(), layout.source_symbols());
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}
