//! The share of the link that an endpoint uses.

use super::ConfigError;
use core::fmt;
use core::str::FromStr;

/// The share `r` of the link's capacity that all messages of an endpoint together may use (the rate of
/// Algorithm 1), above 0 and at most 1.
///
/// Its text form is a share such as `0.5`, or `adaptive` or `adaptive:0.5`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rate {
    /// This share, whatever is lost.
    Fixed(f64),
    /// At most this share. The rate is lowered while packets on every path to every peer are lost or
    /// marked CE and a lower rate reduces this; it rises again by itself. Too high a
    /// [`capacity`](super::Config::capacity) then does little harm. Losses on some paths or to some peers
    /// only, and random losses, do not change the rate.
    ///
    /// Do not combine it with [`BurstPolicy::Oblivious`](super::BurstPolicy::Oblivious) or `UntilStop`, whose
    /// bursts lose packets by design.
    Adaptive(f64),
}

impl Rate {
    /// Returns the share of the capacity; of an adaptive rate, the highest.
    pub const fn share(self) -> f64 {
        match self {
            Self::Fixed(share) | Self::Adaptive(share) => share,
        }
    }

    /// Returns whether losses lower the rate.
    pub const fn is_adaptive(self) -> bool {
        matches!(self, Self::Adaptive(_))
    }

    pub(super) fn check(self) -> Result<(), ConfigError> {
        let share = self.share();
        if share > 0.0 && share <= 1.0 {
            return Ok(());
        }
        Err(ConfigError {
            field: "rate",
            value: share.to_string(),
            expected: "above 0 and at most 1",
        })
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self::Fixed(1.0)
    }
}

impl From<f64> for Rate {
    /// A fixed rate.
    fn from(share: f64) -> Self {
        Self::Fixed(share)
    }
}

impl FromStr for Rate {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let rate = match text.strip_prefix("adaptive") {
            Some("") => Some(Self::Adaptive(1.0)),
            Some(rest) => {
                rest.strip_prefix(':').and_then(|share| share.parse().ok()).map(Self::Adaptive)
            }
            None => text.parse().ok().map(Self::Fixed),
        };
        let rate = rate.ok_or_else(|| ConfigError {
            field: "rate",
            value: format!("`{text}`"),
            expected: "a share above 0 and at most 1, `adaptive`, or `adaptive:` with a share",
        })?;
        rate.check()?;
        Ok(rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(share) => share.fmt(f),
            Self::Adaptive(share) => write!(f, "adaptive:{share}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_written_as_it_is_read() {
        for (text, rate) in [
            ("0.5", Rate::Fixed(0.5)),
            ("1", Rate::default()),
            ("adaptive:0.25", Rate::Adaptive(0.25)),
        ] {
            assert_eq!((text.parse(), rate.to_string().as_str()), (Ok(rate), text));
        }
        assert_eq!("adaptive".parse(), Ok(Rate::Adaptive(1.0)));
        for wrong in ["", "0", "1.5", "nan", "-1", "fast", "adaptive:", "adaptive:2", "adaptive0.5"]
        {
            assert_eq!(wrong.parse::<Rate>().unwrap_err().field, "rate", "{wrong}");
        }
    }
}
