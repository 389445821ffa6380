//! The field GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), in which 2 generates
//! all elements but 0. Addition is XOR.
//!
//! Coefficients are multiplied here, by logarithms. Payloads are multiplied by the kernels, which
//! use each factor as a table or as a bit matrix; both are made here too.

/// Returns the product of two elements.
pub(super) fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { exp(log(a) + log(b)) }
}

/// Returns the inverse of an element that is not 0.
pub(super) fn inverse(a: u8) -> u8 {
    exp(ORDER - log(a))
}

/// The number of different powers of 2.
pub(super) const ORDER: u16 = 255;

/// Returns the logarithm to base 2 of an element that is not 0: 0 to 254.
pub(super) fn log(a: u8) -> u16 {
    debug_assert_ne!(a, 0, "zero has no logarithm");
    LOGS[usize::from(a)].into()
}

/// Returns 2 to a power of up to 3 * 255: the sum of three logarithms needs no reduction.
pub(super) fn exp(power: u16) -> u8 {
    POWERS[usize::from(power)]
}

static POWERS: [u8; 3 * ORDER as usize + 1] = powers();
static LOGS: [u8; 256] = logs();

/// For each factor, its products with 0 to 15, then those with 0, 16, 32, ..., 240: two table
/// look-ups multiply any byte.
pub(super) static NIBBLE_PRODUCTS: [[u8; 32]; 256] = nibble_products();

/// For each factor, the multiplication by it as a bit matrix: byte 7 - i (counted from the least
/// significant) is row i, whose bit j is set if bit j of a byte contributes to bit i of the product.
/// (The operand of `GF2P8AFFINEQB`.)
#[cfg(any(target_arch = "x86_64", test))]
pub(super) static MATRICES: [u64; 256] = matrices();

/// Twice an element.
const fn double(a: u8) -> u8 {
    a << 1 ^ if a & 0x80 != 0 { 0x1d } else { 0 }
}

/// Multiplies as polynomials, by definition.
const fn slow_mul(a: u8, b: u8) -> u8 {
    let mut product = 0;
    let mut power = a;
    let mut left = b;
    while left != 0 {
        if left & 1 == 1 {
            product ^= power;
        }
        power = double(power);
        left >>= 1;
    }
    product
}

const fn powers() -> [u8; 3 * ORDER as usize + 1] {
    let mut table = [1; 3 * ORDER as usize + 1];
    let mut i = 1;
    while i < table.len() {
        table[i] = double(table[i - 1]);
        i += 1;
    }
    table
}

const fn logs() -> [u8; 256] {
    let powers = powers();
    let mut table = [0; 256];
    let mut i = 0;
    while i < ORDER as usize {
        table[powers[i] as usize] = i as u8;
        i += 1;
    }
    table
}

const fn nibble_products() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            table[factor][nibble] = slow_mul(factor as u8, nibble as u8);
            table[factor][16 + nibble] = slow_mul(factor as u8, (nibble as u8) << 4);
            nibble += 1;
        }
        factor += 1;
    }
    table
}

#[cfg(any(target_arch = "x86_64", test))]
const fn matrices() -> [u64; 256] {
    let mut table = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut column = 0;
        while column < 8 {
            let product = slow_mul(factor as u8, 1 << column);
            let mut row = 0;
            while row < 8 {
                let bit = (product >> row & 1) as u64;
                table[factor] |= bit << (8 * (7 - row) + column);
                row += 1;
            }
            column += 1;
        }
        factor += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_follow_from_the_polynomial() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), slow_mul(a, b), "{a} * {b}");
            }
        }
        assert_eq!(mul(0x80, 2), 0x1d);
    }

    #[test]
    fn an_element_times_its_inverse_is_one() {
        assert!((1..=255).all(|a| slow_mul(a, inverse(a)) == 1));
    }

    #[test]
    fn powers_go_around_three_times() {
        for power in 0..ORDER {
            assert_eq!(log(exp(power)), power);
            assert_eq!(exp(power + ORDER), exp(power));
        }
        assert_eq!(exp(3 * ORDER), 1);
    }

    #[test]
    fn tables_and_matrices_multiply() {
        for factor in 0..=255_u8 {
            let table = &NIBBLE_PRODUCTS[usize::from(factor)];
            let matrix = MATRICES[usize::from(factor)];
            for byte in 0..=255_u8 {
                let expected = slow_mul(factor, byte);
                let low = usize::from(byte & 15);
                let high = usize::from(byte >> 4);
                assert_eq!(table[low] ^ table[16 + high], expected);
                let bit = |row: u32| (matrix >> (8 * (7 - row))) as u8 & byte;
                let product: u32 = (0..8).map(|row| (bit(row).count_ones() & 1) << row).sum();
                assert_eq!(product, expected.into());
            }
        }
    }
}
