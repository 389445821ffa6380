//! Validation of settings, and the error for invalid ones.

use super::capacity::MIN_CAPACITY;
use super::{BurstPolicy, Config, MAX_BLOCKS_IN_FLIGHT, MAX_PORTS};
use crate::code::Code;
use crate::path::MAX_TRAIN;
use crate::rate::Downlink;

/// A setting with an invalid value, which the caller must change.
///
/// Crates that check settings of their own construct it, so it is not `#[non_exhaustive]`.
///
/// # Example
///
/// ```
/// # use cloudburst_core::config::{Config, ConfigError};
/// let config = Config { rate: 1.5, ..Config::default() };
/// let said = config.check().map_err(|ConfigError { field, value, .. }| (field, value));
/// assert_eq!(said, Err(("rate", "1.5".to_owned())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting `{field}` is {value}: it must be {expected}")]
pub struct ConfigError {
    /// The field of [`Config`].
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The values that are valid.
    pub expected: &'static str,
}

impl Config {
    /// Checks every field.
    ///
    /// # Errors
    ///
    /// Names the first field that is out of range.
    ///
    /// # Example
    ///
    /// ```
    /// # use cloudburst_core::config::Config;
    /// let config = Config { train: 65, ..Config::default() };
    /// let said = config.check().map_err(|error| error.to_string());
    /// assert_eq!(said, Err("setting `train` is 65: it must be between 1 and 64 packets".to_owned()));
    /// ```
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |field, value: &dyn ToString, expected| {
            Err(ConfigError { field, value: value.to_string(), expected })
        };
        if !(576..=65_535).contains(&self.mtu) {
            return refuse("mtu", &self.mtu, "between 576 and 65535 bytes");
        }
        if self.capacity.bits_per_second() < MIN_CAPACITY {
            return refuse("capacity", &self.capacity, "at least 8000 bits per second");
        }
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            return refuse("rate", &self.rate, "above 0 and at most 1");
        }
        if self.capacity.bits_per_second() as f64 * self.rate < MIN_CAPACITY as f64 {
            return refuse(
                "rate",
                &self.rate,
                "a share of `capacity` of at least 8000 bits per second",
            );
        }
        if !(1..=MAX_TRAIN).contains(&self.train) {
            return refuse("train", &self.train, "between 1 and 64 packets");
        }
        if !(1..=MAX_BLOCKS_IN_FLIGHT).contains(&self.blocks_in_flight) {
            return refuse("blocks_in_flight", &self.blocks_in_flight, "between 1 and 8");
        }
        if !(1..=MAX_PORTS).contains(&self.ports) {
            return refuse("ports", &self.ports, "between 1 and 64");
        }
        if self.port.checked_add(self.ports - 1).is_none() {
            return refuse("port", &self.port, "at most 65536 minus `ports`");
        }
        self.policy.check()?;
        check_code(self.code)?;
        if let Some(downlink) = self.downlink.as_ref().map(Downlink::bits_per_second)
            && downlink < MIN_CAPACITY
        {
            return refuse("downlink", &downlink, "at least 8000 bits per second");
        }
        if self.deadline.is_zero() {
            return refuse("deadline", &"0", "longer than zero");
        }
        if !(2..=1_000).contains(&self.max_redundancy) {
            return refuse("max_redundancy", &self.max_redundancy, "between 2 and 1000");
        }
        if self.decode_timeout.is_zero() {
            return refuse("decode_timeout", &"0", "longer than zero");
        }
        for (field, value) in [
            ("send_messages", self.send_messages),
            ("send_bytes", self.send_bytes),
            ("max_message", self.max_message),
            ("receive_messages", self.receive_messages),
            ("receive_bytes", self.receive_bytes),
            ("max_peers", self.max_peers),
        ] {
            if value == 0 {
                return refuse(field, &value, "at least 1");
            }
        }
        if u32::try_from(self.max_message).is_err() {
            return refuse("max_message", &self.max_message, "below 4 GiB");
        }
        for (field, value) in [
            ("decode_bytes", self.decode_bytes),
            ("decode_bytes_per_peer", self.decode_bytes_per_peer),
        ] {
            if value < self.max_message.saturating_mul(2) {
                return refuse(field, &value, "at least twice `max_message`");
            }
        }
        Ok(())
    }
}

/// Refuses a code with an invalid parameter.
pub(crate) fn check_code(code: Code) -> Result<(), ConfigError> {
    match Code::from_wire(code.to_wire()) {
        Some(known) if known == code => Ok(()),
        _ => Err(ConfigError {
            field: "code",
            value: code.to_string(),
            expected: "a code with a valid degree, such as d=5",
        }),
    }
}

impl BurstPolicy {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::MAX_SOURCE_SYMBOLS;
    use core::time::Duration;

    #[test]
    fn the_default_holds_and_carries_the_papers_largest_message_in_one_block() {
        let config = Config::default();
        assert_eq!(config.check(), Ok(()));
        for code in [Code::Rlf256, "lt".parse().unwrap()] {
            assert!(config.max_symbol(code, 48) * MAX_SOURCE_SYMBOLS >= 93_016);
        }
    }

    #[test]
    fn a_refusal_names_the_field_the_value_and_the_range() {
        let refusals = [
            Config { rate: 0.0, ..Config::default() },
            Config { rate: f64::NAN, ..Config::default() },
            Config { rate: 1e-9, ..Config::default() },
            Config { mtu: 100, ..Config::default() },
            Config { train: 0, ..Config::default() },
            Config { max_peers: 0, ..Config::default() },
            Config { max_message: 1 << 32, ..Config::default() },
            Config { decode_bytes: 5, ..Config::default() },
            Config { policy: BurstPolicy::Budgeted { margin: -1.0 }, ..Config::default() },
            Config { capacity: 0.into(), ..Config::default() },
            Config { downlink: Some(Downlink::new(0)), ..Config::default() },
            Config { policy: BurstPolicy::Pulled { window: Some(0) }, ..Config::default() },
            Config { deadline: Duration::ZERO, ..Config::default() },
            Config { max_redundancy: 1, ..Config::default() },
            Config { ports: 0, ..Config::default() },
            Config { port: 65_535, ports: 2, ..Config::default() },
        ];
        let said: Vec<String> =
            refusals.iter().map(|config| config.check().unwrap_err().to_string()).collect();
        assert_eq!(
            said,
            [
                "setting `rate` is 0: it must be above 0 and at most 1",
                "setting `rate` is NaN: it must be above 0 and at most 1",
                "setting `rate` is 0.000000001: it must be a share of `capacity` of at least 8000 bits \
                 per second",
                "setting `mtu` is 100: it must be between 576 and 65535 bytes",
                "setting `train` is 0: it must be between 1 and 64 packets",
                "setting `max_peers` is 0: it must be at least 1",
                "setting `max_message` is 4294967296: it must be below 4 GiB",
                "setting `decode_bytes` is 5: it must be at least twice `max_message`",
                "setting `policy.margin` is -1: it must be between 0 and 4",
                "setting `capacity` is 0: it must be at least 8000 bits per second",
                "setting `downlink` is 0: it must be at least 8000 bits per second",
                "setting `policy.window` is 0: it must be between 1 and 1024 symbols",
                "setting `deadline` is 0: it must be longer than zero",
                "setting `max_redundancy` is 1: it must be between 2 and 1000",
                "setting `ports` is 0: it must be between 1 and 64",
                "setting `port` is 65535: it must be at most 65536 minus `ports`",
            ]
        );
    }
}
