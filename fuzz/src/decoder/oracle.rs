//! The expected results of a decoder, by linear algebra from the definition: slow, and a few lines.

use bytes::Bytes;
use cloudburst_core::code::{BlockShape, Code, Encoder};
use std::sync::LazyLock;

/// All products in GF(2^8), from the definition.
static PRODUCTS: LazyLock<Vec<[u8; 256]>> = LazyLock::new(|| {
    (0..=255).map(|a| core::array::from_fn(|b| multiply_by_definition(a, b as u8))).collect()
});

static INVERSES: LazyLock<[u8; 256]> = LazyLock::new(|| {
    core::array::from_fn(|a| (0..=255).find(|&b| multiply(a as u8, b) == 1).unwrap_or(0))
});

/// The coefficients of the source symbols whose sum a symbol is.
pub(super) type Row = Vec<u8>;

/// Knows the coefficients of each symbol of one block.
pub(super) struct Rows {
    code: Code,
    /// Encodes the identity matrix, so that a symbol's payload is its row.
    identity: Encoder,
}

impl Rows {
    pub(super) fn new(code: Code, n: usize) -> Self {
        let identity: Vec<u8> = (0..n * n).map(|i| u8::from(i / n == i % n)).collect();
        let shape = BlockShape::new(n, n).expect("1 <= n <= 128");
        let identity =
            Encoder::new(code, shape, Bytes::from(identity)).expect("n rows of n bytes each");
        Self { code, identity }
    }

    /// The row of a truthful symbol.
    pub(super) fn of_id(&self, id: u32) -> Row {
        let n = self.identity.shape().source_symbols();
        let mut row = vec![0; n];
        let mut index_set = vec![0; self.code.index_set_len(n)];
        self.identity.encode(id, &mut index_set, &mut row);
        if !index_set.is_empty() {
            assert_eq!(row, self.of_set(&index_set), "index set and payload of symbol {id}");
        }
        row
    }

    /// The row of a symbol as a decoder must take it: an index set overrides the ESI.
    pub(super) fn of(&self, id: u32, index_set: &[u8]) -> Row {
        if index_set.is_empty() { self.of_id(id) } else { self.of_set(index_set) }
    }

    fn of_set(&self, index_set: &[u8]) -> Row {
        let n = self.identity.shape().source_symbols();
        (0..n).map(|i| index_set[i / 8] >> (7 - i % 8) & 1).collect()
    }
}

/// The rows received, in echelon form.
pub(super) struct Rank {
    /// Entry i is a row whose first nonzero coefficient is a 1 at i.
    pivots: Vec<Option<Row>>,
    rank: usize,
}

impl Rank {
    pub(super) fn new(n: usize) -> Self {
        Self { pivots: vec![None; n], rank: 0 }
    }

    pub(super) const fn get(&self) -> usize {
        self.rank
    }

    /// Adds a row. Returns whether it raised the rank.
    pub(super) fn insert(&mut self, mut row: Row) -> bool {
        for at in 0..row.len() {
            let factor = row[at];
            if factor == 0 {
                continue;
            }
            match &self.pivots[at] {
                Some(pivot) => add(&mut row, pivot, factor),
                None => {
                    let mut pivot = vec![0; row.len()];
                    add(&mut pivot, &row, INVERSES[usize::from(factor)]);
                    self.pivots[at] = Some(pivot);
                    self.rank += 1;
                    return true;
                }
            }
        }
        false
    }
}

/// The payload of `row` in a block.
pub(super) fn combine(row: &[u8], block: &[u8]) -> Vec<u8> {
    let size = block.len() / row.len();
    let mut out = vec![0; size];
    for (&factor, symbol) in row.iter().zip(block.chunks(size)) {
        add(&mut out, symbol, factor);
    }
    out
}

fn add(to: &mut [u8], from: &[u8], factor: u8) {
    match factor {
        0 => {}
        1 => to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from),
        _ => {
            let products = &PRODUCTS[usize::from(factor)];
            to.iter_mut().zip(from).for_each(|(to, from)| *to ^= products[usize::from(*from)]);
        }
    }
}

fn multiply(a: u8, b: u8) -> u8 {
    PRODUCTS[usize::from(a)][usize::from(b)]
}

/// Polynomials over GF(2), modulo x^8 + x^4 + x^3 + x^2 + 1.
fn multiply_by_definition(a: u8, b: u8) -> u8 {
    let mut product =
        (0..8).filter(|bit| b >> bit & 1 != 0).fold(0, |sum, bit| sum ^ u16::from(a) << bit);
    for bit in (8..15).rev() {
        if product >> bit & 1 != 0 {
            product ^= 0x11d << (bit - 8);
        }
    }
    product as u8
}
