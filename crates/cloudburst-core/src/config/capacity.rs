//! The capacity of an endpoint's link.

use super::ConfigError;
use core::fmt;
use core::str::FromStr;
use parse_size::ByteSuffix;

/// The fewest bits per second that an endpoint can be paced to.
pub(super) const MIN_CAPACITY: u64 = 8_000;

/// The capacity of an endpoint's link, in each direction.
///
/// Its text form is `auto`, or bits per second with an optional unit, such as `100M` or `2.5G`: k, M, G and T
/// are powers of 1,000.
///
/// Only `u64` converts into it: with a second integer type, the type of a literal would be ambiguous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
// `Auto` is a value of its own: a default of 1 Gb/s could not be distinguished from a setting of 1 Gb/s.
pub enum Capacity {
    /// The capacity of the interface, if the endpoint's driver can find it out. Otherwise what the interface
    /// claims or [`FALLBACK`](Self::FALLBACK), whichever is higher, up to which the rate adapts
    /// ([`Rate::Auto`](super::Rate::Auto)).
    #[default]
    Auto,
    /// Bits per second, at least 8,000. Too high a value overflows queues and receive buffers; too low
    /// a value leaves the link idle.
    BitsPerSecond(u64),
}

impl Capacity {
    /// 1 Gb/s: the capacity assumed where none is known.
    pub const FALLBACK: Self = Self::BitsPerSecond(1_000_000_000);

    /// Returns the bits per second. This crate cannot query interfaces, so [`Auto`](Self::Auto) is
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

impl FromStr for Capacity {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        // A `B` would mean bytes.
        let parser = parse_size::Config::new().with_byte_suffix(ByteSuffix::Deny);
        let bits = parser.parse_size(text).ok().filter(|bits| *bits >= MIN_CAPACITY);
        bits.map(Self::BitsPerSecond).ok_or_else(|| ConfigError {
            field: "capacity",
            value: format!("`{text}`"),
            expected: "`auto`, or at least 8k bits per second, such as 100M, 2.5G or 1000000000",
        })
    }
}

impl fmt::Display for Capacity {
    /// Writes `auto`, or the bits per second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::BitsPerSecond(bits) => bits.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_parsed_with_units_and_as_it_is_written() {
        for (text, bits) in [("8k", 8_000), ("100M", 100_000_000), ("2.5G", 2_500_000_000)] {
            let capacity = text.parse::<Capacity>().unwrap();
            assert_eq!(capacity, bits.into(), "{text}");
            assert_eq!(capacity.to_string().parse(), Ok(capacity));
        }
        assert_eq!(Capacity::Auto.to_string().parse(), Ok(Capacity::Auto));
        for wrong in ["", "Auto", "7999", "-1", "10GB", "10Gbit", "fast", "99999999T"] {
            let error = wrong.parse::<Capacity>().unwrap_err();
            assert_eq!((error.field, error.value), ("capacity", format!("`{wrong}`")));
        }
    }
}
