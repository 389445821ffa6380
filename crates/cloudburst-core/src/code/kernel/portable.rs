//! Plain Rust.

use super::program::{COLUMN, Place, Program};
use crate::code::gf256::NIBBLE_PRODUCTS;

/// The bytes of a payload processed at a time: they should stay in the first-level cache.
const STRIP: usize = 2048;

pub(super) fn add(to: &mut [u8], from: &[&[u8]]) {
    for (start, strip) in strips(to) {
        for from in from {
            add_one(strip, &from[start..start + strip.len()]);
        }
    }
}

/// Uses Horner's rule on the bits of the factors: the sum is doubled seven times, and each source is
/// added once per set bit of its factor. That is several times faster than a table look-up per byte.
pub(super) fn add_products(to: &mut [&mut [u8]], from: &[&[u8]], factors: &[u8]) {
    for (to, factors) in to.iter_mut().zip(factors.chunks_exact(from.len())) {
        for (start, strip) in strips(to) {
            let mut sum = [0; STRIP];
            let sum = &mut sum[..strip.len()];
            for bit in (0..8).rev() {
                if bit != 7 {
                    double(sum);
                }
                for (from, factor) in from.iter().zip(factors) {
                    if factor >> bit & 1 == 1 {
                        add_one(sum, &from[start..start + sum.len()]);
                    }
                }
            }
            add_one(strip, sum);
        }
    }
}

/// Runs a program from column `at` to the end of the payloads.
pub(super) fn run(
    program: &Program,
    payloads: &mut [u8],
    size: usize,
    cells: &mut [u8],
    mut at: usize,
) {
    while at < size {
        let len = COLUMN.min(size - at);
        let payload =
            |index: u8| usize::from(index) * size + at..usize::from(index) * size + at + len;
        let cell = |index: u8| usize::from(index) * COLUMN..usize::from(index) * COLUMN + len;
        for (sum, of_payloads, of_cells) in program.iter() {
            let mut column = [0; COLUMN];
            let column = &mut column[..len];
            if !sum.clear {
                column.copy_from_slice(match sum.to {
                    Place::Payload(index) => &payloads[payload(index)],
                    Place::Cell(index) => &cells[cell(index)],
                });
            }
            of_payloads.iter().for_each(|&index| add_one(column, &payloads[payload(index)]));
            of_cells.iter().for_each(|&index| add_one(column, &cells[cell(index)]));
            let to = match sum.to {
                Place::Payload(index) => &mut payloads[payload(index)],
                Place::Cell(index) => &mut cells[cell(index)],
            };
            to.copy_from_slice(column);
        }
        at += len;
    }
}

/// Returns the strips of a payload, and the offset of each.
fn strips(payload: &mut [u8]) -> impl Iterator<Item = (usize, &mut [u8])> {
    payload.chunks_mut(STRIP).enumerate().map(|(i, strip)| (i * STRIP, strip))
}

/// Adds `from` to `to`. Both have the same length.
fn add_one(to: &mut [u8], from: &[u8]) {
    // Words of eight bytes, for the speed of unoptimised builds; XOR does not depend on the byte
    // order.
    let (to_words, to_rest) = to.as_chunks_mut::<8>();
    let (from_words, from_rest) = from.as_chunks::<8>();
    for (to, from) in to_words.iter_mut().zip(from_words) {
        *to = (u64::from_le_bytes(*to) ^ u64::from_le_bytes(*from)).to_le_bytes();
    }
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        *to ^= from;
    }
}

/// Multiplies every byte by 2.
fn double(bytes: &mut [u8]) {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        let x = u64::from_le_bytes(*word);
        let carry = x >> 7 & LOW;
        // 0x1d times the carry of each byte; no byte overflows into the next.
        let reduce = carry ^ carry << 2 ^ carry << 3 ^ carry << 4;
        *word = ((x & !(LOW << 7)) << 1 ^ reduce).to_le_bytes();
    }
    for byte in rest {
        let table = &NIBBLE_PRODUCTS[2];
        *byte = table[usize::from(*byte & 15)] ^ table[16 + usize::from(*byte >> 4)];
    }
}
