//! Solving an RLF-256 block of full rank: LU decomposition of the small matrix of what is
//! missing, then two passes over the payloads, in place.
//!
//! Let the missing source symbols be x_0, x_1, ... and the repairs held r_i, with coefficients
//! a_ik of x_k, and A = L U. The first pass makes y = L^-1 (r - known), the second x = U^-1 y.
//! Each step of a pass is one sum of products over the slab.

use super::block::MAX_SOURCE_SYMBOLS;
use super::gf256::{add_row, inverse, mul};
use super::kernel;
use super::rlf256::Coefficients;
use super::rlf256_decoder::Slot;
use super::slab::Slab;

/// Turns repairs into the missing source symbols, in place. Every slot is occupied, and the
/// coefficients of what they hold are independent. Returns the number of multiplications of
/// payloads.
pub(super) fn solve(slots: &mut [Slot], slab: &mut Slab) -> u64 {
    let missing: Vec<usize> =
        (0..slots.len()).filter(|&index| slots[index] != Slot::Source).collect();
    if missing.is_empty() {
        return 0;
    }
    let lu = decompose(&missing, slots, slab);
    let mut passes = Passes { slab, scratch: Vec::new(), multiplications: 0 };
    for (row, &index) in missing.iter().enumerate() {
        let mut factors = coefficients(slots, index);
        missing.iter().for_each(|&index| factors[index] = 0);
        for (&earlier, &factor) in missing[..row].iter().zip(lu.row(row)) {
            factors[earlier] = factor;
        }
        factors[index] = 1;
        passes.replace(index, &factors);
    }
    for (row, &index) in missing.iter().enumerate().rev() {
        let mut factors = [0; MAX_SOURCE_SYMBOLS];
        let scale = inverse(lu.row(row)[row]);
        factors[index] = scale;
        for (&later, &factor) in missing.iter().zip(lu.row(row)).skip(row + 1) {
            factors[later] = mul(scale, factor);
        }
        passes.replace(index, &factors[..slots.len()]);
    }
    passes.multiplications
}

/// A square matrix.
struct Matrix {
    size: usize,
    cells: Vec<u8>,
}

impl Matrix {
    fn row(&self, row: usize) -> &[u8] {
        &self.cells[row * self.size..][..self.size]
    }

    /// A row, and one below it.
    fn rows_mut(&mut self, upper: usize, lower: usize) -> (&mut [u8], &mut [u8]) {
        let (above, below) = self.cells.split_at_mut(lower * self.size);
        (&mut above[upper * self.size..][..self.size], &mut below[..self.size])
    }
}

/// L below the diagonal (its own is all ones) and U on and above it. Where rows must be exchanged,
/// so are the repairs in their slots.
fn decompose(missing: &[usize], slots: &mut [Slot], slab: &mut Slab) -> Matrix {
    let size = missing.len();
    let mut matrix = Matrix { size, cells: Vec::with_capacity(size * size) };
    for &index in missing {
        let row = coefficients(slots, index);
        matrix.cells.extend(missing.iter().map(|&column| row[column]));
    }
    for done in 0..size {
        let pivot = (done..size)
            .find(|&row| matrix.row(row)[done] != 0)
            .expect("independent rows leave a pivot in every column");
        if pivot != done {
            let (upper, lower) = matrix.rows_mut(done, pivot);
            upper.swap_with_slice(lower);
            slots.swap(missing[done], missing[pivot]);
            slab.swap(missing[done], missing[pivot]);
        }
        let scale = inverse(matrix.row(done)[done]);
        for row in done + 1..size {
            let (upper, lower) = matrix.rows_mut(done, row);
            let factor = mul(lower[done], scale);
            lower[done] = factor;
            add_row(&mut lower[done + 1..], &upper[done + 1..], factor);
        }
    }
    matrix
}

/// The coefficients of the repair in this slot.
fn coefficients(slots: &[Slot], index: usize) -> Coefficients {
    let id = match slots[index] {
        Slot::Repair(id) => id,
        Slot::Source | Slot::Empty => index as u32,
    };
    Coefficients::new(id, slots.len())
}

struct Passes<'a> {
    slab: &'a mut Slab,
    scratch: Vec<u8>,
    multiplications: u64,
}

impl Passes<'_> {
    /// Replaces a symbol by a sum over all symbols, itself among them.
    fn replace(&mut self, index: usize, factors: &[u8]) {
        self.scratch.resize(self.slab.symbol_size(), 0);
        kernel::dot(&mut self.scratch, self.slab.bytes(), factors);
        self.slab.store(index, &self.scratch);
        self.multiplications += factors.iter().filter(|&&factor| factor != 0).count() as u64;
    }
}
