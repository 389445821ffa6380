//! A hash of everything that happened in a world. Two runs with the same hash were the same.

use cloudburst_core::time::Instant;
use core::fmt::Arguments;

#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    verbose: bool,
}

impl Trace {
    pub(crate) const fn new() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, verbose: false }
    }

    /// A trace that also prints the lines passed to [`print`](Self::print).
    pub(crate) const fn verbose() -> Self {
        Self { verbose: true, ..Self::new() }
    }

    pub(crate) const fn value(&self) -> u64 {
        self.hash
    }

    /// Prints a line if the trace is verbose.
    pub(crate) fn print(&self, now: Instant, what: Arguments<'_>) {
        if self.verbose {
            eprintln!("{:>12} {what}", now.as_nanos());
        }
    }

    /// Adds an event of `kind` at a host to the hash.
    pub(crate) fn record(&mut self, now: Instant, kind: u8, host: usize, bytes: &[u8]) {
        self.word(now.as_nanos());
        self.word((host as u64) << 8 | u64::from(kind));
        self.word(hash(bytes));
    }

    const fn word(&mut self, word: u64) {
        self.hash = mix(self.hash, word);
    }
}

/// A hash that tells packets apart.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum =
        words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
}

/// FNV-1a (Fowler, Noll, Vo), a word at a time, and a shift that moves high bits down.
const fn mix(sum: u64, word: u64) -> u64 {
    let product = (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    product ^ product >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_changes_the_hash() {
        let bytes = [7; 21];
        for at in 0..bytes.len() {
            let mut other = bytes;
            other[at] ^= 1;
            assert_ne!(hash(&bytes), hash(&other), "{at}");
        }
        assert_ne!(hash(&bytes), hash(&bytes[..20]));
    }
}
