//! The generators of the protocol.
//!
//! [`SplitMix64`] draws coefficients and index sets. It is part of the wire contract
//! (`docs/spec.md`), so its stream must never change. [`Seed`] is the endpoint's secret, from which
//! it derives all values that must be unguessable (incarnations, nonces), by purpose. No peer
//! recomputes these.

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): 64 bits of state, not linear over GF(2).
///
/// A generator that is linear over GF(2) must not replace it: seeded with consecutive ESIs, it
/// yields linearly dependent symbols.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator whose stream is determined by `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits of the stream.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the seed of a generator that continues this one's stream.
    pub const fn state(&self) -> u64 {
        self.0
    }

    /// Returns a number in `0..bound`, by the multiply-high method without rejection.
    ///
    /// Its bias is below `bound / 2^64`. `bound` 0 yields 0.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }
}

/// Thirty-two secret bytes from which an endpoint derives everything that must be unguessable.
///
/// Draw it from the operating system once per endpoint; in tests, fix it.
#[derive(Clone)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Wraps 32 secret bytes that no other endpoint uses.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Derives bytes that only the holder of this seed can compute.
    ///
    /// The same `purpose` and `counter` give the same bytes.
    pub fn derive<const N: usize>(&self, purpose: &str, counter: u64) -> [u8; N] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose.as_bytes()).update(&counter.to_be_bytes());
        let mut out = [0; N];
        hasher.finalize_xof().fill(&mut out);
        out
    }
}

/// A source of secrets with forward secrecy: each draw replaces the state that it was drawn from.
pub(crate) struct Ratchet(Seed);

impl Ratchet {
    /// Starts from 32 bytes that are stored nowhere else.
    pub(crate) const fn new(secret: [u8; 32]) -> Self {
        Self(Seed(secret))
    }

    /// The next secret.
    pub(crate) fn draw(&mut self) -> [u8; 32] {
        // Derived from the endpoint's seed, so that a test can be replayed; overwritten, so that
        // memory read later holds no old secret.
        let drawn = self.0.derive("drawn", 0);
        self.0 = Seed(self.0.derive("next", 0));
        drawn
    }
}

impl core::fmt::Debug for Seed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Seed(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_reference_stream() {
        // From the reference implementation by Vigna, seed 1234567.
        let mut rng = SplitMix64::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| rng.next_u64()), expected);
        assert_eq!(SplitMix64::new(rng.state()).next_u64(), rng.next_u64());
    }

    #[test]
    fn below_stays_below_and_reaches_both_ends() {
        let mut rng = SplitMix64::new(7);
        let drawn: Vec<u64> = (0..200).map(|_| rng.below(5)).collect();
        assert!(drawn.iter().all(|&x| x < 5));
        assert!((0..5).all(|x| drawn.contains(&x)));
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn seeds_derive_different_bytes_for_each_purpose_and_counter() {
        let seed = Seed::new([9; 32]);
        assert_ne!(seed.derive::<16>("a", 0), seed.derive("a", 1));
        assert_ne!(seed.derive::<16>("a", 0), seed.derive("b", 0));
        assert_eq!(seed.derive::<16>("a", 0), seed.derive("a", 0));
        assert_eq!(format!("{seed:?}"), "Seed(..)");
    }

    #[test]
    fn a_ratchet_keeps_nothing_that_it_has_drawn() {
        let mut ratchet = Ratchet::new([9; 32]);
        let drawn: Vec<[u8; 32]> = (0..100).map(|_| ratchet.draw()).collect();
        let later: Vec<[u8; 32]> = (0..100).map(|_| ratchet.draw()).collect();
        assert!(!drawn.contains(&ratchet.0.0) && drawn.iter().all(|old| !later.contains(old)));
        let distinct: std::collections::HashSet<_> = drawn.iter().chain(&later).collect();
        assert_eq!(distinct.len(), 200);
    }
}
