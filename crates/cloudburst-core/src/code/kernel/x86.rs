//! Vectors of the x86-64 instruction sets.
//!
//! With GFNI, a product is one instruction, which multiplies every byte by a bit matrix;
//! `GF2P8MULB` does not serve, because its field is another one. Without GFNI, a product is two
//! table look-ups, one for each half of the byte (as in Intel's ISA-L, and Plank, Greenan and
//! Miller, FAST 2013).

#![allow(unsafe_code, reason = "instructions that not every machine has")]

use std::arch::x86_64::*;

use super::program::Program;
use super::tiled::{self, Field, Vector};
use crate::code::gf256::{MATRICES, NIBBLE_PRODUCTS};

/// # Safety
///
/// As for [`tiled::add`], with AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn add_avx512(to: &mut [u8], from: &[&[u8]]) {
    // SAFETY: the caller vouches for all that `tiled::add` asks.
    unsafe { tiled::add::<__m512i, 8, 2>(to, from) }
}

/// # Safety
///
/// As for [`tiled::add`], with AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_avx2(to: &mut [u8], from: &[&[u8]]) {
    // SAFETY: the caller vouches for all that `tiled::add` asks.
    unsafe { tiled::add::<__m256i, 8, 4>(to, from) }
}

/// # Safety
///
/// As for [`tiled::add_products`], with AVX-512 F and BW and GFNI.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
pub(super) unsafe fn add_products_avx512_gfni(
    to: &mut [&mut [u8]],
    from: &[&[u8]],
    factors: &[u8],
) {
    // SAFETY: the caller vouches for all that `tiled::add_products` asks.
    unsafe { tiled::add_products::<Gfni512, 4, 2>(to, from, factors) }
}

/// # Safety
///
/// As for [`tiled::add_products`], with AVX2 and GFNI.
#[target_feature(enable = "avx2,gfni")]
pub(super) unsafe fn add_products_avx2_gfni(to: &mut [&mut [u8]], from: &[&[u8]], factors: &[u8]) {
    // SAFETY: the caller vouches for all that `tiled::add_products` asks.
    unsafe { tiled::add_products::<Gfni256, 2, 1>(to, from, factors) }
}

/// # Safety
///
/// As for [`tiled::add_products`], with AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_products_avx2(to: &mut [&mut [u8]], from: &[&[u8]], factors: &[u8]) {
    // SAFETY: the caller vouches for all that `tiled::add_products` asks.
    unsafe { tiled::add_products::<Shuffle, 1, 1>(to, from, factors) }
}

/// # Safety
///
/// As for [`tiled::run_program`], with AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn run_avx512(
    program: &Program,
    payloads: &mut [u8],
    size: usize,
    cells: &mut [u8],
) -> usize {
    // SAFETY: the caller vouches for all that `tiled::run_program` asks.
    unsafe { tiled::run_program::<__m512i, 4, 2>(program, payloads, size, cells) }
}

/// # Safety
///
/// As for [`tiled::run_program`], with AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run_avx2(
    program: &Program,
    payloads: &mut [u8],
    size: usize,
    cells: &mut [u8],
) -> usize {
    // SAFETY: the caller vouches for all that `tiled::run_program` asks.
    unsafe { tiled::run_program::<__m256i, 8, 4>(program, payloads, size, cells) }
}

// In each of these functions the unsafe block needs what the trait asks of the caller: the
// instruction set, and valid pointers.
impl Vector for __m512i {
    const BYTES: usize = 64;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe { _mm512_xor_si512(self, other) }
    }
}

// The unsafe blocks need what the trait asks of the caller, as above.
impl Vector for __m256i {
    const BYTES: usize = 32;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe { _mm256_xor_si256(self, other) }
    }
}

/// Bit matrices, applied to 64 bytes.
struct Gfni512;

// The unsafe blocks need what the trait asks of the caller: the instruction set.
impl Field for Gfni512 {
    type Vector = __m512i;
    type Source = __m512i;
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn source(source: __m512i) -> __m512i {
        source
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi64(MATRICES[usize::from(factor)] as i64) }
    }

    #[inline(always)]
    unsafe fn product(source: __m512i, factor: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(source, factor) }
    }
}

/// Bit matrices, applied to 32 bytes.
struct Gfni256;

// The unsafe blocks need what the trait asks of the caller, as above.
impl Field for Gfni256 {
    type Vector = __m256i;
    type Source = __m256i;
    type Factor = __m256i;

    #[inline(always)]
    unsafe fn source(source: __m256i) -> __m256i {
        source
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_set1_epi64x(MATRICES[usize::from(factor)] as i64) }
    }

    #[inline(always)]
    unsafe fn product(source: __m256i, factor: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(source, factor) }
    }
}

/// Tables for either half of a byte.
struct Shuffle;

/// The halves of each byte, each in the lower half of a byte; or the products with them.
#[derive(Clone, Copy)]
struct Nibbles {
    low: __m256i,
    high: __m256i,
}

// The unsafe blocks need what the trait asks of the caller, as above.
impl Field for Shuffle {
    type Vector = __m256i;
    type Source = Nibbles;
    type Factor = Nibbles;

    #[inline(always)]
    unsafe fn source(source: __m256i) -> Nibbles {
        // SAFETY: see above.
        unsafe {
            let mask = _mm256_set1_epi8(0x0f);
            Nibbles {
                low: _mm256_and_si256(source, mask),
                high: _mm256_and_si256(_mm256_srli_epi64::<4>(source), mask),
            }
        }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> Nibbles {
        let table = NIBBLE_PRODUCTS[usize::from(factor)].as_ptr().cast::<__m128i>();
        // SAFETY: see above; the table has 32 bytes.
        unsafe {
            Nibbles {
                low: _mm256_broadcastsi128_si256(_mm_loadu_si128(table)),
                high: _mm256_broadcastsi128_si256(_mm_loadu_si128(table.add(1))),
            }
        }
    }

    #[inline(always)]
    unsafe fn product(source: Nibbles, factor: Nibbles) -> __m256i {
        // SAFETY: see above.
        unsafe {
            let low = _mm256_shuffle_epi8(factor.low, source.low);
            let high = _mm256_shuffle_epi8(factor.high, source.high);
            _mm256_xor_si256(low, high)
        }
    }
}
