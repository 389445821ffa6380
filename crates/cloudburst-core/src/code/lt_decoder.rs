//! LT decoding as symbols arrive: tracks the rank of the index sets, and keeps the symbols that raise it.
//!
//! The payload of an innovative symbol is stored and not touched again until the rank is n; that
//! of any other symbol is not touched at all.

use super::index_set::IndexSet;
use super::kernel::Kernel;
use super::lt_solve;
use super::slab::Slab;
use super::workspace::{self, Workspace};

/// The decoding state of one block. Entry i of both tables belongs to slot i.
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

    /// Returns the bytes allocated for tables.
    pub(super) fn memory(&self) -> usize {
        (self.echelon.capacity() + self.sets.capacity()) * size_of::<IndexSet>()
    }

    /// Discards everything, and expects a block of n symbols.
    pub(super) fn reset(&mut self, source_symbols: usize) {
        for table in [&mut self.echelon, &mut self.sets] {
            table.clear();
            table.reserve_exact(source_symbols);
            table.resize(source_symbols, IndexSet::EMPTY);
        }
    }

    /// Receives a symbol; returns whether it raised the rank.
    pub(super) fn receive(&mut self, set: IndexSet, payload: &[u8], slab: &mut Slab) -> bool {
        let mut row = set;
        while let Some(pivot) = row.first() {
            if self.echelon[pivot].is_empty() {
                self.echelon[pivot] = row;
                self.sets[pivot] = set;
                slab.store(pivot, payload);
                return true;
            }
            // Rank is followed on index sets alone: 16 bytes a step instead of a payload.
            row ^= self.echelon[pivot];
        }
        false
    }

    /// Turns the payloads into the block, and returns the number of XORs of payloads. Call it only at
    /// rank n.
    pub(super) fn solve(&self, kernel: Kernel, slab: &mut Slab) -> u64 {
        workspace::with(|Workspace { program, cells, .. }| {
            lt_solve::solve(&self.sets, program);
            kernel.run(program, &mut slab.bytes, slab.symbol_size, cells);
            program.xors()
        })
    }
}
