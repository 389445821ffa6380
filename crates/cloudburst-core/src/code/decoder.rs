//! The decoder: from symbols to a block, for every code.

use super::block::BlockShape;
use super::index_set::IndexSet;
use super::kernel::Kernel;
use super::linear::Rows;
use super::linear_decoder::LinearDecoder;
use super::lt_decoder::LtDecoder;
use super::name::Code;
use super::slab::Slab;

/// Decodes one block from symbols that arrive in any order, any number of times.
///
/// It is complete as soon as the symbols received determine the block, never later. Its memory is
/// bounded by the block, whatever its input: n symbols, allocated when the first one is received,
/// and [a little](Self::memory) for each. Solving takes less than 200 KB more, shared by all decoders
/// of a thread. A decoder that was [reset](Self::reset) and has decoded as large a block before does
/// not allocate. (For RaptorQ, the underlying library does allocate, and its tables take about 2 MB
/// per process if every n occurs.)
#[derive(Debug)]
pub struct Decoder {
    kernel: Kernel,
    code: Code,
    shape: BlockShape,
    work: Work,
    // One decoder serves all codes, so that a pool can reuse it for a block of any code.
    slab: Slab,
    /// Used by the LT codes only, and idle otherwise.
    lt: LtDecoder,
    /// Used by the codes over GF(2^8) only, and idle otherwise.
    linear: LinearDecoder,
}

/// The effect of a symbol on the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// None: it depends linearly on the symbols before it, or the block was already complete.
    Redundant,
    /// One symbol fewer is needed.
    Innovative,
    /// It completed the block.
    Complete,
}

/// A symbol that cannot belong to this block. The peer is to blame, or the caller confused two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolError {
    /// The payload is not as long as the block's symbols.
    #[error("the payload has {got} bytes: symbols of this block have {expected}")]
    PayloadLength {
        /// Bytes of a symbol.
        expected: usize,
        /// Bytes of the payload.
        got: usize,
    },
    /// The length of the index set does not match code and block (0 for codes without one).
    #[error("the index set has {got} bytes: it must have {expected}")]
    IndexSetLength {
        /// Bytes of an index set.
        expected: usize,
        /// Bytes received.
        got: usize,
    },
    /// The index set names a source symbol that the block does not have.
    #[error("the index set names source symbol {got}: the block has {source_symbols}")]
    IndexOutOfRange {
        /// The source symbols of the block: indices are below this.
        source_symbols: usize,
        /// The lowest invalid index.
        got: usize,
    },
    /// The index set is empty, so the symbol has no information.
    #[error("the index set is empty: it must have 1 to {source_symbols} indices")]
    EmptyIndexSet {
        /// The source symbols of the block: the maximum number of indices.
        source_symbols: usize,
    },
}

/// The cost of decoding so far (Figure 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Well-formed symbols received, including those after completion.
    pub received: u64,
    /// Innovative symbols among them: at most n.
    pub innovative: u64,
    /// XORs of one payload into another. All are done when the block completes.
    pub xors: u64,
    /// Payloads multiplied in GF(2^8) and added to another. Some are done while symbols arrive, the
    /// rest when the block completes.
    pub multiply_adds: u64,
}

impl Decoder {
    /// Creates a decoder, without allocating memory for the block.
    pub fn new(code: Code, shape: BlockShape) -> Self {
        Self::with_kernel(Kernel::fastest(), code, shape)
    }

    /// Creates a decoder with a kernel of the caller's choice.
    pub fn with_kernel(kernel: Kernel, code: Code, shape: BlockShape) -> Self {
        Self {
            kernel,
            code,
            shape,
            work: Work::default(),
            slab: Slab::default(),
            lt: LtDecoder::default(),
            linear: LinearDecoder::default(),
        }
    }

    /// Receives symbol `id` with its index set, in wire format, and its payload.
    ///
    /// For the LT codes the index set determines the payload; for the others the id does. After an
    /// error the decoder is unchanged.
    #[inline]
    pub fn receive(
        &mut self,
        id: u32,
        index_set: &[u8],
        payload: &[u8],
    ) -> Result<Reception, SymbolError> {
        let set = self.check(index_set, payload)?;
        self.work.received += 1;
        if self.is_complete() {
            return Ok(Reception::Redundant);
        }
        // A block that never receives a symbol costs no memory.
        if self.work.innovative == 0 {
            self.prepare();
        }
        let innovative = match Rows::of(self.code) {
            Some(_) => self.linear.receive(self.kernel, id, payload, &mut self.slab),
            None => self.lt.receive(set, payload, &mut self.slab),
        };
        if !innovative {
            return Ok(Reception::Redundant);
        }
        self.work.innovative += 1;
        if !self.is_complete() {
            return Ok(Reception::Innovative);
        }
        self.solve();
        Ok(Reception::Complete)
    }

    /// Returns the code in use.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the shape of the block.
    pub fn shape(&self) -> BlockShape {
        self.shape
    }

    /// Returns whether the block is complete.
    pub fn is_complete(&self) -> bool {
        self.needed() == 0
    }

    /// Returns the minimum number of symbols that could complete the block: n less the rank. 0 when
    /// complete.
    pub fn needed(&self) -> usize {
        self.shape.source_symbols() - self.work.innovative as usize
    }

    /// Returns the whole block including padding, once complete: `shape().len()` bytes.
    pub fn block(&self) -> Option<&[u8]> {
        self.is_complete().then(|| &self.slab.bytes[..])
    }

    /// Lends the decoder, which has received nothing yet, memory for its block. It allocates its own
    /// if that is too small.
    pub fn lend_memory(&mut self, memory: Vec<u8>) {
        self.slab.bytes = memory;
    }

    /// Takes the memory of the block, which holds the [`block`](Self::block) if it is complete. The
    /// decoder then counts as having received nothing.
    pub fn take_memory(&mut self) -> Vec<u8> {
        self.work = Work::default();
        std::mem::take(&mut self.slab.bytes)
    }

    /// Returns the maximum bytes that a decoder of one block takes, whatever its input: the block, and
    /// a table entry for each of its symbols.
    pub const fn memory(code: Code, shape: BlockShape) -> usize {
        shape.source_symbols() * shape.symbol_size() + Self::tables(code, shape) + size_of::<Self>()
    }

    /// Bytes of the decoder's tables, which have an entry for each source symbol of a block.
    const fn tables(code: Code, shape: BlockShape) -> usize {
        let known = match Rows::of(code) {
            Some(_) => LinearDecoder::MEMORY_PER_SYMBOL,
            None => LtDecoder::MEMORY_PER_SYMBOL,
        };
        shape.source_symbols() * known
    }

    /// Discards everything and expects another block. Memory is kept, as much as the largest block so
    /// far needed.
    pub fn reset(&mut self, code: Code, shape: BlockShape) {
        // The tables are cleared when the first symbol arrives.
        self.code = code;
        self.shape = shape;
        self.work = Work::default();
    }

    /// [Resets](Self::reset) the decoder, and frees tables that exceed the [`memory`](Self::memory)
    /// of the new block by more than a quarter.
    pub fn reset_within(&mut self, code: Code, shape: BlockShape) {
        self.reset(code, shape);
        let fits = Self::tables(code, shape);
        if self.lt.memory() + self.linear.memory() > fits + fits / 4 {
            self.lt = LtDecoder::default();
            self.linear = LinearDecoder::default();
        }
    }

    /// Returns the cost of decoding since the last reset.
    pub fn work(&self) -> Work {
        let multiply_adds = match Rows::of(self.code) {
            Some(_) if self.work.innovative > 0 => self.linear.multiplications,
            _ => 0,
        };
        Work { multiply_adds, ..self.work }
    }

    #[inline(never)]
    fn solve(&mut self) {
        match Rows::of(self.code) {
            Some(_) => self.linear.solve(self.kernel, &mut self.slab),
            None => self.work.xors = self.lt.solve(self.kernel, &mut self.slab),
        }
    }

    #[inline(never)]
    fn prepare(&mut self) {
        self.slab.prepare(self.shape);
        match Rows::of(self.code) {
            Some(rows) => self.linear.reset(rows, self.shape.source_symbols()),
            None => self.lt.reset(self.shape.source_symbols()),
        }
    }

    #[inline]
    fn check(&self, index_set: &[u8], payload: &[u8]) -> Result<IndexSet, SymbolError> {
        let expected = self.shape.symbol_size();
        if payload.len() != expected {
            return Err(SymbolError::PayloadLength { expected, got: payload.len() });
        }
        if index_set.is_empty() && Rows::of(self.code).is_some() {
            return Ok(IndexSet::EMPTY);
        }
        self.check_index_set(index_set)
    }

    #[inline(never)]
    fn check_index_set(&self, index_set: &[u8]) -> Result<IndexSet, SymbolError> {
        let source_symbols = self.shape.source_symbols();
        let expected = self.code.index_set_len(source_symbols);
        if index_set.len() != expected {
            return Err(SymbolError::IndexSetLength { expected, got: index_set.len() });
        }
        let set = IndexSet::from_wire(index_set);
        let beyond = set ^ (set & IndexSet::all(source_symbols));
        if let Some(got) = beyond.first() {
            return Err(SymbolError::IndexOutOfRange { source_symbols, got });
        }
        if set.is_empty() {
            return Err(SymbolError::EmptyIndexSet { source_symbols });
        }
        Ok(set)
    }
}
