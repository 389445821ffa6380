//! The soliton distributions as tables of integers, so that they are equal on every platform.
//!
//! Numbers are fixed point with 32 fractional bits; every division and shift rounds down. An
//! entry of a table is the cumulative weight of all degrees up to its own; the weights need not
//! sum to one, since the sampler draws below their sum.

use std::sync::OnceLock;

use super::block::MAX_SOURCE_SYMBOLS;

/// The tables made so far, by n: each is made once.
type Tables = [OnceLock<Box<[u64]>>; MAX_SOURCE_SYMBOLS + 1];

/// One, in fixed point.
const ONE: u64 = 1 << 32;

/// The natural logarithm of 2, rounded down.
const LN_2: u64 = 2_977_044_471;

/// The ideal soliton: 1/n for degree 1, 1/(k (k - 1)) for degree k.
pub(super) fn ideal(n: usize) -> &'static [u64] {
    static TABLES: Tables = [const { OnceLock::new() }; MAX_SOURCE_SYMBOLS + 1];
    TABLES[n].get_or_init(|| cumulative((1..=n as u64).map(|k| ideal_weight(n as u64, k))))
}

/// The robust soliton with c = 1/10 and delta = 1/2.
///
/// With R = c ln(n / delta) sqrt(n) and the spike at K = n / R (rounded down, from 1 to n), the
/// weight of degree k grows by R / (k n) below K and by R ln(R / delta) / n, if that is positive,
/// at K.
pub(super) fn robust(n: usize) -> &'static [u64] {
    static TABLES: Tables = [const { OnceLock::new() }; MAX_SOURCE_SYMBOLS + 1];
    TABLES[n].get_or_init(|| robust_weights(n as u64))
}

fn robust_weights(n: u64) -> Box<[u64]> {
    let root = (u128::from(n) << 64).isqrt() as u64;
    let r = times(ln(2 * n * ONE), root) / 10;
    let spike = (n * ONE / r).clamp(1, n);
    cumulative((1..=n).map(|k| {
        let extra = match k.cmp(&spike) {
            std::cmp::Ordering::Less => r / (k * n),
            std::cmp::Ordering::Equal => times(r, ln(2 * r)) / n,
            std::cmp::Ordering::Greater => 0,
        };
        ideal_weight(n, k) + extra
    }))
}

fn ideal_weight(n: u64, k: u64) -> u64 {
    if k == 1 { ONE / n } else { ONE / (k * (k - 1)) }
}

fn cumulative(weights: impl Iterator<Item = u64>) -> Box<[u64]> {
    weights
        .scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect()
}

/// The product of two fixed-point numbers.
fn times(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 32) as u64
}

/// Returns the natural logarithm of a fixed-point number; 0 for numbers below one.
fn ln(x: u64) -> u64 {
    times(log2(x), LN_2)
}

/// The binary logarithm, bit by bit: squaring a number in 1..2 doubles its logarithm, whose
/// integer part is the next bit.
fn log2(x: u64) -> u64 {
    if x < ONE {
        return 0;
    }
    let shift = x.leading_zeros();
    let mut result = u64::from(31 - shift);
    // In 1..2, with 63 fractional bits.
    let mut mantissa = x << shift;
    for _ in 0..32 {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        let carry = (square >> 64) as u64;
        mantissa = (square >> carry) as u64;
        result = result << 1 | carry;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_agree_with_floating_point() {
        for x in [1.0, 1.5, 2.0, 3.0, 7.75, 128.0, 256.0, 1e6] {
            let ours = ln((x * ONE as f64) as u64) as f64 / ONE as f64;
            assert!((ours - f64::ln(x)).abs() < 1e-8, "{x}: {ours}");
        }
        assert_eq!(log2(ONE), 0);
        assert_eq!(log2(8 * ONE), 3 * ONE);
        assert_eq!(log2(ONE - 1), 0);
    }

    #[test]
    fn ideal_weights_add_up_to_one() {
        for n in 1..=128 {
            let table = ideal(n);
            assert_eq!(table.len(), n);
            assert!(table[n - 1].abs_diff(ONE) <= n as u64);
        }
        assert_eq!(ideal(4), [ONE / 4, ONE * 3 / 4, 3_937_053_354, 4_294_967_295]);
    }

    #[test]
    fn the_robust_spike_is_where_luby_puts_it() {
        // n = 64: R = 0.1 * ln 128 * 8 = 3.8816, K = 16, spike R ln(2 R) / n = 0.12431.
        let table = robust(64);
        let weight = |k: usize| (table[k - 1] - table[k - 2]) as f64 / ONE as f64;
        assert!((weight(16) - (1.0 / 240.0 + 0.124_31)).abs() < 1e-4, "{}", weight(16));
        assert!((weight(2) - (0.5 + 3.8816 / 128.0)).abs() < 1e-4, "{}", weight(2));
        assert!((weight(17) - 1.0 / 272.0).abs() < 1e-6);
    }

    #[test]
    fn every_table_grows() {
        for n in 1..=128 {
            for table in [ideal(n), robust(n)] {
                assert!(table[0] > 0);
                assert!(table.windows(2).all(|pair| pair[0] < pair[1]), "n = {n}");
            }
        }
    }
}
