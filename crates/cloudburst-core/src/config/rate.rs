//! The share of the link that an endpoint uses.

use super::ConfigError;
use core::fmt;
use core::str::FromStr;

/// The share `r` of the link's capacity that all messages of an endpoint together may use (the rate of
/// Algorithm 1), above 0 and at most 1.
///
/// Its text form is `auto`, a share such as `0.5`, or `adaptive` or `adaptive:0.5`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Rate {
    /// [`Adaptive`](Self::Adaptive) at 1.0 where the endpoint's driver does not know the capacity
    /// ([`Capacity::Auto`](super::Capacity::Auto)), and where flows of others share the queues
    /// ([`Fabric::shared`](super::Fabric::shared)); elsewhere [`Fixed`](Self::Fixed) at 1.0.
    #[default]
    Auto,
    /// This share, whatever is lost.
    Fixed(f64),
    /// At most this share. The rate starts with 32 packets per round trip to the first peer and doubles with
    /// each, up to 97 % of the share. Where round trips grow because packets queue, losses and CE marks
    /// lower the rate, and it rises again, as the window of a TCP flow does (CUBIC, RFC 9438), so that all
    /// messages together leave a TCP flow its share. Elsewhere, it is lowered only while packets on every
    /// path to every peer are lost or marked and a lower rate reduces this: losses on some paths or to some
    /// peers only, and random losses, do not change it.
    ///
    /// Do not combine it with [`BurstPolicy::Oblivious`](super::BurstPolicy::Oblivious) or `UntilStop`, whose
    /// bursts lose packets by design.
    Adaptive(f64),
}

impl Rate {
    /// Returns the share of the capacity; of an adaptive rate, the highest.
    pub const fn share(self) -> f64 {
        match self {
            Self::Auto => 1.0,
            Self::Fixed(share) | Self::Adaptive(share) => share,
        }
    }

    /// Returns whether losses lower the rate, unless it is [`Auto`](Self::Auto).
    pub const fn is_adaptive(self) -> bool {
        matches!(self, Self::Adaptive(_))
    }

    /// Returns the rate that [`Auto`](Self::Auto) stands for where the rate should adapt, or not.
    #[doc(hidden)]
    pub fn or_adaptive(self, adapts: bool) -> Self {
        match self {
            Self::Auto if adapts => Self::Adaptive(1.0),
            Self::Auto => Self::Fixed(1.0),
            _ => self,
        }
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

impl From<f64> for Rate {
    /// A fixed rate.
    fn from(share: f64) -> Self {
        Self::Fixed(share)
    }
}

impl FromStr for Rate {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
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
            expected: "`auto`, a share above 0 and at most 1, `adaptive`, or `adaptive:` with a share",
        })?;
        rate.check()?;
        Ok(rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
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
            ("1", Rate::Fixed(1.0)),
            ("auto", Rate::default()),
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
