//! A sequence of sums of payloads: solving an LT block amounts to one.

/// The bytes of a cell.
// 128 payloads of 256 bytes, and as many cells, fit into the second-level cache.
pub(super) const COLUMN: usize = 256;

/// A list of sums to compute in order, over the payloads of a block and over *cells*, which hold
/// intermediate results.
///
/// The whole program runs for a narrow column of the payloads before the next, so that a cell holds
/// one column only, and the working set of a column stays in the first- or second-level cache,
/// however long the payloads are.
#[derive(Debug, Default)]
pub(in crate::code) struct Program {
    pub(super) sums: Vec<Sum>,
    /// For each sum, the payloads and then the cells that are added.
    pub(super) terms: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) to: Place,
    /// Whether it replaces the contents of its place; otherwise it is added to them.
    pub(super) clear: bool,
    pub(super) payloads: u8,
    pub(super) cells: u8,
}

/// A payload, or a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::code) enum Place {
    Payload(u8),
    Cell(u8),
}

impl Program {
    pub(in crate::code) fn clear(&mut self) {
        self.sums.clear();
        self.terms.clear();
    }

    /// Adds payloads and cells to a place.
    pub(in crate::code) fn add(
        &mut self,
        to: Place,
        payloads: impl IntoIterator<Item = u8>,
        cells: impl IntoIterator<Item = u8>,
    ) {
        self.push(to, false, payloads, cells);
    }

    /// Sets a place to the sum of payloads and cells.
    pub(in crate::code) fn set(
        &mut self,
        to: Place,
        payloads: impl IntoIterator<Item = u8>,
        cells: impl IntoIterator<Item = u8>,
    ) {
        self.push(to, true, payloads, cells);
    }

    /// Returns the XORs of one payload into another that it takes to run; copies do not count.
    pub(in crate::code) fn xors(&self) -> u64 {
        self.sums
            .iter()
            .map(|sum| {
                let terms = u64::from(sum.payloads) + u64::from(sum.cells);
                terms.saturating_sub(sum.clear.into())
            })
            .sum()
    }

    fn push(
        &mut self,
        to: Place,
        clear: bool,
        payloads: impl IntoIterator<Item = u8>,
        cells: impl IntoIterator<Item = u8>,
    ) {
        let start = self.terms.len();
        self.terms.extend(payloads);
        let middle = self.terms.len();
        self.terms.extend(cells);
        let end = self.terms.len();
        if end > start || clear {
            debug_assert!(middle - start < 256 && end - middle < 256, "terms are counted in bytes");
            let payloads = (middle - start) as u8;
            let cells = (end - middle) as u8;
            self.sums.push(Sum { to, clear, payloads, cells });
        }
    }

    /// Returns the sums with their terms: payloads, cells.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Sum, &[u8], &[u8])> {
        let mut left = &self.terms[..];
        self.sums.iter().map(move |&sum| {
            let (payloads, rest) = left.split_at(sum.payloads.into());
            let (cells, rest) = rest.split_at(sum.cells.into());
            left = rest;
            (sum, payloads, cells)
        })
    }

    /// Returns the number of payloads and of cells that must exist.
    pub(super) fn extent(&self) -> (usize, usize) {
        let mut payloads = 0;
        let mut cells = 0;
        for (sum, of_payloads, of_cells) in self.iter() {
            let (payload, cell) = match sum.to {
                Place::Payload(index) => (Some(index), None),
                Place::Cell(index) => (None, Some(index)),
            };
            let past = |all: &[u8], one: Option<u8>| {
                all.iter().copied().chain(one).map(|index| usize::from(index) + 1).max()
            };
            payloads = payloads.max(past(of_payloads, payload).unwrap_or(0));
            cells = cells.max(past(of_cells, cell).unwrap_or(0));
        }
        (payloads, cells)
    }
}
