//! The decoder: symbols to block, for every code.

use super::block::BlockShape;
use super::index_set::IndexSet;
use super::kernel::Kernel;
use super::linear::Rows;
use super::linear_decoder::LinearDecoder;
use super::lt_decoder::LtDecoder;
use super::name::Code;
use super::slab::Slab;

/// Puts one block together from symbols that arrive in any order, any number of times.
///
/// It is complete as soon as the symbols received determine the block, never later. Its memory is
/// bounded by the block, whatever is fed to it: n symbols, allocated with the first one received,
/// and [a little](Self::memory) for each. What solving takes besides is shared by all decoders of
/// a thread, and less than 200 KB. Nothing is allocated where a decoder as large was
/// [reset](Self::reset) and has decoded as much before. (For RaptorQ, the library behind it does
/// allocate, and its tables take about 2 MB in a process, if every n occurs.)
#[derive(Debug)]
pub struct Decoder {
    kernel: Kernel,
    code: Code,
    shape: BlockShape,
    work: Work,
    slab: Slab,
    /// Used by the LT codes only, and idle otherwise.
    lt: LtDecoder,
    /// Used by the codes over GF(2^8) only, and idle otherwise.
    linear: LinearDecoder,
}

/// What a symbol did for the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// Nothing: the symbols before it said as much, or the block was complete.
    Redundant,
    /// One symbol less is needed.
    Innovative,
    /// The block is complete now.
    Complete,
}

/// A symbol that cannot be of this block: the fault of the peer, or of another block's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolError {
    /// The payload is not as long as the block's symbols are.
    #[error("a payload of {got} bytes where symbols have {expected}")]
    PayloadLength {
        /// Bytes of a symbol.
        expected: usize,
        /// Bytes of the payload.
        got: usize,
    },
    /// The index set is not as long as code and block make it (0 for codes without one).
    #[error("an index set of {got} bytes where {expected} are due")]
    IndexSetLength {
        /// Bytes of an index set.
        expected: usize,
        /// Bytes received.
        got: usize,
    },
    /// The index set names a source symbol that the block does not have.
    #[error("index {got} in a block of {source_symbols} source symbols")]
    IndexOutOfRange {
        /// The source symbols of the block: indices are below this.
        source_symbols: usize,
        /// The lowest index that is too high.
        got: usize,
    },
    /// The index set is empty, so the symbol says nothing.
    #[error("an empty index set: expected 1 to {source_symbols} indices")]
    EmptyIndexSet {
        /// The source symbols of the block: the most indices there could be.
        source_symbols: usize,
    },
}

/// What decoding has cost so far (Figure 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Symbols received and found well-formed, also after completion.
    pub received: u64,
    /// Those of them that told something new: at most n.
    pub innovative: u64,
    /// XORs of one payload into another. All are done when the block completes.
    pub xors: u64,
    /// Payloads multiplied in GF(2^8) and added to another. Some are done while symbols arrive, the
    /// rest when the block completes.
    pub multiply_adds: u64,
}

impl Decoder {
    /// A decoder that has received nothing yet, and has allocated nothing of the block's size.
    pub fn new(code: Code, shape: BlockShape) -> Self {
        Self::with_kernel(Kernel::fastest(), code, shape)
    }

    /// The same with a kernel of the caller's choice.
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

    /// Takes in symbol `id` with its index set, as bytes of the wire, and its payload.
    ///
    /// For the LT codes the index set alone says what the payload is; for the others the id does.
    /// An error leaves the decoder as it was.
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

    /// The code in use.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The shape of the block.
    pub fn shape(&self) -> BlockShape {
        self.shape
    }

    /// Whether the block is there.
    pub fn is_complete(&self) -> bool {
        self.needed() == 0
    }

    /// The fewest symbols that could complete the block: n less the rank. 0 when complete.
    pub fn needed(&self) -> usize {
        self.shape.source_symbols() - self.work.innovative as usize
    }

    /// The whole block, padding included, once complete: `shape().len()` bytes.
    pub fn block(&self) -> Option<&[u8]> {
        self.is_complete().then(|| self.slab.bytes())
    }

    /// The whole block, as [`block`](Self::block) has it, without a copy.
    pub fn into_block(mut self) -> Option<Vec<u8>> {
        self.is_complete().then(|| self.slab.take())
    }

    /// Lends the decoder, which has received nothing yet, memory for its block. It allocates its
    /// own where that is too small.
    pub fn lend_memory(&mut self, memory: Vec<u8>) {
        self.slab.lend(memory);
    }

    /// Takes the memory of the block: what [`block`](Self::block) has, if that is complete. The
    /// decoder has received nothing then.
    pub fn take_memory(&mut self) -> Vec<u8> {
        self.work = Work::default();
        self.slab.take()
    }

    /// Bytes that a decoder of one block takes at most, whatever it is fed: the block, and what is
    /// known of each symbol of it.
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

    /// Forgets everything and expects another block; memory is kept, and the largest block so far
    /// decides how much.
    pub fn reset(&mut self, code: Code, shape: BlockShape) {
        // The tables are cleared when the first symbol comes in.
        (self.code, self.shape, self.work) = (code, shape, Work::default());
    }

    /// [Resets](Self::reset) the decoder, and frees tables that are larger than [`memory`](Self::memory)
    /// says of the new block, by more than a quarter.
    pub fn reset_within(&mut self, code: Code, shape: BlockShape) {
        self.reset(code, shape);
        let fits = Self::tables(code, shape);
        if self.lt.memory() + self.linear.memory() > fits + fits / 4 {
            (self.lt, self.linear) = (LtDecoder::default(), LinearDecoder::default());
        }
    }

    /// What decoding has cost since the last reset.
    pub fn work(&self) -> Work {
        let multiply_adds = match Rows::of(self.code) {
            Some(_) if self.work.innovative > 0 => self.linear.multiplications(),
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
