//! The shape of a block, and the division of its bytes into source symbols.

use bytes::Bytes;

/// The maximum number of source symbols in a block.
// A packet leaves 1,416 bytes for a symbol, so the paper's 64 symbols would not hold its largest
// message of 93,000 bytes, which takes 66.
pub const MAX_SOURCE_SYMBOLS: usize = 128;

/// The maximum size of a symbol in bytes: no UDP datagram carries more.
pub const MAX_SYMBOL_SIZE: usize = 65_535;

/// The shape of a block: n source symbols of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockShape {
    source_symbols: u8,
    symbol_size: u16,
}

/// An impossible shape, or data that do not fit it. The caller is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// No source symbols, or too many.
    #[error("a block has {got} source symbols: it must have 1 to {MAX_SOURCE_SYMBOLS}")]
    SourceSymbols {
        /// The number requested.
        got: usize,
    },
    /// Symbols without bytes, or with too many.
    #[error("symbols have {got} bytes: they must have 1 to {MAX_SYMBOL_SIZE}")]
    SymbolSize {
        /// The size requested, in bytes.
        got: usize,
    },
    /// The data are longer than the block.
    #[error("{got} bytes of data in a block that holds {block} bytes")]
    DataTooLong {
        /// Length of the data in bytes.
        got: usize,
        /// Length of the block in bytes.
        block: usize,
    },
}

impl BlockShape {
    /// Returns the shape of a block of `source_symbols` (1 to [`MAX_SOURCE_SYMBOLS`]) symbols of
    /// `symbol_size` (1 to [`MAX_SYMBOL_SIZE`]) bytes each.
    pub fn new(source_symbols: usize, symbol_size: usize) -> Result<Self, ShapeError> {
        match (u8::try_from(source_symbols), u16::try_from(symbol_size)) {
            (Err(_), _) => Err(ShapeError::SourceSymbols { got: source_symbols }),
            (Ok(n), _) if n == 0 || source_symbols > MAX_SOURCE_SYMBOLS => {
                Err(ShapeError::SourceSymbols { got: source_symbols })
            }
            (_, Err(_) | Ok(0)) => Err(ShapeError::SymbolSize { got: symbol_size }),
            (Ok(source_symbols), Ok(symbol_size)) => Ok(Self { source_symbols, symbol_size }),
        }
    }

    /// Returns the number of source symbols, n in the paper.
    pub const fn source_symbols(self) -> usize {
        self.source_symbols as usize
    }

    /// Returns the bytes of one symbol.
    pub const fn symbol_size(self) -> usize {
        self.symbol_size as usize
    }

    /// Returns the bytes of the whole block: symbols times their size. Never 0.
    #[expect(clippy::len_without_is_empty, reason = "no block is empty")]
    pub const fn len(self) -> usize {
        self.source_symbols() * self.symbol_size()
    }
}

/// The source symbols of a block: those that its data fill, and the padded ones.
#[derive(Clone, Debug)]
pub(super) struct SourceBlock {
    pub(super) shape: BlockShape,
    /// The source symbols that the data fill, without a copy.
    data: Bytes,
    /// The other symbols: the rest of the data, zeros, and the trailer.
    pub(super) rest: Vec<u8>,
}

impl SourceBlock {
    /// Creates a block of `data`, then zeros, then `trailer`. The symbols that the data do not fill are
    /// kept in `memory`, whose former contents do not matter.
    pub(super) fn new(
        shape: BlockShape,
        data: Bytes,
        trailer: &[u8],
        memory: Vec<u8>,
    ) -> Result<Self, ShapeError> {
        let got = data.len() + trailer.len();
        let block = shape.len();
        if got > block {
            return Err(ShapeError::DataTooLong { got, block });
        }
        let size = shape.symbol_size();
        let whole = data.len() / size * size;
        let mut rest = memory;
        rest.clear();
        rest.reserve_exact(block - whole);
        rest.extend_from_slice(&data[whole..]);
        rest.resize(block - whole - trailer.len(), 0);
        rest.extend_from_slice(trailer);
        Ok(Self { shape, data: data.slice(..whole), rest })
    }

    /// Source symbol `index`.
    pub(super) fn symbol(&self, index: usize) -> &[u8] {
        let size = self.shape.symbol_size();
        let start = index * size;
        match start.checked_sub(self.data.len()) {
            Some(start) => &self.rest[start..start + size],
            None => &self.data[start..start + size],
        }
    }

    /// All source symbols.
    pub(super) fn symbols(&self) -> impl Iterator<Item = &[u8]> {
        let size = self.shape.symbol_size();
        self.data.chunks_exact(size).chain(self.rest.chunks_exact(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked_at_both_ends() {
        for n in [0, 129, 256, usize::MAX] {
            assert_eq!(BlockShape::new(n, 8), Err(ShapeError::SourceSymbols { got: n }));
        }
        for size in [0, 65_536, usize::MAX] {
            assert_eq!(BlockShape::new(8, size), Err(ShapeError::SymbolSize { got: size }));
        }
        let largest = BlockShape::new(128, 65_535).unwrap();
        assert_eq!(largest.len(), 128 * 65_535);
        assert_eq!(BlockShape::new(1, 1).unwrap().len(), 1);
    }

    #[test]
    fn missing_bytes_are_zeros_and_the_trailer_comes_last() {
        let shape = BlockShape::new(3, 4).unwrap();
        let data = Bytes::from_static(b"abcdef");
        let symbols = |trailer: &[u8]| {
            let block = SourceBlock::new(shape, data.clone(), trailer, vec![9; 20]).unwrap();
            let each: Vec<_> = (0..3).map(|index| block.symbol(index).to_vec()).collect();
            assert_eq!(block.symbols().collect::<Vec<_>>(), each);
            each.concat()
        };
        assert_eq!(symbols(b""), b"abcdef\0\0\0\0\0\0");
        assert_eq!(symbols(b"xyz"), b"abcdef\0\0\0xyz");
        assert_eq!(symbols(b"uvwxyz"), b"abcdefuvwxyz");
    }

    #[test]
    fn longer_data_than_the_block_are_refused() {
        let shape = BlockShape::new(1, 2).unwrap();
        for (data, trailer) in [("abc", ""), ("ab", "c"), ("", "abc")] {
            let data = Bytes::from_static(data.as_bytes());
            let error = SourceBlock::new(shape, data, trailer.as_bytes(), Vec::new()).unwrap_err();
            assert_eq!(error, ShapeError::DataTooLong { got: 3, block: 2 });
        }
    }
}
