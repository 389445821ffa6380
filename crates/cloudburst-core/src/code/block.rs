//! The shape of a block, and its bytes cut into source symbols.

use bytes::Bytes;

/// The most source symbols a block may have.
pub const MAX_SOURCE_SYMBOLS: usize = 128;

/// The most bytes a symbol may have: no UDP datagram carries more.
pub const MAX_SYMBOL_SIZE: usize = 65_535;

/// How a block is cut: n source symbols of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockShape {
    source_symbols: u8,
    symbol_size: u16,
}

/// A shape that cannot be, or data that do not fit it: the fault of whoever chose the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// No source symbols, or too many.
    #[error("{got} source symbols in a block: from 1 to {MAX_SOURCE_SYMBOLS} are possible")]
    SourceSymbols {
        /// The number asked for.
        got: usize,
    },
    /// Symbols without bytes, or with too many.
    #[error("symbols of {got} bytes: from 1 to {MAX_SYMBOL_SIZE} are possible")]
    SymbolSize {
        /// The number asked for, in bytes.
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
    /// A block of `source_symbols` (1 to [`MAX_SOURCE_SYMBOLS`]) symbols of `symbol_size`
    /// (1 to [`MAX_SYMBOL_SIZE`]) bytes each.
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

    /// The number of source symbols, n in the paper.
    pub const fn source_symbols(self) -> usize {
        self.source_symbols as usize
    }

    /// The bytes of one symbol.
    pub const fn symbol_size(self) -> usize {
        self.symbol_size as usize
    }

    /// The bytes of the whole block: symbols times their size. Never 0.
    #[expect(clippy::len_without_is_empty, reason = "no block is empty")]
    pub const fn len(self) -> usize {
        self.source_symbols() * self.symbol_size()
    }
}

/// The bytes of a block, seen as source symbols; what is missing at the end counts as zeros.
#[derive(Clone, Debug)]
pub(super) struct SourceBlock {
    shape: BlockShape,
    data: Bytes,
}

impl SourceBlock {
    pub(super) fn new(shape: BlockShape, data: Bytes) -> Result<Self, ShapeError> {
        if data.len() > shape.len() {
            return Err(ShapeError::DataTooLong { got: data.len(), block: shape.len() });
        }
        Ok(Self { shape, data })
    }

    pub(super) fn shape(&self) -> BlockShape {
        self.shape
    }

    /// The bytes of source symbol `index` that come before the padding: possibly none.
    pub(super) fn symbol(&self, index: usize) -> &[u8] {
        let size = self.shape.symbol_size();
        let start = (index * size).min(self.data.len());
        let end = (start + size).min(self.data.len());
        &self.data[start..end]
    }

    /// The source symbols that hold no padding, one after the other, and the bytes after them.
    pub(super) fn whole_symbols(&self) -> (&[u8], &[u8]) {
        let size = self.shape.symbol_size();
        self.data.split_at(self.data.len() / size * size)
    }

    /// Writes source symbol `index` and its padding.
    pub(super) fn copy_symbol(&self, index: usize, out: &mut [u8]) {
        let symbol = self.symbol(index);
        out[..symbol.len()].copy_from_slice(symbol);
        out[symbol.len()..].fill(0);
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
    fn missing_bytes_are_zeros() {
        let shape = BlockShape::new(3, 4).unwrap();
        let block = SourceBlock::new(shape, Bytes::from_static(b"abcdef")).unwrap();
        let mut out = [9; 4];
        block.copy_symbol(1, &mut out);
        assert_eq!(&out, b"ef\0\0");
        block.copy_symbol(2, &mut out);
        assert_eq!(out, [0; 4]);
        assert_eq!(block.whole_symbols(), (&b"abcd"[..], &b"ef"[..]));
    }

    #[test]
    fn longer_data_than_the_block_are_refused() {
        let shape = BlockShape::new(1, 2).unwrap();
        let error = SourceBlock::new(shape, Bytes::from_static(b"abc")).unwrap_err();
        assert_eq!(error, ShapeError::DataTooLong { got: 3, block: 2 });
    }
}
