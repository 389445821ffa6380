//! The source of decisions: a seed, or the bytes of a fuzzer.

use cloudburst_core::rng::SplitMix64;

/// A stream of decisions. The same source gives the same decisions everywhere.
#[derive(Clone, Debug)]
pub struct Choices<'a>(Source<'a>);

#[derive(Clone, Debug)]
enum Source<'a> {
    Seed { rng: SplitMix64, left: usize },
    Bytes(&'a [u8]),
}

impl<'a> Choices<'a> {
    /// Bytes that a seed yields before every choice is 0.
    const BYTES_OF_A_SEED: usize = 400;

    /// Takes decisions from `seed`.
    pub const fn seed(seed: u64) -> Self {
        Self(Source::Seed { rng: SplitMix64::new(seed), left: Self::BYTES_OF_A_SEED })
    }

    /// Takes decisions from the front of `bytes`. Once they are used up, every choice is 0.
    pub const fn bytes(bytes: &'a [u8]) -> Self {
        Self(Source::Bytes(bytes))
    }

    /// Whether every further choice is 0.
    pub const fn is_empty(&self) -> bool {
        match &self.0 {
            Source::Seed { left, .. } => *left == 0,
            Source::Bytes(bytes) => bytes.is_empty(),
        }
    }

    /// A byte.
    pub fn u8(&mut self) -> u8 {
        match &mut self.0 {
            Source::Seed { left: 0, .. } => 0,
            Source::Seed { rng, left } => {
                *left -= 1;
                rng.next_u64() as u8
            }
            Source::Bytes(bytes) => bytes.split_off_first().copied().unwrap_or(0),
        }
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    /// A bit.
    pub fn flag(&mut self) -> bool {
        self.u8() & 1 != 0
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.u8()) % bound
    }

    /// One of `options`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }

    /// The next `count` bytes, or as many as are left.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        (0..count).map_while(|_| (!self.is_empty()).then(|| self.u8())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_ends_after_as_many_choices_as_its_bytes() {
        for mut choices in [Choices::seed(1), Choices::bytes(&[9; 400])] {
            assert_eq!(choices.take(1_000).len(), 400);
            assert!(choices.is_empty());
            assert_eq!((choices.u8(), choices.u16(), choices.flag()), (0, 0, false));
        }
    }

    #[test]
    fn bytes_are_read_in_order() {
        let mut choices = Choices::bytes(&[1, 2, 3, 7]);
        assert_eq!((choices.u8(), choices.u16(), choices.below(5)), (1, 0x0203, 2));
    }
}
