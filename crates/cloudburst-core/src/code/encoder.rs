//! The encoder: (block, ESI) to symbol, for every code.

use bytes::Bytes;

use super::block::{BlockShape, ShapeError, SourceBlock};
use super::kernel::Kernel;
use super::linear::{self, Rows};
use super::lt::LtEncoder;
use super::name::Code;

/// Makes the symbols of one block, without end and in any order.
///
/// It shares the block's bytes with the caller, and owns a copy of those of the last symbols alone.
#[derive(Clone, Debug)]
pub struct Encoder {
    kernel: Kernel,
    code: Code,
    block: SourceBlock,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Lt(LtEncoder),
    Linear(Rows),
}

impl Encoder {
    /// An encoder for `data`, which is at most `shape.len()` bytes; what is missing counts as
    /// zeros (III-A). Longer data are refused.
    pub fn new(code: Code, shape: BlockShape, data: Bytes) -> Result<Self, ShapeError> {
        Self::with_trailer(Kernel::fastest(), code, shape, data, &[])
    }

    /// The same with a kernel of the caller's choice, for a block that ends in `trailer`: data and
    /// trailer together are at most `shape.len()` bytes, and the zeros are between them.
    pub fn with_trailer(
        kernel: Kernel,
        code: Code,
        shape: BlockShape,
        data: Bytes,
        trailer: &[u8],
    ) -> Result<Self, ShapeError> {
        Self::with_memory(kernel, code, shape, data, trailer, Vec::new())
    }

    /// The same with the [memory](Self::into_memory) of an encoder that is no longer needed, which
    /// therefore need not be allocated.
    pub fn with_memory(
        kernel: Kernel,
        code: Code,
        shape: BlockShape,
        data: Bytes,
        trailer: &[u8],
        memory: Vec<u8>,
    ) -> Result<Self, ShapeError> {
        let n = shape.source_symbols();
        let rule = match code {
            Code::Lt(degree) => Rule::Lt(LtEncoder::new(degree, false, n)),
            Code::LtSystematic(degree) => Rule::Lt(LtEncoder::new(degree, true, n)),
            Code::Rlf256 => Rule::Linear(Rows::Rlf256),
            #[cfg(feature = "raptorq")]
            Code::RaptorQ => Rule::Linear(Rows::RaptorQ),
        };
        Ok(Self { kernel, code, block: SourceBlock::new(shape, data, trailer, memory)?, rule })
    }

    /// Memory for another encoder.
    pub fn into_memory(self) -> Vec<u8> {
        self.block.into_memory()
    }

    /// The code in use.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The shape of the block.
    pub fn shape(&self) -> BlockShape {
        self.block.shape()
    }

    /// Writes the symbol with the encoding symbol ID `esi`: its index set, as bytes of the wire,
    /// and its payload.
    ///
    /// # Panics
    ///
    /// If `index_set` is not [`Code::index_set_len`] bytes long, or `payload` not
    /// [`BlockShape::symbol_size`]: the caller sized a buffer wrongly.
    pub fn encode(&self, esi: u32, index_set: &mut [u8], payload: &mut [u8]) {
        let shape = self.shape();
        let index_set_len = self.code.index_set_len(shape.source_symbols());
        assert_eq!(index_set.len(), index_set_len, "length of the buffer for the index set");
        assert_eq!(payload.len(), shape.symbol_size(), "length of the buffer for the payload");
        match &self.rule {
            Rule::Lt(lt) => lt.encode(self.kernel, &self.block, esi, index_set, payload),
            Rule::Linear(rows) => linear::encode(self.kernel, *rows, &self.block, esi, payload),
        }
    }
}
