//! The text forms of burst policies and of orders of pulls.

use super::{BurstPolicy, ConfigError, PullOrder};
use core::fmt;
use core::str::FromStr;

impl fmt::Display for BurstPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
            expected: "`oblivious`, `budgeted`, `budgeted:margin=0.25`, `pulled` or \
                       `pulled:window=24`, with a margin and a window of your choice",
        })?;
        policy.check()?;
        Ok(policy)
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
        let said = "shortest".parse::<PullOrder>().unwrap_err();
        assert_eq!((said.field, said.value.as_str()), ("pull_order", "\"shortest\""));
        let said = format!("\x1b[31m\n{}", "x".repeat(1_000)).parse::<BurstPolicy>().unwrap_err();
        assert!(said.value.starts_with("\"\\u{1b}[31m\\nx") && said.value.len() < 60, "{said}");
    }
}
