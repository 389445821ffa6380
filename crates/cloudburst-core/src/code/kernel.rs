//! The inner loops over whole payloads, portable. Kernels for particular instruction sets can
//! stand behind the same three functions.

use super::gf256::PRODUCTS;

/// Adds `from` to `to`. Both have the same length.
pub(super) fn xor_into(to: &mut [u8], from: &[u8]) {
    debug_assert_eq!(to.len(), from.len());
    // Words of eight bytes, so that an unoptimised build is not hopeless; XOR does not care which
    // end of a word comes first.
    let (to_words, to_rest) = to.as_chunks_mut::<8>();
    let (from_words, from_rest) = from.as_chunks::<8>();
    for (to, from) in to_words.iter_mut().zip(from_words) {
        *to = (u64::from_le_bytes(*to) ^ u64::from_le_bytes(*from)).to_le_bytes();
    }
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        *to ^= from;
    }
}

/// Adds `factor` times `from` to `to`, in GF(2^8). Both have the same length.
pub(super) fn mul_add_into(to: &mut [u8], from: &[u8], factor: u8) {
    debug_assert_eq!(to.len(), from.len());
    match factor {
        0 => {}
        1 => xor_into(to, from),
        _ => {
            let products = &PRODUCTS[factor as usize];
            for (to, &from) in to.iter_mut().zip(from) {
                *to ^= products[from as usize];
            }
        }
    }
}

/// Overwrites `to` with the sum of the symbols, each times its factor, in GF(2^8).
///
/// `symbols` holds `factors.len()` symbols of `to.len()` bytes, one after the other.
///
/// By Horner's rule on the bits of the factors: the sum is doubled eight times, and each symbol
/// is added as many times as its factor has bits. That is several times faster than one table
/// look-up a byte.
pub(super) fn dot(to: &mut [u8], symbols: &[u8], factors: &[u8]) {
    let size = to.len();
    debug_assert_eq!(symbols.len(), size * factors.len());
    to.fill(0);
    for (start, strip) in (0..size).step_by(STRIP).zip(to.chunks_mut(STRIP)) {
        for bit in (0..8).rev() {
            if bit != 7 {
                double(strip);
            }
            for (symbol, factor) in symbols.chunks_exact(size).zip(factors) {
                if factor >> bit & 1 == 1 {
                    xor_into(strip, &symbol[start..start + strip.len()]);
                }
            }
        }
    }
}

/// How much of a symbol is worked on at a time: it should stay in the first-level cache.
const STRIP: usize = 2048;

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
        *byte = PRODUCTS[2][*byte as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::gf256::mul;
    use crate::rng::SplitMix64;

    fn random(rng: &mut SplitMix64, len: usize) -> Vec<u8> {
        (0..len).map(|_| rng.next_u64() as u8).collect()
    }

    #[test]
    fn kernels_agree_with_the_field_at_every_length() {
        let mut rng = SplitMix64::new(1);
        for len in (1..40).chain([1407, 1408, 2047, 2048, 2049, 5000]) {
            let (to, from) = (random(&mut rng, len), random(&mut rng, len));
            for factor in [0, 1, 2, 0x8e, 255] {
                let expected: Vec<u8> =
                    to.iter().zip(&from).map(|(&t, &f)| t ^ mul(f, factor)).collect();
                let mut got = to.clone();
                mul_add_into(&mut got, &from, factor);
                assert_eq!(got, expected);
            }
        }
    }

    #[test]
    fn dot_is_a_sum_of_products() {
        let mut rng = SplitMix64::new(2);
        for (n, size) in [(1, 1), (3, 9), (7, 2049), (128, 33)] {
            let (symbols, factors) = (random(&mut rng, n * size), random(&mut rng, n));
            let mut expected = vec![0; size];
            for (symbol, &factor) in symbols.chunks(size).zip(&factors) {
                mul_add_into(&mut expected, symbol, factor);
            }
            let mut got = random(&mut rng, size);
            dot(&mut got, &symbols, &factors);
            assert_eq!(got, expected);
        }
    }
}
