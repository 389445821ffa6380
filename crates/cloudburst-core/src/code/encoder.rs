//! The encoder: from (block, ESI) to a symbol, for every code.

use bytes::Bytes;

use super::block::{BlockShape, ShapeError, SourceBlock};
use super::kernel::Kernel;
use super::linear::{self, Rows};
use super::lt;
use super::name::Code;

/// Makes the endless symbols of one block, in any order.
///
/// It shares the block's bytes with the caller, and copies only those of the last symbols.
#[derive(Clone, Debug)]
pub struct Encoder {
    kernel: Kernel,
    code: Code,
    block: SourceBlock,
}

impl Encoder {
    /// Creates an encoder for `data`, which has at most `shape.len()` bytes and is padded with zeros
    /// (III-A). Longer data are refused.
    pub fn new(code: Code, shape: BlockShape, data: Bytes) -> Result<Self, ShapeError> {
        Self::with_trailer(Kernel::fastest(), code, shape, data, &[])
    }

    /// Creates an encoder with a kernel of the caller's choice, for a block that ends in `trailer`:
    /// data and trailer together have at most `shape.len()` bytes, and the zeros are between them.
    pub fn with_trailer(
        kernel: Kernel,
        code: Code,
        shape: BlockShape,
        data: Bytes,
        trailer: &[u8],
    ) -> Result<Self, ShapeError> {
        Self::with_memory(kernel, code, shape, data, trailer, Vec::new())
    }

    /// As [`with_trailer`](Self::with_trailer), but reuses the [memory](Self::into_memory) of an
    /// encoder that is no longer needed.
    pub fn with_memory(
        kernel: Kernel,
        code: Code,
        shape: BlockShape,
        data: Bytes,
        trailer: &[u8],
        memory: Vec<u8>,
    ) -> Result<Self, ShapeError> {
        Ok(Self { kernel, code, block: SourceBlock::new(shape, data, trailer, memory)? })
    }

    /// Returns the memory, for another encoder.
    pub fn into_memory(self) -> Vec<u8> {
        self.block.rest
    }

    /// Returns the code in use.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the shape of the block.
    pub fn shape(&self) -> BlockShape {
        self.block.shape
    }

    /// Writes the symbol with the encoding symbol ID `esi`: its index set, in wire format, and its
    /// payload.
    ///
    /// # Panics
    ///
    /// If `index_set` is not [`Code::index_set_len`] bytes long, or `payload` not
    /// [`BlockShape::symbol_size`]: the caller passed a buffer of the wrong size.
    pub fn encode(&self, esi: u32, index_set: &mut [u8], payload: &mut [u8]) {
        let shape = self.shape();
        let index_set_len = self.code.index_set_len(shape.source_symbols());
        assert_eq!(index_set.len(), index_set_len, "length of the buffer for the index set");
        assert_eq!(payload.len(), shape.symbol_size(), "length of the buffer for the payload");
        let Self { kernel, code, block } = self;
        match *code {
            Code::Lt(degree) => lt::encode(*kernel, degree, false, block, esi, index_set, payload),
            Code::LtSystematic(degree) => {
                lt::encode(*kernel, degree, true, block, esi, index_set, payload)
            }
            Code::Rlf256 => linear::encode(*kernel, Rows::Rlf256, block, esi, payload),
            #[cfg(feature = "raptorq")]
            Code::RaptorQ => linear::encode(*kernel, Rows::RaptorQ, block, esi, payload),
        }
    }
}
