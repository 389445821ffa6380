//! Decoding a linear code over GF(2^8) as symbols arrive.
//!
//! Source symbols go to their slots, and innovative repairs wait in the slots of missing source
//! symbols. A repair *absorbs* source symbols: their products are subtracted from it, so that in the
//! end it is a sum of products of missing symbols only. That is done while symbols arrive, as soon
//! as several repairs, or several source symbols that came after them, can share one pass. When the
//! last symbol has arrived, it remains to absorb the last few and to solve the small system of the
//! missing symbols (`linear_solve`).

use arrayvec::ArrayVec;

use super::block::MAX_SOURCE_SYMBOLS;
use super::echelon::Echelon;
use super::index_set::IndexSet;
use super::kernel::Kernel;
use super::linear::Rows;
use super::slab::Slab;
use super::workspace;

/// The number of repairs that absorb source symbols in one pass: as many as the kernels keep in
/// registers.
// Four repairs share one reading of the sources. This is most of the work of decoding, and it does
// not depend on which symbols are missing, so it need not wait for the last one: with 13 of 64
// missing, 4 us of 15 remain then.
const GROUP: usize = 4;

/// The number of source symbols after repairs at which the repairs absorb them: with a lower number,
/// passes over the repairs would be too frequent.
const LATE: usize = 8;

/// The decoding state of one block.
#[derive(Debug, Default)]
pub(super) struct LinearDecoder {
    rows: Rows,
    source_symbols: usize,
    /// The slots that hold their own source symbol.
    sources: IndexSet,
    /// The slots that hold a repair, in place of a missing source symbol.
    repairs: IndexSet,
    /// Those whose repair has not begun to absorb.
    fresh: IndexSet,
    /// The number of source symbols that came after a repair and are not yet absorbed.
    late: usize,
    /// The repair in each slot that holds one. Empty until there is one.
    held: Vec<Repair>,
    /// The ids of the Cauchy rows held, all below 256: one bit each.
    cauchy: [u128; 2],
    /// The rows of the symbols held, once a repair arrives that is not a Cauchy row. Before that
    /// it is not needed: up to n different symbols are independent.
    echelon: Echelon,
    /// Multiplications of payloads since the last reset.
    pub(super) multiplications: u64,
}

/// A waiting repair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repair {
    pub(super) id: u32,
    /// The source symbols that it has absorbed.
    absorbed: IndexSet,
}

impl LinearDecoder {
    /// Bytes of the tables.
    pub(super) const MEMORY_PER_SYMBOL: usize = size_of::<Repair>() + Echelon::MEMORY_PER_ROW;

    /// Returns the bytes allocated for tables.
    pub(super) fn memory(&self) -> usize {
        self.held.capacity() * size_of::<Repair>() + self.echelon.memory()
    }

    /// Discards everything, and expects a block of n symbols.
    pub(super) fn reset(&mut self, rows: Rows, source_symbols: usize) {
        self.rows = rows;
        self.source_symbols = source_symbols;
        self.sources = IndexSet::EMPTY;
        self.repairs = IndexSet::EMPTY;
        self.fresh = IndexSet::EMPTY;
        self.late = 0;
        self.cauchy = [0; 2];
        self.multiplications = 0;
        self.echelon.end();
    }

    /// Receives a symbol; returns whether it raised the rank. Call it only at a rank below n.
    #[inline]
    pub(super) fn receive(
        &mut self,
        kernel: Kernel,
        id: u32,
        payload: &[u8],
        slab: &mut Slab,
    ) -> bool {
        if id as usize >= self.source_symbols {
            return self.receive_repair(kernel, id, payload, slab);
        }
        let index = id as usize;
        if self.sources.contains(index) {
            return false;
        }
        // Most symbols are the next source symbol of a block that has lost nothing yet.
        if self.repairs.is_empty() && !self.echelon.has_begun() {
            slab.store(index, payload);
            self.sources.insert(index);
            return true;
        }
        self.receive_late_source(kernel, index, payload, slab)
    }

    /// Turns the payloads into the block. Call it only at rank n.
    #[inline(never)]
    pub(super) fn solve(&mut self, kernel: Kernel, slab: &mut Slab) {
        if self.repairs.is_empty() {
            return;
        }
        self.catch_up(kernel, slab);
        let id = |slot: usize| self.held[slot].id;
        let rows = self.rows;
        let n = self.source_symbols;
        let missing = self.repairs;
        self.multiplications +=
            workspace::with(|workspace| workspace.solver.solve(kernel, rows, n, missing, id, slab));
    }

    fn empty_slot(&self) -> usize {
        (IndexSet::all(self.source_symbols) ^ self.sources ^ self.repairs)
            .first()
            .expect("below rank n, a slot is empty")
    }

    /// Receives a source symbol of a block that holds repairs: one of them may be in its slot, or it
    /// may depend linearly on them.
    #[inline(never)]
    fn receive_late_source(
        &mut self,
        kernel: Kernel,
        index: usize,
        payload: &[u8],
        slab: &mut Slab,
    ) -> bool {
        if !self.raises_rank(kernel, index as u32) {
            return false;
        }
        if self.repairs.contains(index) {
            let empty = self.empty_slot();
            // A source symbol goes to its own slot, so that nothing needs to be moved at the end.
            // The repair in its place moves instead.
            slab.copy(index, empty);
            self.held[empty] = self.held[index];
            for set in [&mut self.repairs, &mut self.fresh] {
                if set.contains(index) {
                    set.remove(index);
                    set.insert(empty);
                }
            }
        }
        slab.store(index, payload);
        self.sources.insert(index);
        self.late += 1;
        if self.late == LATE {
            self.catch_up(kernel, slab);
        }
        true
    }

    #[inline(never)]
    fn receive_repair(&mut self, kernel: Kernel, id: u32, payload: &[u8], slab: &mut Slab) -> bool {
        if self.rows.is_cauchy(id) {
            let word = id as usize / 128;
            let bit = 1 << (id % 128);
            if self.cauchy[word] & bit != 0 || !self.raises_rank(kernel, id) {
                return false;
            }
            self.cauchy[word] |= bit;
        } else {
            // Coefficients from ESI 256 on are random, so the symbol may depend on those held.
            self.follow_rank(kernel);
            if !self.raises_rank(kernel, id) {
                return false;
            }
        }
        if let Some(more) = self.source_symbols.checked_sub(self.held.len()) {
            self.held.reserve_exact(more);
            self.held.resize(self.source_symbols, Repair::default());
        }
        let slot = self.empty_slot();
        slab.store(slot, payload);
        self.held[slot] = Repair { id, absorbed: IndexSet::EMPTY };
        self.repairs.insert(slot);
        self.fresh.insert(slot);
        // The last ones are left to `solve`, which handles them with later symbols.
        let missing = self.source_symbols - self.sources.len();
        let more_to_come = missing > self.repairs.len();
        if self.fresh.len() == GROUP && more_to_come && !self.sources.is_empty() {
            self.absorb(kernel, self.fresh, slab);
        }
        true
    }

    /// Starts to track the rank, from the symbols held.
    fn follow_rank(&mut self, kernel: Kernel) {
        if !self.echelon.has_begun() {
            let sources = self.sources.iter().map(|index| index as u32);
            let ids = sources.chain(self.repairs.iter().map(|slot| self.held[slot].id));
            let rows = ids.map(|id| self.rows.coefficients(id, self.source_symbols));
            self.echelon.begin(kernel, self.source_symbols, rows);
        }
    }

    /// Returns whether a symbol that is not held is independent of those held.
    fn raises_rank(&mut self, kernel: Kernel, id: u32) -> bool {
        if !self.echelon.has_begun() {
            return true;
        }
        self.echelon.insert(kernel, self.rows.coefficients(id, self.source_symbols))
    }

    /// Lets all repairs absorb all source symbols: first those that lack a few, then those that
    /// lack all.
    fn catch_up(&mut self, kernel: Kernel, slab: &mut Slab) {
        self.late = 0;
        for repairs in [self.repairs ^ self.fresh, self.fresh] {
            let behind = |&slot: &usize| self.held[slot].absorbed != self.sources;
            let mut left: IndexSet = repairs.iter().filter(behind).collect();
            while !left.is_empty() {
                let group: IndexSet = left.iter().take(GROUP).collect();
                self.absorb(kernel, group, slab);
                left ^= group;
            }
        }
    }

    /// Lets the repairs of a group absorb all source symbols.
    fn absorb(&mut self, kernel: Kernel, group: IndexSet, slab: &mut Slab) {
        let late: IndexSet = self
            .sources
            .iter()
            .filter(|&index| group.iter().any(|slot| !self.held[slot].absorbed.contains(index)))
            .collect();
        let mut factors = ArrayVec::<u8, { GROUP * MAX_SOURCE_SYMBOLS }>::new();
        for slot in group.iter() {
            let Repair { id, absorbed } = self.held[slot];
            let row = self.rows.coefficients(id, self.source_symbols);
            // A factor of 0 skips what this repair has absorbed before: one pass serves repairs
            // that lack different symbols.
            factors.extend(late.iter().map(|i| if absorbed.contains(i) { 0 } else { row[i] }));
            self.held[slot].absorbed = self.sources;
            self.fresh.remove(slot);
        }
        let mut to = ArrayVec::<&mut [u8], GROUP>::new();
        let mut from = ArrayVec::<&[u8], MAX_SOURCE_SYMBOLS>::new();
        for (slot, symbol) in slab.symbols_mut().enumerate() {
            if group.contains(slot) {
                to.push(symbol);
            } else if late.contains(slot) {
                from.push(symbol);
            }
        }
        kernel.add_products(&mut to, &from, &factors);
        self.multiplications += factors.iter().filter(|&&factor| factor != 0).count() as u64;
    }
}
