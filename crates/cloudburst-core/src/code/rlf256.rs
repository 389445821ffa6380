//! RLF-256: a rateless systematic code over GF(2^8).
//!
//! Ids below n are the source symbols. Ids from n to 255 are rows of a Cauchy matrix, so that any
//! n of the first 256 symbols are independent: a maximum distance separable code. From 256 on,
//! the coefficients are random.

use super::block::{MAX_SOURCE_SYMBOLS, SourceBlock};
use super::draw::{Stream, generator};
use super::gf256::inverse;
use super::kernel;

/// The first id whose coefficients are random.
pub(super) const FIRST_RANDOM_ID: u32 = 256;

/// What each source symbol is multiplied by.
#[derive(Clone, Debug)]
pub(super) struct Coefficients {
    row: [u8; MAX_SOURCE_SYMBOLS],
    len: usize,
}

impl Coefficients {
    /// The coefficients of symbol `id` in a block of n source symbols.
    pub(super) fn new(id: u32, source_symbols: usize) -> Self {
        let mut row = [0; MAX_SOURCE_SYMBOLS];
        let used = &mut row[..source_symbols];
        if let Some(one) = used.get_mut(id as usize) {
            *one = 1;
        } else if let Ok(x) = u8::try_from(id) {
            // x is at least n, and y below n, so that they differ.
            used.iter_mut().zip(0..).for_each(|(c, y)| *c = inverse(x ^ y));
        } else {
            let mut rng = generator(Stream::RlfCoefficients, id);
            used.fill_with(|| 1 + rng.below(255) as u8);
        }
        Self { row, len: source_symbols }
    }
}

impl std::ops::Deref for Coefficients {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.row[..self.len]
    }
}

impl std::ops::DerefMut for Coefficients {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.row[..self.len]
    }
}

/// Writes the payload of symbol `id`.
pub(super) fn encode(block: &SourceBlock, id: u32, payload: &mut [u8]) {
    let n = block.shape().source_symbols();
    if (id as usize) < n {
        block.copy_symbol(id as usize, payload);
        return;
    }
    let coefficients = Coefficients::new(id, n);
    let (whole, rest) = block.whole_symbols();
    let (of_whole, of_rest) = coefficients.split_at(whole.len() / payload.len());
    kernel::dot(payload, whole, of_whole);
    if let Some(&factor) = of_rest.first() {
        kernel::mul_add_into(&mut payload[..rest.len()], rest, factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ids_are_the_source_symbols() {
        assert_eq!(Coefficients::new(2, 4)[..], [0, 0, 1, 0]);
    }

    #[test]
    fn cauchy_rows_are_inverses_of_sums() {
        let row = Coefficients::new(4, 4);
        assert_eq!(row[..], [4, 5, 6, 7].map(inverse));
        let row = Coefficients::new(255, 128);
        assert_eq!((row[0], row[127]), (inverse(255), inverse(128)));
    }

    #[test]
    fn no_coefficient_of_a_random_row_is_zero() {
        for id in [256, 257, u32::MAX] {
            assert!(Coefficients::new(id, 128).iter().all(|&c| c != 0));
        }
    }
}
