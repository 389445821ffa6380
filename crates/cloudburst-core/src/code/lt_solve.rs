//! Solves an LT block of full rank: peel; where that stalls, set indices aside; eliminate on the
//! indices set aside.
//!
//! Peeling finds a set with one unknown index, which thereby becomes known, and so on (Figure 5). Where
//! every set has two or more, all but one of a set are *set aside*: treated as known, to be filled
//! in later. When all indices are known or set aside, the sets not used for peeling involve only the
//! indices set aside, and equal them in number: a small dense system. (This is the idea of
//! inactivation decoding in RFC 6330, 5.4.2.) It is inverted, and multiplied by the payloads, with
//! the method of four Russians if it is large.
//!
//! This module handles only index sets: its result is a program of sums of payloads.

use arrayvec::ArrayVec;

use super::block::MAX_SOURCE_SYMBOLS;
use super::index_set::IndexSet;
use super::kernel::{Place, Program};

/// The number of indices set aside from which tables of sums save more than they cost.
const MIN_FOR_TABLES: usize = 24;
/// The number of cells whose sums a table holds: the bits of a nibble.
const TABLE_BITS: usize = 4;
/// The number of tables in use at a time.
const TABLES: usize = 8;

/// A value for each index or slot.
type PerIndex<T> = [T; MAX_SOURCE_SYMBOLS];
type List<T> = ArrayVec<T, MAX_SOURCE_SYMBOLS>;

/// Writes the program that solves a block in place: the payload in slot i is the XOR of the source
/// symbols in `sets[i]`, and the n sets are linearly independent.
pub(super) fn solve(sets: &[IndexSet], program: &mut Program) {
    program.clear();
    let Peeling { peeled, aside, left, .. } = Peeling::of(sets);
    // The cells that hold the payloads received, since the slots are overwritten: copied once
    // instead of exchanged in place, since each payload moves to the slot of another. `None` for a
    // slot that holds its own source symbol, which stays there.
    let mut inputs: PerIndex<Option<u8>> = [None; MAX_SOURCE_SYMBOLS];
    let mut count = 0;
    for (slot, set) in sets.iter().enumerate() {
        if *set != IndexSet::single(slot) {
            inputs[slot] = Some(count);
            program.set(Place::Cell(count), [slot as u8], []);
            count += 1;
        }
    }
    // For each peeled index, the indices set aside that must still be added to it.
    let mut lacks: PerIndex<IndexSet> = [IndexSet::EMPTY; MAX_SOURCE_SYMBOLS];
    let mut known = IndexSet::EMPTY;
    let substitute = |set: IndexSet, known: IndexSet, lacks: &PerIndex<IndexSet>| {
        let terms = set & known;
        (terms, terms.iter().fold(set & aside, |sum, index| sum ^ lacks[index]))
    };
    for &(slot, index) in &peeled {
        let (terms, lacking) = substitute(sets[slot], known, &lacks);
        lacks[index] = lacking;
        known.insert(index);
        if let Some(cell) = inputs[slot] {
            program.set(Place::Payload(index as u8), bytes(terms), [cell]);
        }
    }
    let mut dense = List::<IndexSet>::new();
    let mut cells = List::<u8>::new();
    for slot in left.iter() {
        let (terms, lacking) = substitute(sets[slot], known, &lacks);
        let cell = inputs[slot].expect("a slot that holds its own symbol is peeled");
        program.add(Place::Cell(cell), bytes(terms), []);
        dense.push(lacking);
        cells.push(cell);
    }
    let aside: List<usize> = aside.iter().collect();
    let inverse = invert(&aside, &dense);
    if aside.len() < MIN_FOR_TABLES {
        for (&index, row) in aside.iter().zip(&inverse) {
            program.set(Place::Payload(index as u8), [], row.iter().map(|i| cells[i]));
        }
    } else {
        multiply_by_tables(&aside, &inverse, &cells, count, program);
    }
    for &(_, index) in &peeled {
        program.add(Place::Payload(index as u8), bytes(lacks[index]), []);
    }
}

fn bytes(set: IndexSet) -> impl Iterator<Item = u8> {
    set.iter().map(|index| index as u8)
}

/// Peeling, and the order in which it has made indices known.
struct Peeling<'a> {
    sets: &'a [IndexSet],
    /// For each index, the slots whose sets hold it.
    holders: PerIndex<IndexSet>,
    /// The indices neither known nor set aside.
    unknown: IndexSet,
    /// The slots that have peeled nothing: in the end, as many as indices set aside.
    left: IndexSet,
    /// For each slot, the unknown indices of its set.
    weight: PerIndex<u8>,
    /// The slots that have reached a weight of 1.
    ripple: List<usize>,
    /// (slot, index): the set of this slot yields this index, given those before it.
    peeled: List<(usize, usize)>,
    /// The indices set aside.
    aside: IndexSet,
}

impl<'a> Peeling<'a> {
    fn of(sets: &'a [IndexSet]) -> Self {
        let n = sets.len();
        let mut peeling = Self {
            sets,
            holders: [IndexSet::EMPTY; MAX_SOURCE_SYMBOLS],
            unknown: IndexSet::all(n),
            left: IndexSet::all(n),
            weight: [0; MAX_SOURCE_SYMBOLS],
            ripple: List::new(),
            peeled: List::new(),
            aside: IndexSet::EMPTY,
        };
        for (slot, set) in sets.iter().enumerate() {
            set.iter().for_each(|index| peeling.holders[index].insert(slot));
            peeling.weight[slot] = set.len() as u8;
            if set.len() == 1 {
                peeling.ripple.push(slot);
            }
        }
        while !peeling.unknown.is_empty() {
            while let Some(slot) = peeling.ripple.pop() {
                // Another set may have yielded its index in the meantime.
                if let Some(index) = (sets[slot] & peeling.unknown).only() {
                    peeling.left.remove(slot);
                    peeling.peeled.push((slot, index));
                    peeling.reveal(index);
                }
            }
            let chosen = peeling.choose();
            peeling.aside ^= chosen;
            chosen.iter().for_each(|index| peeling.reveal(index));
        }
        peeling
    }

    /// Marks an unknown index as known or set aside.
    fn reveal(&mut self, index: usize) {
        self.unknown.remove(index);
        for slot in (self.holders[index] & self.left).iter() {
            self.weight[slot] -= 1;
            if self.weight[slot] == 1 {
                self.ripple.push(slot);
            }
        }
    }

    /// Chooses the indices to set aside so that peeling can continue: all unknown indices of the
    /// smallest set except the one that the fewest sets hold. None if all are known.
    fn choose(&self) -> IndexSet {
        let candidates = self.left.iter().filter(|&slot| self.weight[slot] > 1);
        let Some(smallest) = candidates.min_by_key(|&slot| self.weight[slot]) else {
            return IndexSet::EMPTY;
        };
        let mut chosen = self.sets[smallest] & self.unknown;
        if let Some(kept) = chosen.iter().min_by_key(|&i| (self.holders[i] & self.left).len()) {
            chosen.remove(kept);
        }
        chosen
    }
}

/// Returns for each index the rows whose sum is that index alone, by Gauss-Jordan elimination.
fn invert(indices: &[usize], rows: &[IndexSet]) -> List<IndexSet> {
    let mut rows: List<(IndexSet, IndexSet)> =
        rows.iter().enumerate().map(|(i, &row)| (row, IndexSet::single(i))).collect();
    for (done, &index) in indices.iter().enumerate() {
        let pivot = (done..rows.len())
            .find(|&row| rows[row].0.contains(index))
            .expect("independent sets leave a row for every index set aside");
        rows.swap(done, pivot);
        let (set, sum) = rows[done];
        for (i, row) in rows.iter_mut().enumerate() {
            if i != done && row.0.contains(index) {
                row.0 ^= set;
                row.1 ^= sum;
            }
        }
    }
    rows.into_iter().map(|(_, sum)| sum).collect()
}

/// Sets the payload of each index to the sum of the cells in its row, by the method of four Russians
/// (Arlazarov, Dinic, Kronrod and Faradzev, 1970): all sums of four cells are computed once, and then
/// every row adds one of them instead of two cells on average.
fn multiply_by_tables(
    indices: &[usize],
    rows: &[IndexSet],
    cells: &[u8],
    free: u8,
    program: &mut Program,
) {
    for (batch, inputs) in cells.chunks(TABLE_BITS * TABLES).enumerate() {
        // The cell of each sum of each table, by the nibble of a row that selects it; the sum of
        // a single cell is that cell.
        let mut tables = [[0; 1 << TABLE_BITS]; TABLES];
        let mut next = free;
        for (table, inputs) in tables.iter_mut().zip(inputs.chunks(TABLE_BITS)) {
            for (i, &input) in inputs.iter().enumerate() {
                let bit = 1 << (TABLE_BITS - 1 - i);
                table[bit] = input;
                // Combined with the cells before it, whose bits are higher.
                for others in (2 * bit..1 << TABLE_BITS).step_by(2 * bit) {
                    program.set(Place::Cell(next), [], [input, table[others]]);
                    table[others + bit] = next;
                    next += 1;
                }
            }
        }
        for (&index, row) in indices.iter().zip(rows) {
            let sums = tables.iter().enumerate().filter_map(|(i, table)| {
                let sum = row.nibble(batch * TABLES + i);
                (sum != 0).then(|| table[sum])
            });
            let to = Place::Payload(index as u8);
            if batch == 0 { program.set(to, [], sums) } else { program.add(to, [], sums) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::kernel::Kernel;
    use crate::rng::SplitMix64;

    fn sets(lists: &[&[usize]]) -> Vec<IndexSet> {
        lists.iter().map(|list| list.iter().copied().collect()).collect()
    }

    /// Runs the program on payloads that have a bit for each source symbol that they contain.
    fn check(sets: &[IndexSet]) -> u64 {
        let mut program = Program::default();
        solve(sets, &mut program);
        let mut payloads = vec![0; 16 * sets.len()];
        for (payload, set) in payloads.chunks_exact_mut(16).zip(sets) {
            set.write(payload);
        }
        Kernel::fastest().run(&program, &mut payloads, 16, &mut Vec::new());
        for (index, payload) in payloads.chunks_exact(16).enumerate() {
            assert_eq!(IndexSet::from_wire(payload), IndexSet::single(index));
        }
        program.xors()
    }

    #[test]
    fn source_symbols_need_no_addition() {
        assert_eq!(check(&sets(&[&[2], &[0], &[1]])), 0);
    }

    #[test]
    fn peeling_costs_what_the_degrees_say() {
        // Figure 5: x1 is known, so x2 is, so x3 is.
        assert_eq!(check(&sets(&[&[0, 1, 2], &[0, 1], &[0]])), 3);
    }

    #[test]
    fn one_index_set_aside_breaks_a_cycle() {
        assert_eq!(check(&sets(&[&[0, 1], &[1, 2], &[0, 1, 2]])), 3);
    }

    #[test]
    fn every_block_of_four_that_can_be_solved_is() {
        for code in 0_u32..1 << 16 {
            let rows: Vec<_> = (0..4)
                .map(|row| u64::from(code >> (4 * row) & 15) << 60)
                .map(|bits| IndexSet::from_words(bits, 0))
                .collect();
            if rank(&rows) == 4 {
                check(&rows);
            }
        }
    }

    #[test]
    fn dense_blocks_of_all_sizes_are_solved_and_tables_save_additions() {
        let mut rng = SplitMix64::new(5);
        for n in 1..=MAX_SOURCE_SYMBOLS {
            let mut echelon = vec![IndexSet::EMPTY; n];
            let mut rows = Vec::new();
            while rows.len() < n {
                let set = IndexSet::from_words(rng.next_u64(), rng.next_u64()) & IndexSet::all(n);
                let mut rest = set;
                while let Some(pivot) = rest.first() {
                    if echelon[pivot].is_empty() {
                        echelon[pivot] = rest;
                        rows.push(set);
                        break;
                    }
                    rest ^= echelon[pivot];
                }
            }
            let xors = check(&rows);
            if n == MAX_SOURCE_SYMBOLS {
                assert!(xors < (n * n / 2) as u64, "{xors}");
            }
        }
    }

    /// Returns the rank, by counting the nonzero sums of all subsets.
    fn rank(rows: &[IndexSet]) -> usize {
        let sum = |subset: usize| {
            let chosen = (0..rows.len()).filter(|row| subset >> row & 1 == 1);
            chosen.fold(IndexSet::EMPTY, |sum, row| sum ^ rows[row])
        };
        let zeros = (0..1 << rows.len()).filter(|&subset| sum(subset).is_empty()).count();
        rows.len() - zeros.ilog2() as usize
    }
}
