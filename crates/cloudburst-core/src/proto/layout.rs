//! The partition of a message into blocks, and of blocks into symbols (section III-A; RFC 6330,
//! section 4.4.1.2).

use crate::code::{BlockShape, MAX_SOURCE_SYMBOLS};
use crate::id::Digest;
use core::ops::Range;

/// The maximum number of blocks in one message: a block number has 24 bits.
const MAX_BLOCKS: usize = 1 << 24;

/// Bytes at the end of each block that hold its digest.
// In the block and not in every packet, where it would take 1.1 % of the bytes: any symbols that
// decode the block contain it.
const TRAILER: usize = size_of::<Digest>();

/// The partition of a message: a function of its length and its symbol size alone.
///
/// The message goes into as few blocks as can hold it, of 128 symbols at most. Each block ends in
/// its digest. All blocks together have as few symbols as can hold the message and the digests. If
/// these do not divide evenly, the first blocks have one symbol more than the others. Zeros before
/// the digest of the last block pad the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    length: usize,
    symbol_size: usize,
    total: usize,
    blocks: usize,
}

impl Layout {
    /// The partition of a message of `length` bytes that a peer announced. Returns `None` if there
    /// is none: the symbol size is less than that of a digest, or there are more blocks than a
    /// block number can express.
    pub fn new(length: usize, symbol_size: usize) -> Option<Self> {
        if symbol_size < TRAILER {
            return None;
        }
        let blocks = length.div_ceil(MAX_SOURCE_SYMBOLS * symbol_size - TRAILER).max(1);
        if blocks > MAX_BLOCKS {
            return None;
        }
        let total = length.checked_add(TRAILER * blocks)?.div_ceil(symbol_size);
        Some(Self { length, symbol_size, total, blocks })
    }

    /// The partition with the fewest symbols, none larger than `max_symbol`, and the least padding.
    ///
    /// # Panics
    ///
    /// If `max_symbol` is less than the size of a digest, or the message takes more than 2^24
    /// blocks of such symbols. No message whose length fits the length field takes as many.
    pub fn fit(length: usize, max_symbol: usize) -> Self {
        let new = |symbol_size| Self::new(length, symbol_size).expect("few enough blocks");
        let largest = new(max_symbol);
        let bytes = length + TRAILER * largest.blocks;
        // Smaller symbols instead of a padded last one: 1,400 bytes leave as two packets of 700 and
        // not as two of 1,416.
        new(bytes.div_ceil(largest.total))
    }

    /// Bytes in the message.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Bytes in each symbol.
    pub const fn symbol_size(&self) -> usize {
        self.symbol_size
    }

    /// Source symbols of all blocks.
    pub const fn source_symbols(&self) -> usize {
        self.total
    }

    /// The number of blocks, at least 1.
    pub const fn blocks(&self) -> usize {
        self.blocks
    }

    /// The shape of block `block`, or `None` if there is no such block.
    pub fn shape(&self, block: usize) -> Option<BlockShape> {
        let symbols = self.symbols(block)?;
        BlockShape::new(symbols.len(), self.symbol_size).ok()
    }

    /// The range of the bytes of block `block` in the message, or `None` if there is no such block.
    pub fn bytes(&self, block: usize) -> Option<Range<usize>> {
        let symbols = self.symbols(block)?;
        let start = symbols.start * self.symbol_size - block * TRAILER;
        let end = symbols.end * self.symbol_size - (block + 1) * TRAILER;
        Some(start..end.min(self.length))
    }

    fn symbols(&self, block: usize) -> Option<Range<usize>> {
        if block >= self.blocks {
            return None;
        }
        let small = self.total / self.blocks;
        let large = self.total % self.blocks;
        let start = block * small + block.min(large);
        Some(start..start + small + usize::from(block < large))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_messages_are_one_block_with_the_least_padding() {
        for (length, symbols, size) in
            [(0, 1, 16), (1, 1, 17), (1400, 1, 1416), (1401, 2, 709), (93_000, 66, 1410)]
        {
            let layout = Layout::fit(length, 1416);
            assert_eq!((layout.source_symbols(), layout.symbol_size()), (symbols, size));
            assert_eq!((layout.blocks(), layout.bytes(0)), (1, Some(0..length)));
        }
        assert_eq!(Layout::fit(93_000, 1396).source_symbols(), 67);
    }

    #[test]
    fn nonsense_makes_no_layout() {
        assert_eq!(Layout::new(10, 15), None);
        assert_eq!(Layout::new(usize::MAX, 16), None);
        assert_eq!(Layout::new(MAX_BLOCKS * (128 * 16 - 16) + 1, 16), None);
        assert!(Layout::new(MAX_BLOCKS * (128 * 16 - 16), 16).is_some());
        assert_eq!(Layout::new(10, 26).unwrap().shape(1), None);
    }

    proptest! {
        #[test]
        fn blocks_cover_the_message_once_and_differ_by_one_symbol(
            length in 0..2_000_000_usize, size in 16..2000_usize,
        ) {
            let layout = Layout::new(length, size).unwrap();
            let mut at = 0;
            let mut sizes = Vec::new();
            for block in 0..layout.blocks() {
                let bytes = layout.bytes(block).unwrap();
                prop_assert_eq!(bytes.start, at);
                at = bytes.end;
                let shape = layout.shape(block).unwrap();
                let capacity = shape.len() - TRAILER;
                prop_assert!(capacity >= bytes.len());
                prop_assert!(capacity - bytes.len() < size);
                prop_assert!(block + 1 == layout.blocks() || capacity == bytes.len());
                sizes.push(shape.source_symbols());
            }
            prop_assert_eq!(at, length);
            prop_assert_eq!(sizes.iter().sum::<usize>(), layout.source_symbols());
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }

        #[test]
        fn a_fit_has_as_few_symbols_as_there_can_be(
            length in 0..2_000_000_usize, max in 32..2000_usize,
        ) {
            let layout = Layout::fit(length, max);
            let largest = Layout::new(length, max).unwrap();
            prop_assert!(layout.symbol_size() <= max);
            prop_assert_eq!(layout.blocks(), largest.blocks());
            prop_assert_eq!(layout.source_symbols(), largest.source_symbols());
        }
    }
}
