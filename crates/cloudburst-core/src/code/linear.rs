//! Systematic linear codes over GF(2^8): ids below n are the source symbols, and every other symbol
//! is a linear combination of them. Such a code is a function from the id of a repair symbol to its
//! coefficients; encoding and decoding are the same for all of them.

use arrayvec::ArrayVec;

use super::block::{MAX_SOURCE_SYMBOLS, SourceBlock};
use super::kernel::Kernel;
use super::name::Code;
#[cfg(feature = "raptorq")]
use super::raptorq;
use super::rlf256;

/// The factors of the source symbols: n of them, then zeros up to the maximum.
pub(super) type Coefficients = [u8; MAX_SOURCE_SYMBOLS];

/// The function from ids to coefficients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rows {
    #[default]
    Rlf256,
    #[cfg(feature = "raptorq")]
    RaptorQ,
}

impl Rows {
    /// Returns the function of a code, if it is linear over GF(2^8) and ids determine its symbols.
    pub(super) const fn of(code: Code) -> Option<Self> {
        match code {
            Code::Lt(_) | Code::LtSystematic(_) => None,
            Code::Rlf256 => Some(Self::Rlf256),
            #[cfg(feature = "raptorq")]
            Code::RaptorQ => Some(Self::RaptorQ),
        }
    }

    /// Returns the coefficients of symbol `id` in a block of n source symbols.
    pub(super) fn coefficients(self, id: u32, source_symbols: usize) -> Coefficients {
        let mut row = [0; MAX_SOURCE_SYMBOLS];
        let used = &mut row[..source_symbols];
        match used.get_mut(id as usize) {
            Some(one) => *one = 1,
            None => match self {
                Self::Rlf256 => rlf256::write_coefficients(id, used),
                #[cfg(feature = "raptorq")]
                Self::RaptorQ => raptorq::write_coefficients(id, used),
            },
        }
        row
    }

    /// Returns whether this repair symbol is a row of the Cauchy matrix that `rlf256` describes: any
    /// n of these and of the source symbols are independent.
    pub(super) const fn is_cauchy(self, id: u32) -> bool {
        match self {
            Self::Rlf256 => id < rlf256::FIRST_RANDOM_ID,
            #[cfg(feature = "raptorq")]
            Self::RaptorQ => false,
        }
    }
}

/// Writes the payload of symbol `id`.
pub(super) fn encode(kernel: Kernel, rows: Rows, block: &SourceBlock, id: u32, payload: &mut [u8]) {
    let n = block.shape.source_symbols();
    if (id as usize) < n {
        payload.copy_from_slice(block.symbol(id as usize));
        return;
    }
    let factors = rows.coefficients(id, n);
    let from: ArrayVec<&[u8], MAX_SOURCE_SYMBOLS> = block.symbols().collect();
    payload.fill(0);
    kernel.add_products(&mut [payload], &from, &factors[..n]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ids_are_the_source_symbols() {
        assert_eq!(Rows::Rlf256.coefficients(2, 4)[..5], [0, 0, 1, 0, 0]);
        assert_eq!(Rows::Rlf256.coefficients(4, 4)[..5], [1, 1, 1, 1, 0]);
    }
}
