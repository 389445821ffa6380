//! Vectors of NEON. A product is two table look-ups, one for each half of the byte.

#![allow(unsafe_code, reason = "instructions that not every machine has")]

use std::arch::aarch64::*;

use super::program::Program;
use super::tiled::{self, Field, Vector};
use crate::code::gf256::NIBBLE_PRODUCTS;

/// # Safety
///
/// As for [`tiled::add`], with NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn add(to: &mut [u8], from: &[&[u8]]) {
    // SAFETY: the caller vouches for all that `tiled::add` asks.
    unsafe { tiled::add::<uint8x16_t, 8, 4>(to, from) }
}

/// # Safety
///
/// As for [`tiled::add_products`], with NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn add_products(to: &mut [&mut [u8]], from: &[&[u8]], factors: &[u8]) {
    // SAFETY: the caller vouches for all that `tiled::add_products` asks.
    unsafe { tiled::add_products::<Shuffle, 2, 1>(to, from, factors) }
}

/// # Safety
///
/// As for [`tiled::run_program`], with NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn run(
    program: &Program,
    payloads: &mut [u8],
    size: usize,
    cells: &mut [u8],
) -> usize {
    // SAFETY: the caller vouches for all that `tiled::run_program` asks.
    unsafe { tiled::run_program::<uint8x16_t, 8, 4>(program, payloads, size, cells) }
}

// In each of these functions the unsafe block needs what the trait asks of the caller: the
// instruction set, and valid pointers.
impl Vector for uint8x16_t {
    const BYTES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        unsafe { vdupq_n_u8(0) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe { veorq_u8(self, other) }
    }
}

/// Tables for either half of a byte.
struct Shuffle;

/// The halves of each byte, each in the lower half of a byte; or the products with them.
#[derive(Clone, Copy)]
struct Nibbles {
    low: uint8x16_t,
    high: uint8x16_t,
}

// The unsafe blocks need what the trait asks of the caller: the instruction set.
impl Field for Shuffle {
    type Vector = uint8x16_t;
    type Source = Nibbles;
    type Factor = Nibbles;

    #[inline(always)]
    unsafe fn source(source: uint8x16_t) -> Nibbles {
        // SAFETY: see above.
        unsafe {
            Nibbles { low: vandq_u8(source, vdupq_n_u8(0x0f)), high: vshrq_n_u8::<4>(source) }
        }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> Nibbles {
        let table = NIBBLE_PRODUCTS[usize::from(factor)].as_ptr();
        // SAFETY: see above; the table has 32 bytes.
        unsafe { Nibbles { low: vld1q_u8(table), high: vld1q_u8(table.add(16)) } }
    }

    #[inline(always)]
    unsafe fn product(source: Nibbles, factor: Nibbles) -> uint8x16_t {
        // SAFETY: see above.
        unsafe {
            let low = vqtbl1q_u8(factor.low, source.low);
            let high = vqtbl1q_u8(factor.high, source.high);
            veorq_u8(low, high)
        }
    }
}
