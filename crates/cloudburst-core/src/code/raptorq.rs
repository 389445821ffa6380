//! RaptorQ (RFC 6330): the coefficients of its symbols, from the crate `raptorq`.
//!
//! A block is one source block of RFC 6330, number 0, of K = n symbols of T bytes, in one
//! sub-block, with symbols aligned to 1 byte. Ids below n are the source symbols. (`docs/spec.md`,
//! 5.6.) RaptorQ is linear over the same field as RLF-256, so both share encoding and decoding, given
//! the row of coefficients of each id. The library computes these rows, by encoding the identity
//! matrix.
//!
//! None of the library's assertions can fail, whatever a peer sends: they depend on n, which is at
//! most 128 here and may be up to 56,403, and on the encoding symbol id, which is below 2^24 here, as
//! required. For every n up to 128 its additions to such an id (`rand`, `intermediate_tuple`) do not
//! overflow, as the test `no_symbol_id_overflows` checks. Payloads do not reach the library.

use std::sync::OnceLock;

use raptorq::{ObjectTransmissionInformation, SourceBlockEncoder, SourceBlockEncodingPlan};

use super::block::MAX_SOURCE_SYMBOLS;

/// Every block is a source block by itself.
const SOURCE_BLOCK_NUMBER: u8 = 0;

/// RFC 6330 has 24 bits for an encoding symbol id.
const ENCODING_SYMBOL_IDS: u32 = 1 << 24;

/// Writes the n coefficients of repair symbol `id`, which is n or more.
pub(super) fn write_coefficients(id: u32, coefficients: &mut [u8]) {
    let n = coefficients.len();
    let repair = encoding_symbol_id(id, n) - n as u32;
    for packet in identity(n).repair_packets(repair, 1) {
        coefficients.copy_from_slice(packet.data());
    }
}

/// Returns the encoding symbol id of a repair symbol. From 2^24 on, they restart at the first repair.
fn encoding_symbol_id(id: u32, source_symbols: usize) -> u32 {
    let n = source_symbols as u32;
    n + (id - n) % (ENCODING_SYMBOL_IDS - n)
}

/// Returns the encoder of the identity matrix, for which the payload of a symbol is its coefficients.
/// Each is made once per process: that takes longer than encoding a block.
fn identity(source_symbols: usize) -> &'static SourceBlockEncoder {
    static ENCODERS: [OnceLock<SourceBlockEncoder>; MAX_SOURCE_SYMBOLS] =
        [const { OnceLock::new() }; MAX_SOURCE_SYMBOLS];
    ENCODERS[source_symbols - 1].get_or_init(|| {
        let n = source_symbols;
        let bytes: Vec<u8> = (0..n * n).map(|i| u8::from(i % (n + 1) == 0)).collect();
        let information = ObjectTransmissionInformation::new(bytes.len() as u64, n as u16, 1, 1, 1);
        // An explicit plan, since the library would cache those that it makes.
        let plan = SourceBlockEncodingPlan::generate(n as u16);
        SourceBlockEncoder::with_encoding_plan(SOURCE_BLOCK_NUMBER, &information, &bytes, &plan)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_beyond_24_bits_begin_again_at_the_first_repair_symbol() {
        for n in [1, 64, 128] {
            let last = ENCODING_SYMBOL_IDS - 1;
            assert_eq!([128, 200, last].map(|id| encoding_symbol_id(id, n)), [128, 200, last]);
            let first = n as u32;
            assert_eq!(encoding_symbol_id(last + 1, n), first);
            assert_eq!(encoding_symbol_id(last + 2, n), first + 1);
            assert!((first..=last).contains(&encoding_symbol_id(u32::MAX, n)));
        }
    }

    /// K' and its systematic index J(K') in table 2 of RFC 6330, up to the K' of 128.
    const SYSTEMATIC_INDICES: [(u32, u32); 28] = [
        (10, 254),
        (12, 630),
        (18, 682),
        (20, 293),
        (26, 80),
        (30, 566),
        (32, 860),
        (36, 267),
        (42, 822),
        (46, 506),
        (48, 589),
        (49, 87),
        (55, 520),
        (60, 159),
        (62, 235),
        (69, 157),
        (75, 502),
        (84, 334),
        (88, 583),
        (91, 66),
        (95, 352),
        (97, 365),
        (101, 562),
        (114, 5),
        (119, 603),
        (125, 721),
        (127, 28),
        (138, 660),
    ];

    /// `rand` adds up to 2 to y = B + X A modulo 2^32 (RFC 6330, 5.3.5.4), in 32 bits: of all
    /// internal symbol ids X, only those of the last two y would overflow. None is in use.
    #[test]
    fn no_symbol_id_overflows() {
        for n in 1..=MAX_SOURCE_SYMBOLS as u32 {
            let extended = raptorq::extended_source_block_symbols(n);
            let (_, j) = *SYSTEMATIC_INDICES.iter().find(|&&(k, _)| k == extended).unwrap();
            let a = (53_591 + 997 * j) | 1;
            let b = 10_267 * (j + 1);
            // Newton's method: each step doubles the number of correct bits, starting at 3.
            let inverse =
                (0..4).fold(a, |x, _| x.wrapping_mul(2_u32.wrapping_sub(a.wrapping_mul(x))));
            assert_eq!(a.wrapping_mul(inverse), 1);
            for y in [u32::MAX - 1, u32::MAX] {
                let x = y.wrapping_sub(b).wrapping_mul(inverse);
                assert!(x >= ENCODING_SYMBOL_IDS + extended - n, "n = {n}: {x}");
            }
        }
    }
}
