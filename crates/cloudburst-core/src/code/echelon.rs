//! The rank of arbitrary rows of coefficients.

use super::gf256::{inverse, mul};
use super::kernel::Kernel;
use super::linear::Coefficients;

/// Rows of coefficients in echelon form.
#[derive(Debug, Default)]
pub(super) struct Echelon {
    /// The first nonzero coefficient of row i is a 1 in column i. Empty until [`begin`](Self::begin).
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    Absent,
    /// All zeros but for the leading 1.
    Unit,
    Full(Coefficients),
}

impl Echelon {
    /// Bytes of a row.
    pub(super) const MEMORY_PER_ROW: usize = size_of::<Row>();

    /// Returns the bytes allocated for rows.
    pub(super) fn memory(&self) -> usize {
        self.rows.capacity() * Self::MEMORY_PER_ROW
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Starts with these rows, for blocks of n source symbols. Rows of source symbols are cheap if
    /// they come first.
    pub(super) fn begin(
        &mut self,
        kernel: Kernel,
        n: usize,
        rows: impl Iterator<Item = Coefficients>,
    ) {
        self.rows.reserve_exact(n);
        self.rows.resize(n, Row::Absent);
        for row in rows {
            self.insert(kernel, row);
        }
    }

    /// Discards all rows.
    pub(super) fn end(&mut self) {
        self.rows.clear();
    }

    /// Adds a row; returns whether it raised the rank.
    pub(super) fn insert(&mut self, kernel: Kernel, mut new: Coefficients) -> bool {
        for (column, row) in self.rows.iter_mut().enumerate() {
            let factor = new[column];
            if factor == 0 {
                continue;
            }
            match row {
                // A source symbol, as most rows are: it cancels its column without any product.
                Row::Unit => new[column] = 0,
                Row::Full(row) => kernel.add_products(&mut [&mut new], &[row], &[factor]),
                Row::Absent => {
                    let scale = inverse(factor);
                    new.iter_mut().for_each(|factor| *factor = mul(*factor, scale));
                    let unit = new.iter().filter(|&&factor| factor != 0).count() == 1;
                    *row = if unit { Row::Unit } else { Row::Full(new) };
                    return true;
                }
            }
        }
        false
    }
}
