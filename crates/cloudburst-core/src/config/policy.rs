//! How much a sender sends before the receiver answers, and in which order a receiver pulls.

use super::ConfigError;
use core::fmt;
use core::str::FromStr;

/// How much a sender sends before it hears from the receiver.
///
/// Its text form is `until-stop`, `oblivious`, `budgeted` or `budgeted:margin=0.25`, `pulled` or
/// `pulled:window=24`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BurstPolicy {
    /// Algorithm 1 to the letter, for experiments: symbols at the rate until STOP or the deadline,
    /// whatever the receiver reports and however long it does not answer. Only BUSY interrupts the
    /// burst; [`Tuning::max_redundancy`](super::Tuning::max_redundancy) does not bound it.
    ///
    /// A receiver that has crashed, or whose STOPs are lost, is sent packets at the full rate of
    /// this endpoint until the deadline, at the expense of all other traffic on the way. Set a
    /// short deadline, and a low rate unless switches hold these packets in a small queue of their
    /// own.
    UntilStop,
    /// As `UntilStop`, but after eight times the block, the burst slows to a trickle, and it pauses
    /// while the receiver does not answer. It has the lowest latency under loss, but sends surplus
    /// packets for one round trip of each message.
    Oblivious,
    /// Opens with the symbols that suffice without loss plus the share `margin`, requests an ACK
    /// and sends the missing symbols (section III-D). Backs off while no answer comes.
    Budgeted {
        /// Repair symbols that are sent at once, as a share of the block; 0.0 to 4.0. A larger
        /// share covers more loss without another round trip, and adds as much load.
        margin: f32,
    },
    /// Opens with a few symbols, then sends one symbol for each that arrived or was lost, as the
    /// receiver pulls them at the rate of its link, which all senders share (SCDP, section IV-C).
    /// Many senders to one receiver then lose few packets beyond their openings. Pulls cost small
    /// packets in the reverse direction, and limit a single message to one window per round trip.
    ///
    /// The message is budgeted instead, with the default margin, if the code is not systematic.
    Pulled {
        /// Symbols in the opening, and the maximum in flight; 1 to 1,024. `None` chooses by the
        /// capacity of the link: 12 at 1 Gb/s, 24 at 5 Gb/s and 32 from 10 Gb/s on.
        window: Option<u16>,
    },
}

impl Default for BurstPolicy {
    fn default() -> Self {
        Self::Budgeted { margin: Self::DEFAULT_MARGIN }
    }
}

/// The order in which a receiver pulls the messages that are arriving.
///
/// Its text form is `round-robin` or `shortest-first`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullOrder {
    /// All messages in turn (SCDP, section IV-C). Hosts share the bytes equally, as do the peers of a host
    /// and the messages of a peer.
    #[default]
    RoundRobin,
    /// The message with the fewest missing symbols first, whichever peer sends it: only for peers that trust
    /// each other. Every eighth pull is as in [`RoundRobin`](Self::RoundRobin).
    ShortestFirst,
}

impl fmt::Display for BurstPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UntilStop => f.write_str("until-stop"),
            Self::Oblivious => f.write_str("oblivious"),
            Self::Budgeted { margin } => write!(f, "budgeted:margin={margin}"),
            Self::Pulled { window: None } => f.write_str("pulled"),
            Self::Pulled { window: Some(window) } => write!(f, "pulled:window={window}"),
        }
    }
}

impl FromStr for BurstPolicy {
    type Err = ConfigError;

    /// Parses the text that [`Display`](fmt::Display) writes, and `budgeted`, which has the default margin.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let policy = match text.split_once(":") {
            None => match text {
                "until-stop" => Some(Self::UntilStop),
                "oblivious" => Some(Self::Oblivious),
                "budgeted" => Some(Self::default()),
                "pulled" => Some(Self::Pulled { window: None }),
                _ => None,
            },
            Some((name, setting)) => match (name, setting.split_once('=')) {
                ("budgeted", Some(("margin", margin))) => {
                    margin.parse().ok().map(|margin| Self::Budgeted { margin })
                }
                ("pulled", Some(("window", window))) => {
                    window.parse().ok().map(|window| Self::Pulled { window: Some(window) })
                }
                _ => None,
            },
        };
        let policy = policy.ok_or_else(|| ConfigError {
            field: "policy",
            value: quoted(text),
            expected: "`until-stop`, `oblivious`, `budgeted`, `budgeted:margin=0.25`, `pulled` \
                       or `pulled:window=24`, with a margin and a window of your choice",
        })?;
        policy.check()?;
        Ok(policy)
    }
}

impl BurstPolicy {
    pub(crate) const DEFAULT_MARGIN: f32 = 1.0 / 16.0;

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::Budgeted { margin } if !(0.0..=4.0).contains(margin) => Err(ConfigError {
                field: "policy.margin",
                value: margin.to_string(),
                expected: "between 0 and 4",
            }),
            Self::Pulled { window: Some(window) } if !(1..=1_024).contains(window) => {
                Err(ConfigError {
                    field: "policy.window",
                    value: window.to_string(),
                    expected: "between 1 and 1024 symbols",
                })
            }
            _ => Ok(()),
        }
    }
}

/// Quotes text that may be anything, if it is long only its beginning.
fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(40).collect::<String>())
}

impl fmt::Display for PullOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoundRobin => "round-robin",
            Self::ShortestFirst => "shortest-first",
        })
    }
}

impl FromStr for PullOrder {
    type Err = ConfigError;

    /// Parses the text that [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "round-robin" => Ok(Self::RoundRobin),
            "shortest-first" => Ok(Self::ShortestFirst),
            _ => Err(ConfigError {
                field: "pull_order",
                value: quoted(text),
                expected: "`round-robin` or `shortest-first`",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_written_as_it_is_read() {
        for (text, policy) in [
            ("until-stop", BurstPolicy::UntilStop),
            ("oblivious", BurstPolicy::Oblivious),
            ("budgeted:margin=0.0625", BurstPolicy::default()),
            ("budgeted:margin=0", BurstPolicy::Budgeted { margin: 0.0 }),
            ("pulled", BurstPolicy::Pulled { window: None }),
            ("pulled:window=24", BurstPolicy::Pulled { window: Some(24) }),
        ] {
            assert_eq!((text.parse(), policy.to_string().as_str()), (Ok(policy), text));
        }
        assert_eq!("budgeted".parse(), Ok(BurstPolicy::default()));
        for (wrong, field) in [
            ("", "policy"),
            ("Oblivious", "policy"),
            ("oblivious:margin=1", "policy"),
            ("budgeted:", "policy"),
            ("budgeted:window=24", "policy"),
            ("budgeted:margin=nan", "policy.margin"),
            ("budgeted:margin=5", "policy.margin"),
            ("pulled:window=0", "policy.window"),
            ("pulled:window=70000", "policy"),
        ] {
            assert_eq!(wrong.parse::<BurstPolicy>().unwrap_err().field, field, "{wrong}");
        }
    }

    #[test]
    fn an_order_of_pulls_is_written_as_it_is_read() {
        for order in [PullOrder::RoundRobin, PullOrder::ShortestFirst] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        let error = "shortest".parse::<PullOrder>().unwrap_err();
        assert_eq!((error.field, error.value.as_str()), ("pull_order", "\"shortest\""));
        let error = format!("\x1b[31m\n{}", "x".repeat(1_000)).parse::<BurstPolicy>().unwrap_err();
        assert!(error.value.starts_with("\"\\u{1b}[31m\\nx") && error.value.len() < 60, "{error}");
    }
}
