//! Numbers with units, as users write them.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use parse_size::ByteSuffix;

/// A rate in bits per second, at least 8000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits(pub u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

/// A duration, from a tenth of a second to a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub Duration);

/// The text is not a valid number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(&'static str);

impl FromStr for Bits {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bits = scaled(text).filter(|bits| *bits >= 8_000);
        bits.map(Self).ok_or(UnitError("expected at least 8k, such as 100M, 2.5G or 1000000000"))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        scaled(text).map(Self).ok_or(UnitError("expected a number such as 5000, 100M or 2Gi"))
    }
}

impl FromStr for Seconds {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let seconds = text.parse::<f64>().ok().filter(|s| (0.1..=86_400.0).contains(s));
        let error = UnitError("expected seconds, 0.1 to 86400");
        seconds.map(|s| Self(Duration::from_secs_f64(s))).ok_or(error)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_secs_f64().fmt(f)
    }
}

/// Parses a number with an optional suffix: k, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (powers of 1024).
fn scaled(text: &str) -> Option<u64> {
    // A `B` could be for bits or bytes.
    parse_size::Config::new().with_byte_suffix(ByteSuffix::Deny).parse_size(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("5000", 5_000),
            ("1.5k", 1_500),
            ("100M", 100_000_000),
            ("2Gi", 2 << 30),
            ("0.5Ki", 512),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        assert_eq!("10G".parse(), Ok(Bits(10_000_000_000)));
        assert_eq!("0.5".parse(), Ok(Seconds(Duration::from_millis(500))));
    }

    #[test]
    fn invalid_numbers_are_refused() {
        for text in ["", "M", "-1", "1.2.3M", "1MB", "1Mb", "99999999T", "NaN", "inf", "."] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        assert!("7999".parse::<Bits>().is_err());
        for text in ["0", "0.01", "-3", "1e9", "NaN", "ten"] {
            assert!(text.parse::<Seconds>().is_err(), "{text}");
        }
    }
}
