//! The random generator of an ESI.

use crate::rng::SplitMix64;

/// The stream of the index sets of the LT codes: "CBLT".
pub(super) const LT_INDEX_SETS: u32 = 0x4342_4c54;
/// The stream of the coefficients of RLF-256 beyond the Cauchy rows: "CBRF".
pub(super) const RLF_COEFFICIENTS: u32 = 0x4342_5246;

/// Returns the generator of symbol `id`: SplitMix64 seeded by the first output of SplitMix64 seeded
/// by `stream * 2^32 + id`.
///
/// The intermediate step prevents the streams of neighbouring ids from being shifts of each other.
pub(super) const fn generator(stream: u32, id: u32) -> SplitMix64 {
    SplitMix64::new(SplitMix64::new((stream as u64) << 32 | id as u64).next_u64())
}
