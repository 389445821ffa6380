//! The capacity of an endpoint's link.

use core::fmt;

/// The capacity of an endpoint's link, in each direction.
///
/// ```
/// use cloudburst_core::config::{Capacity, Config};
///
/// let config = Config { capacity: 10_000_000_000.into(), ..Config::default() };
/// assert_eq!(config.capacity, Capacity::BitsPerSecond(10_000_000_000));
/// assert_eq!(Config::default().capacity, Capacity::Auto);
/// assert_eq!(Capacity::Auto.bits_per_second(), 1_000_000_000); // without an interface to ask
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capacity {
    /// The capacity that the interface reports, if the endpoint's driver can find it out, or
    /// [`FALLBACK`](Self::FALLBACK) otherwise.
    #[default]
    Auto,
    /// Bits a second, at least 8,000. Too high a value overflows queues and receive buffers; too low
    /// a value leaves the link idle.
    BitsPerSecond(u64),
}

impl Capacity {
    /// 1 Gb/s: the capacity assumed where none is known.
    pub const FALLBACK: Self = Self::BitsPerSecond(1_000_000_000);

    /// Returns the bits a second. This crate cannot query interfaces, so [`Auto`](Self::Auto) is
    /// [`FALLBACK`](Self::FALLBACK) here.
    pub const fn bits_per_second(self) -> u64 {
        match self {
            Self::Auto => Self::FALLBACK.bits_per_second(),
            Self::BitsPerSecond(bits) => bits,
        }
    }
}

impl From<u64> for Capacity {
    fn from(bits_per_second: u64) -> Self {
        Self::BitsPerSecond(bits_per_second)
    }
}

impl fmt::Display for Capacity {
    /// Writes `auto`, or the bits a second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::BitsPerSecond(bits) => bits.fmt(f),
        }
    }
}
