//! Solves a block of a linear code at full rank: as many equations as missing symbols.
//!
//! The repairs have absorbed all source symbols received, so that they are linear combinations of the
//! missing ones only. The matrix of their coefficients is inverted, and multiplied by the repairs in
//! one pass.

use arrayvec::ArrayVec;

use super::block::MAX_SOURCE_SYMBOLS;
use super::gf256::{ORDER, exp, inverse, log, mul};
use super::index_set::IndexSet;
use super::kernel::{Kernel, grow};
use super::linear::{Coefficients, Rows};
use super::slab::Slab;

/// The bytes of repairs that are copied at a time while their slots are overwritten: together with
/// the results, they should stay in the first-level cache.
const SCRATCH: usize = 12 << 10;

/// Scratch memory for solving, kept from block to block.
#[derive(Debug, Default)]
pub(super) struct Solver {
    /// The inverse of the matrix of coefficients, row by row.
    inverse: Vec<u8>,
    scratch: Vec<u8>,
}

impl Solver {
    /// Turns repairs into the missing source symbols, in place. The slots `missing` hold repairs
    /// with the ids given by `id`, whose coefficients of the missing symbols are independent.
    /// Returns the number of multiplications of payloads.
    pub(super) fn solve(
        &mut self,
        kernel: Kernel,
        rows: Rows,
        source_symbols: usize,
        missing: IndexSet,
        id: impl Fn(usize) -> u32,
        slab: &mut Slab,
    ) -> u64 {
        let ids: ArrayVec<u32, MAX_SOURCE_SYMBOLS> = missing.iter().map(id).collect();
        // The common case: elimination is needed only if more than 256 - n repair symbols were
        // sent, or for RaptorQ.
        if ids.iter().all(|&id| rows.is_cauchy(id)) {
            self.invert_cauchy(source_symbols, missing, &ids);
        } else {
            let row = |&id: &u32| rows.coefficients(id, source_symbols);
            self.invert(kernel, missing, ids.iter().map(row));
        }
        // One symbol is missing and its repair is the plain sum: absorbing has already recovered
        // it.
        if self.inverse == [1] {
            return 0;
        }
        self.apply(kernel, missing, slab);
        self.inverse.len() as u64
    }

    /// Sets `inverse` to the inverse of the coefficients of Cauchy rows, by its closed form
    /// (Schechter, 1959).
    ///
    /// With x the ids, y the indices and s the scales of the columns, a coefficient is
    /// s_b / (x_a + y_b), and its counterpart in the inverse, in row b and column a,
    ///
    /// ```text
    ///      1       prod_k (x_a + y_k)        prod_k (x_k + y_b)
    /// ----------- ---------------------- --------------------------
    ///  x_a + y_b  prod_k≠a (x_a + x_k)   s_b prod_k≠b (y_b + y_k)
    /// ```
    fn invert_cauchy(&mut self, source_symbols: usize, missing: IndexSet, ids: &[u32]) {
        let x: ArrayVec<u8, MAX_SOURCE_SYMBOLS> = ids.iter().map(|&id| id as u8).collect();
        let y: ArrayVec<u8, MAX_SOURCE_SYMBOLS> = missing.iter().map(|i| i as u8).collect();
        // Logarithms turn products into sums; adding the complement subtracts.
        let log_sum = |a: u8, to: &[u8]| to.iter().map(|&b| u32::from(log(a ^ b))).sum::<u32>();
        let log_sum_of_others = |a: u8, to: &[u8]| {
            to.iter().filter(|&&b| b != a).map(|&b| u32::from(ORDER - log(a ^ b))).sum::<u32>()
        };
        let reduce = |sum: u32| (sum % u32::from(ORDER)) as u16;
        let of_column: ArrayVec<u16, MAX_SOURCE_SYMBOLS> =
            x.iter().map(|&a| reduce(log_sum(a, &y) + log_sum_of_others(a, &x))).collect();
        self.inverse.clear();
        for &b in &y {
            let scale = u32::from(ORDER - log(source_symbols as u8 ^ b));
            let of_row = reduce(log_sum(b, &x) + log_sum_of_others(b, &y) + scale) + ORDER;
            let cells = x.iter().zip(&of_column).map(|(&a, of_a)| exp(of_row + of_a - log(a ^ b)));
            self.inverse.extend(cells);
        }
    }

    /// Sets `inverse` to the inverse of the coefficients of any rows, by Gauss-Jordan elimination.
    fn invert(
        &mut self,
        kernel: Kernel,
        missing: IndexSet,
        repairs: impl Iterator<Item = Coefficients>,
    ) {
        let size = missing.len();
        // Each row is that of the matrix followed by that of the identity; padded, because kernels
        // are fastest with whole vectors.
        let width = (2 * size).next_multiple_of(64);
        let rows = &mut self.scratch;
        rows.clear();
        grow(rows, width * size);
        for (i, (row, repair)) in rows.chunks_exact_mut(width).zip(repairs).enumerate() {
            row.iter_mut().zip(missing.iter()).for_each(|(cell, index)| *cell = repair[index]);
            row[size + i] = 1;
        }
        for column in 0..size {
            let pivot = (column..size)
                .find(|row| rows[row * width + column] != 0)
                .expect("independent rows leave a pivot in every column");
            // A copy, because it is added to other rows of the same memory.
            let mut leading = [0; 2 * MAX_SOURCE_SYMBOLS];
            let leading = &mut leading[..width];
            leading.copy_from_slice(&rows[pivot * width..][..width]);
            let scale = inverse(leading[column]);
            leading.iter_mut().for_each(|factor| *factor = mul(*factor, scale));
            rows.copy_within(column * width..(column + 1) * width, pivot * width);
            let mut factors = ArrayVec::<u8, MAX_SOURCE_SYMBOLS>::new();
            let mut others = ArrayVec::<&mut [u8], MAX_SOURCE_SYMBOLS>::new();
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                if i == column {
                    row.copy_from_slice(leading);
                } else {
                    factors.push(row[column]);
                    others.push(row);
                }
            }
            kernel.add_products(&mut others, &[leading], &factors);
        }
        self.inverse.clear();
        for row in rows.chunks_exact(width) {
            self.inverse.extend_from_slice(&row[size..2 * size]);
        }
    }

    /// Multiplies the payloads in these slots by `inverse`.
    fn apply(&mut self, kernel: Kernel, slots: IndexSet, slab: &mut Slab) {
        let symbol_size = slab.symbol_size;
        let strip = (SCRATCH / slots.len() / 64 * 64).min(symbol_size);
        grow(&mut self.scratch, SCRATCH);
        for start in (0..symbol_size).step_by(strip) {
            let len = strip.min(symbol_size - start);
            let mut to = ArrayVec::<&mut [u8], MAX_SOURCE_SYMBOLS>::new();
            let mut from = ArrayVec::<&[u8], MAX_SOURCE_SYMBOLS>::new();
            let symbols = slab.symbols_mut().enumerate().filter(|(slot, _)| slots.contains(*slot));
            for ((_, symbol), aside) in symbols.zip(self.scratch.chunks_exact_mut(strip)) {
                let symbol = &mut symbol[start..start + len];
                let aside = &mut aside[..len];
                aside.copy_from_slice(symbol);
                symbol.fill(0);
                to.push(symbol);
                from.push(aside);
            }
            kernel.add_products(&mut to, &from, &self.inverse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;

    /// Returns `size` different numbers from `range`, in random order.
    fn draw(rng: &mut SplitMix64, size: usize, range: std::ops::Range<u32>) -> Vec<u32> {
        let mut all: Vec<u32> = range.collect();
        (0..size).map(|_| all.swap_remove(rng.below(all.len() as u64) as usize)).collect()
    }

    #[test]
    fn the_closed_form_is_what_elimination_finds() {
        let mut rng = SplitMix64::new(1);
        for n in 1..=MAX_SOURCE_SYMBOLS {
            let size = 1 + rng.below(n as u64) as usize;
            let ids = draw(&mut rng, size, n as u32..256);
            let missing: IndexSet =
                draw(&mut rng, size, 0..n as u32).iter().map(|&i| i as usize).collect();
            let mut solver = Solver::default();
            solver.invert_cauchy(n, missing, &ids);
            let closed = std::mem::take(&mut solver.inverse);
            for kernel in Kernel::available() {
                let row = |&id: &u32| Rows::Rlf256.coefficients(id, n);
                solver.invert(kernel, missing, ids.iter().map(row));
                assert_eq!(closed, solver.inverse, "{size} of {n} missing, {kernel}");
            }
        }
    }

    #[test]
    fn an_inverse_times_its_matrix_is_the_identity() {
        let mut rng = SplitMix64::new(2);
        for n in [1, 2, 3, 7, 64, 128] {
            // Random rows: about one set in 250 is not independent.
            let missing = IndexSet::all(n);
            let ids = draw(&mut rng, n, 256..1000);
            let mut solver = Solver::default();
            let row = |&id: &u32| Rows::Rlf256.coefficients(id, n);
            solver.invert(Kernel::fastest(), missing, ids.iter().map(row));
            for (i, cells) in solver.inverse.chunks_exact(n).enumerate() {
                for j in 0..n {
                    let sum = cells
                        .iter()
                        .zip(&ids)
                        .fold(0, |sum, (&factor, &id)| sum ^ mul(factor, row(&id)[j]));
                    assert_eq!(sum, u8::from(i == j));
                }
            }
        }
    }
}
