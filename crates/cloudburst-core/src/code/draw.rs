//! The random generator of an ESI.

use crate::rng::SplitMix64;

/// Separates the streams of the codes: the upper half of the number that seeds the seed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    /// Index sets of the LT codes: "CBLT".
    LtIndexSet = 0x4342_4c54,
    /// Coefficients of RLF-256 beyond the Cauchy rows: "CBRF".
    RlfCoefficients = 0x4342_5246,
}

/// Returns the generator of symbol `id`: SplitMix64 seeded by the first output of SplitMix64 seeded
/// by `stream * 2^32 + id`.
///
/// The intermediate step prevents the streams of neighbouring ids from being shifts of each other.
pub(super) const fn generator(stream: Stream, id: u32) -> SplitMix64 {
    SplitMix64::new(SplitMix64::new((stream as u64) << 32 | id as u64).next_u64())
}
