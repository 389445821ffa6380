//! The only source of randomness of the crate: the same seed gives the same faults everywhere.

// A copy of the generator in `cloudburst_core::rng`, because this crate depends on nothing.

use core::time::Duration;

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator whose stream is determined by `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits of the stream.
    pub(crate) const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..bound`, with a bias below `bound / 2^64`; 0 for a `bound` of 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Returns an index in `0..len`; 0 for a `len` of 0.
    pub(crate) const fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns true with probability `p`: never for 0, always for 1.
    ///
    /// One number is drawn for every `p`. The comparison is exact in IEEE 754 arithmetic, so the
    /// result is the same on every platform.
    pub(crate) fn chance(&mut self, p: f64) -> bool {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        ((self.next_u64() >> 11) as f64) * STEP < p
    }

    /// Returns a uniform time in `ZERO..=longest`, in whole nanoseconds.
    pub(crate) fn up_to(&mut self, longest: Duration) -> Duration {
        let nanos = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
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
        ];
        assert_eq!(expected.map(|_| rng.next_u64()), expected);
    }

    #[test]
    fn probabilities_of_0_and_1_are_exact() {
        let mut rng = SplitMix64::new(1);
        assert!((0..10_000).all(|_| !rng.chance(0.0)));
        assert!((0..10_000).all(|_| rng.chance(1.0)));
    }

    #[test]
    fn draws_stay_within_bounds_and_reach_both_ends() {
        let mut rng = SplitMix64::new(2);
        let drawn: Vec<usize> = (0..200).map(|_| rng.index(5)).collect();
        assert!((0..5).all(|x| drawn.contains(&x)));
        assert!(drawn.iter().all(|&x| x < 5));

        let longest = Duration::from_nanos(3);
        let times: Vec<Duration> = (0..200).map(|_| rng.up_to(longest)).collect();
        assert!(times.contains(&Duration::ZERO) && times.contains(&longest));
        assert!(times.iter().all(|&time| time <= longest));
    }
}
