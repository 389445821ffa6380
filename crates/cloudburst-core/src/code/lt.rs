//! LT encoding (III-A): a symbol is the XOR of the source symbols in its index set.

use arrayvec::ArrayVec;

use super::block::{MAX_SOURCE_SYMBOLS, SourceBlock};
use super::degree::{Degree, Sampler};
use super::draw::{Stream, generator};
use super::index_set::IndexSet;
use super::kernel::Kernel;

/// The function from ids to index sets.
#[derive(Clone, Debug)]
pub(super) struct LtEncoder {
    sampler: Sampler,
    /// Ids below this one are source symbols: n or 0.
    source_ids: usize,
}

impl LtEncoder {
    pub(super) fn new(degree: Degree, systematic: bool, source_symbols: usize) -> Self {
        let sampler = Sampler::new(degree, source_symbols);
        Self { sampler, source_ids: if systematic { source_symbols } else { 0 } }
    }

    pub(super) fn encode(
        &self,
        kernel: Kernel,
        block: &SourceBlock,
        id: u32,
        index_set: &mut [u8],
        payload: &mut [u8],
    ) {
        let set = self.index_set(id);
        set.write(index_set);
        let mut indices = set.iter();
        if let Some(first) = indices.next() {
            payload.copy_from_slice(block.symbol(first));
        }
        let others: ArrayVec<&[u8], MAX_SOURCE_SYMBOLS> =
            indices.map(|index| block.symbol(index)).collect();
        kernel.add(payload, &others);
    }

    fn index_set(&self, id: u32) -> IndexSet {
        if (id as usize) < self.source_ids {
            return IndexSet::single(id as usize);
        }
        self.sampler.draw(&mut generator(Stream::LtIndexSet, id))
    }
}
