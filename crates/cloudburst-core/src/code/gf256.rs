//! The field GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), in which 2 generates
//! all elements but 0. Addition is XOR.

/// `PRODUCTS[a][b]` is the product of a and b.
pub(super) static PRODUCTS: [[u8; 256]; 256] = products();

/// The product of two elements.
pub(super) fn mul(a: u8, b: u8) -> u8 {
    PRODUCTS[a as usize][b as usize]
}

/// The inverse of an element; 0, which has none, gives 0.
pub(super) const fn inverse(a: u8) -> u8 {
    INVERSES[a as usize]
}

/// Adds `factor` times the row `from` to the row `to`.
pub(super) fn add_row(to: &mut [u8], from: &[u8], factor: u8) {
    let products = &PRODUCTS[factor as usize];
    for (to, &from) in to.iter_mut().zip(from) {
        *to ^= products[from as usize];
    }
}

static INVERSES: [u8; 256] = inverses();

/// Twice an element.
const fn double(a: u8) -> u8 {
    a << 1 ^ if a & 0x80 != 0 { 0x1d } else { 0 }
}

const fn products() -> [[u8; 256]; 256] {
    let mut table = [[0; 256]; 256];
    let mut a = 1;
    while a < 256 {
        let mut power = a as u8;
        let mut b = 1;
        while b < 256 {
            // b is 2^i: power is a * 2^i, and all rows below b are there already.
            let mut low = 0;
            while low < b {
                table[a][b + low] = table[a][low] ^ power;
                low += 1;
            }
            power = double(power);
            b *= 2;
        }
        a += 1;
    }
    table
}

const fn inverses() -> [u8; 256] {
    // 2^i and 2^(255 - i) are inverses.
    let mut powers = [1; 256];
    let mut i = 1;
    while i < 256 {
        powers[i] = double(powers[i - 1]);
        i += 1;
    }
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[powers[i] as usize] = powers[255 - i];
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication as polynomials, from the definition.
    fn slow_mul(a: u8, b: u8) -> u8 {
        let mut product = 0_u16;
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                product ^= u16::from(a) << bit;
            }
        }
        for bit in (8..16).rev() {
            if product >> bit & 1 == 1 {
                product ^= 0x11d << (bit - 8);
            }
        }
        product as u8
    }

    #[test]
    fn products_follow_from_the_polynomial() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), slow_mul(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn an_element_times_its_inverse_is_one() {
        assert!((1..=255).all(|a| mul(a, inverse(a)) == 1));
        assert_eq!(inverse(0), 0);
    }

    #[test]
    fn rows_are_added_with_a_factor() {
        let mut to = [1, 2, 3];
        add_row(&mut to, &[4, 0, 0x80], 2);
        assert_eq!(to, [1 ^ 8, 2, 3 ^ 0x1d]);
    }
}
