//! RLF-256: a rateless systematic code over GF(2^8).
//!
//! Ids below n are the source symbols. Ids from n to 255 are rows of a Cauchy matrix whose columns
//! are scaled so that the first row is all ones: any n of the first 256 symbols are independent, a
//! maximum distance separable code, and the first repair symbol is a plain sum. From 256 on, the
//! coefficients are random.

use arrayvec::ArrayVec;

use super::block::{MAX_SOURCE_SYMBOLS, SourceBlock};
use super::draw::{Stream, generator};
use super::gf256::{ORDER, exp, log};
use super::kernel::Kernel;

/// The first id whose coefficients are random.
const FIRST_RANDOM_ID: u32 = 256;

/// Whether the coefficients of this repair symbol are a row of the Cauchy matrix.
pub(super) const fn is_cauchy(id: u32) -> bool {
    id < FIRST_RANDOM_ID
}

/// What each source symbol is multiplied by: n factors, and zeros up to the most there can be.
pub(super) type Coefficients = [u8; MAX_SOURCE_SYMBOLS];

/// The coefficients of symbol `id` in a block of n source symbols.
pub(super) fn coefficients(id: u32, source_symbols: usize) -> Coefficients {
    let mut row = [0; MAX_SOURCE_SYMBOLS];
    let used = &mut row[..source_symbols];
    if let Some(one) = used.get_mut(id as usize) {
        *one = 1;
    } else if let Ok(x) = u8::try_from(id) {
        // x is at least n, and y below n: neither sum is zero.
        let n = source_symbols as u8;
        let scaled = |y| exp(log(n ^ y) + ORDER - log(x ^ y));
        used.iter_mut().zip(0..).for_each(|(factor, y)| *factor = scaled(y));
    } else {
        let mut rng = generator(Stream::RlfCoefficients, id);
        used.fill_with(|| 1 + rng.below(255) as u8);
    }
    row
}

/// Writes the payload of symbol `id`.
pub(super) fn encode(kernel: Kernel, block: &SourceBlock, id: u32, payload: &mut [u8]) {
    let n = block.shape().source_symbols();
    if (id as usize) < n {
        block.copy_symbol(id as usize, payload);
        return;
    }
    let factors = coefficients(id, n);
    let (whole, rest) = block.whole_symbols();
    let whole = whole.chunks_exact(payload.len());
    // The last symbol that holds any data may end early: where it does, one source less counts.
    payload.fill(0);
    let (head, tail) = payload.split_at_mut(rest.len());
    let mut from: ArrayVec<&[u8], MAX_SOURCE_SYMBOLS> =
        whole.clone().map(|symbol| &symbol[rest.len()..]).collect();
    kernel.add_products(&mut [tail], &from, &factors[..from.len()]);
    if !rest.is_empty() {
        from.clear();
        from.extend(whole.map(|symbol| &symbol[..rest.len()]).chain([rest]));
        kernel.add_products(&mut [head], &from, &factors[..from.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::gf256::{inverse, mul};

    #[test]
    fn the_first_ids_are_the_source_symbols() {
        assert_eq!(coefficients(2, 4)[..4], [0, 0, 1, 0]);
    }

    #[test]
    fn the_first_repair_is_a_plain_sum() {
        for n in 1..=MAX_SOURCE_SYMBOLS {
            let row = coefficients(n as u32, n);
            assert!(row[..n].iter().all(|&factor| factor == 1));
            assert!(row[n..].iter().all(|&factor| factor == 0));
        }
    }

    #[test]
    fn cauchy_rows_are_inverses_of_sums_times_the_columns_scale() {
        let scaled = |n: u8, x: u8, y: u8| mul(n ^ y, inverse(x ^ y));
        assert_eq!(coefficients(5, 4)[..4], [0, 1, 2, 3].map(|y| scaled(4, 5, y)));
        let row = coefficients(255, 128);
        assert_eq!((row[0], row[127]), (scaled(128, 255, 0), scaled(128, 255, 127)));
    }

    #[test]
    fn no_coefficient_of_a_random_row_is_zero() {
        for id in [256, 257, u32::MAX] {
            assert!(coefficients(id, 128).iter().all(|&factor| factor != 0));
        }
    }
}
