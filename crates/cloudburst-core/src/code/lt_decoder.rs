//! LT decoding as symbols arrive: follow the rank of the index sets, keep what raises it.
//!
//! The payload of an innovative symbol is stored and not touched again until the rank is n; that
//! of any other symbol is never touched at all.

use super::index_set::IndexSet;
use super::kernel::Kernel;
use super::lt_solve;
use super::slab::Slab;
use super::workspace;

/// What is known of one block's symbols. Entry i of both tables belongs to slot i.
#[derive(Debug, Default)]
pub(super) struct LtDecoder {
    /// Rows in echelon form: entry i is empty or has i as its lowest index.
    echelon: Vec<IndexSet>,
    /// The index set of the payload in each slot, as it was received.
    sets: Vec<IndexSet>,
}

impl LtDecoder {
    /// Bytes of the tables.
    pub(super) const MEMORY_PER_SYMBOL: usize = 2 * size_of::<IndexSet>();

    /// Bytes of the tables that there are.
    pub(super) fn memory(&self) -> usize {
        (self.echelon.capacity() + self.sets.capacity()) * size_of::<IndexSet>()
    }

    /// Forgets everything, and expects a block of n symbols.
    pub(super) fn reset(&mut self, source_symbols: usize) {
        for table in [&mut self.echelon, &mut self.sets] {
            table.clear();
            table.reserve_exact(source_symbols);
            table.resize(source_symbols, IndexSet::EMPTY);
        }
    }

    /// Takes a symbol in; whether it raised the rank.
    pub(super) fn receive(&mut self, set: IndexSet, payload: &[u8], slab: &mut Slab) -> bool {
        let mut row = set;
        while let Some(pivot) = row.first() {
            if self.echelon[pivot].is_empty() {
                self.echelon[pivot] = row;
                self.sets[pivot] = set;
                slab.store(pivot, payload);
                return true;
            }
            row ^= self.echelon[pivot];
        }
        false
    }

    /// Turns the payloads into the block. Only at rank n. Returns the number of XORs of payloads.
    pub(super) fn solve(&self, kernel: Kernel, slab: &mut Slab) -> u64 {
        workspace::with(|workspace| {
            lt_solve::solve(&self.sets, &mut workspace.program);
            slab.run(kernel, &workspace.program, &mut workspace.cells);
            workspace.program.xors()
        })
    }
}
