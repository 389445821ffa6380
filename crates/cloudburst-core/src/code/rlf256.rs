//! RLF-256: a rateless systematic code over GF(2^8).
//!
//! Ids below n are the source symbols. Ids from n to 255 are rows of a Cauchy matrix whose columns
//! are scaled so that the first row is all ones. Any n of the first 256 symbols are therefore
//! independent (a maximum distance separable code), and the first repair symbol is a plain sum. From
//! id 256, the coefficients are random.

use super::draw::{RLF_COEFFICIENTS, generator};
use super::gf256::{ORDER, exp, log};

/// The first id whose coefficients are random, and not a row of the Cauchy matrix.
pub(super) const FIRST_RANDOM_ID: u32 = 256;

/// Writes the n coefficients of repair symbol `id`, which is n or more.
pub(super) fn write_coefficients(id: u32, coefficients: &mut [u8]) {
    if let Ok(x) = u8::try_from(id) {
        // x is at least n, and y below n: neither sum is zero.
        let n = coefficients.len() as u8;
        // The Cauchy coefficient 1 / (x + y), times n + y. Scaling columns makes the row of id n
        // all ones and leaves every square submatrix invertible, so that most losses cost XORs
        // alone.
        let scaled = |y| exp(log(n ^ y) + ORDER - log(x ^ y));
        coefficients.iter_mut().zip(0..).for_each(|(factor, y)| *factor = scaled(y));
    } else {
        let mut rng = generator(RLF_COEFFICIENTS, id);
        // Never zero: each source symbol takes part in each repair.
        coefficients.fill_with(|| 1 + rng.below(255) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::block::MAX_SOURCE_SYMBOLS;
    use crate::code::gf256::{inverse, mul};

    fn coefficients<const N: usize>(id: u32) -> [u8; N] {
        let mut row = [0; N];
        write_coefficients(id, &mut row);
        row
    }

    #[test]
    fn the_first_repair_is_a_plain_sum() {
        for n in 1..=MAX_SOURCE_SYMBOLS {
            let mut row = vec![0; n];
            write_coefficients(n as u32, &mut row);
            assert!(row.iter().all(|&factor| factor == 1));
        }
    }

    #[test]
    fn cauchy_rows_are_inverses_of_sums_times_the_columns_scale() {
        let scaled = |n: u8, x: u8, y: u8| mul(n ^ y, inverse(x ^ y));
        assert_eq!(coefficients(5), [0, 1, 2, 3].map(|y| scaled(4, 5, y)));
        let row: [u8; 128] = coefficients(255);
        assert_eq!((row[0], row[127]), (scaled(128, 255, 0), scaled(128, 255, 127)));
    }

    #[test]
    fn no_coefficient_of_a_random_row_is_zero() {
        for id in [256, 257, u32::MAX] {
            assert!(coefficients::<128>(id).iter().all(|&factor| factor != 0));
        }
    }
}
