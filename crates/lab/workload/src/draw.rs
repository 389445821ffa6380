//! Random draws. Logarithms are `libm`'s, which are the same on every machine.

use cloudburst_core::rng::SplitMix64;

/// A generator that is independent of those with another name or number: `of` names the quantity that is drawn,
/// `number` is usually that of a host.
pub fn stream(seed: u64, of: &str, number: u64) -> SplitMix64 {
    // FNV-1a of the name.
    let fold = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let name = of.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    let mut mixed = seed;
    for part in [name, number] {
        // Twice, because generators with nearby states stay correlated.
        mixed = SplitMix64::new(SplitMix64::new(mixed).next_u64() ^ part).next_u64();
    }
    SplitMix64::new(mixed)
}

/// Uniform in (0, 1]: 53 bits.
pub fn uniform(rng: &mut SplitMix64) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// Uniform in [0, 1): 53 bits.
pub fn fraction(rng: &mut SplitMix64) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// True with `probability`.
pub fn chance(rng: &mut SplitMix64, probability: f64) -> bool {
    fraction(rng) < probability
}

/// An exponentially distributed time, in the unit of its `mean`.
pub fn exponential(rng: &mut SplitMix64, mean: u64) -> u64 {
    (-libm::log(uniform(rng)) * mean as f64) as u64
}

/// The times of a Poisson process up to `until`, with a mean of `mean` between arrivals, in the unit of both.
pub fn poisson(rng: &mut SplitMix64, mean: u64, until: u64) -> impl Iterator<Item = u64> {
    let mut now = 0;
    core::iter::from_fn(move || {
        now += exponential(rng, mean);
        (now < until).then_some(now)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn arrivals_have_the_rate_and_spacing_of_a_poisson_process() {
        let mut rng = SplitMix64::new(1);
        let times: Vec<u64> = poisson(&mut rng, 10_000, 1_000_000_000).collect();
        assert!((99_000..101_000).contains(&times.len()), "{}", times.len());
        let long = times.windows(2).filter(|pair| pair[1] - pair[0] > 20_000).count();
        let share = long as f64 / times.len() as f64;
        // e^-2.
        assert!((share - 0.1353).abs() < 0.004, "{share}");
    }

    #[test]
    fn streams_differ_by_seed_name_and_number() {
        let first = |seed, of, number| stream(seed, of, number).next_u64();
        let drawn = [first(1, "a", 0), first(2, "a", 0), first(1, "b", 0), first(1, "a", 1)];
        assert!((0..4).all(|k| !drawn[..k].contains(&drawn[k])));
    }
}
