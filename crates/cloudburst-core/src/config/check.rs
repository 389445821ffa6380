//! Validation of settings.

use super::capacity::MIN_CAPACITY;
use super::{Config, ConfigError, MAX_BLOCKS_IN_FLIGHT, Tuning};
use crate::code::Code;
use crate::path::MAX_TRAIN;

/// The least memory, which leaves every limit at least 1.
const MIN_MEMORY: usize = 1 << 20;

impl Config {
    /// Checks every field.
    ///
    /// # Errors
    ///
    /// Names the first field that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |field, value: &dyn ToString, expected| {
            Err(ConfigError { field, value: value.to_string(), expected })
        };
        if !(576..=65_535).contains(&self.mtu) {
            return refuse("mtu", &self.mtu, "between 576 and 65535 bytes");
        }
        let capacity = self.capacity.bits_per_second();
        if capacity < MIN_CAPACITY {
            return refuse("capacity", &self.capacity, "at least 8000 bits per second");
        }
        self.rate.check()?;
        if capacity as f64 * self.rate.share() < MIN_CAPACITY as f64 {
            return refuse(
                "rate",
                &self.rate.share(),
                "a share of `capacity` of at least 8000 bits per second",
            );
        }
        check_code(self.code)?;
        self.policy.check()?;
        self.fabric.check()?;
        if self.deadline.is_zero() {
            return refuse("deadline", &"0", "longer than zero");
        }
        if self.max_message == 0 || u32::try_from(self.max_message).is_err() {
            return refuse("max_message", &self.max_message, "at least 1 byte and below 4 GiB");
        }
        if self.memory < MIN_MEMORY {
            return refuse("memory", &self.memory, "at least 1048576 bytes");
        }
        self.tuning.check()?;
        self.check_limits()
    }

    fn check_limits(&self) -> Result<(), ConfigError> {
        let limits = self.limits();
        let tuning = &self.tuning;
        for (field, is_explicit, value) in [
            ("tuning.decode_bytes", tuning.decode_bytes.is_some(), limits.decode_bytes),
            (
                "tuning.decode_bytes_per_peer",
                tuning.decode_bytes_per_peer.is_some(),
                limits.decode_bytes_per_peer,
            ),
        ] {
            if value >= self.max_message.saturating_mul(2) {
                continue;
            }
            let (field, value, expected) = if is_explicit {
                (field, value, "at least twice `max_message`")
            } else {
                ("memory", self.memory, "at least 20 times `max_message`")
            };
            return Err(ConfigError { field, value: value.to_string(), expected });
        }
        Ok(())
    }
}

impl Tuning {
    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |field, value: &dyn ToString, expected| {
            Err(ConfigError { field, value: value.to_string(), expected })
        };
        if !(1..=MAX_TRAIN).contains(&self.train) {
            return refuse("tuning.train", &self.train, "between 1 and 64 packets");
        }
        if !(1..=MAX_BLOCKS_IN_FLIGHT).contains(&self.blocks_in_flight) {
            return refuse("tuning.blocks_in_flight", &self.blocks_in_flight, "between 1 and 8");
        }
        if !(2..=1_000).contains(&self.max_redundancy) {
            return refuse("tuning.max_redundancy", &self.max_redundancy, "between 2 and 1000");
        }
        if self.decode_timeout.is_zero() {
            return refuse("tuning.decode_timeout", &"0", "longer than zero");
        }
        for (field, value) in [
            ("tuning.send_messages", self.send_messages),
            ("tuning.send_bytes", self.send_bytes),
            ("tuning.receive_messages", self.receive_messages),
            ("tuning.receive_bytes", self.receive_bytes),
            ("tuning.max_peers", self.max_peers),
        ] {
            if value == Some(0) {
                return refuse(field, &0, "at least 1");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::MAX_SOURCE_SYMBOLS;
    use crate::config::{BurstPolicy, Fabric, Rate};
    use crate::rate::Downlink;
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
        let tuned = |tuning| Config { tuning, ..Config::default() };
        let fabric = |fabric| Config { fabric, ..Config::default() };
        let t = Tuning::default;
        let f = Fabric::default;
        let refusals = [
            Config { rate: 0.0.into(), ..Config::default() },
            Config { rate: Rate::Adaptive(f64::NAN), ..Config::default() },
            Config { rate: 1e-9.into(), ..Config::default() },
            Config { mtu: 100, ..Config::default() },
            Config { max_message: 1 << 32, ..Config::default() },
            Config { max_message: 0, ..Config::default() },
            Config { memory: 5, ..Config::default() },
            Config { memory: 64 << 20, ..Config::default() },
            Config { policy: BurstPolicy::Budgeted { margin: -1.0 }, ..Config::default() },
            Config { capacity: 0.into(), ..Config::default() },
            Config { policy: BurstPolicy::Pulled { window: Some(0) }, ..Config::default() },
            Config { deadline: Duration::ZERO, ..Config::default() },
            fabric(Fabric { dscps: Vec::new(), ..f() }),
            fabric(Fabric { dscps: vec![43, 64], ..f() }),
            fabric(Fabric { trim_dscp: Some(64), ..f() }),
            fabric(Fabric { downlink: Some(Downlink::new(0)), ..f() }),
            tuned(Tuning { train: 0, ..t() }),
            tuned(Tuning { train: 65, ..t() }),
            tuned(Tuning { max_peers: Some(0), ..t() }),
            tuned(Tuning { decode_bytes: Some(5), ..t() }),
            tuned(Tuning { max_redundancy: 1, ..t() }),
        ];
        let errors: Vec<String> =
            refusals.iter().map(|config| config.check().unwrap_err().to_string()).collect();
        assert_eq!(
            errors,
            [
                "setting `rate` is 0: it must be above 0 and at most 1",
                "setting `rate` is NaN: it must be above 0 and at most 1",
                "setting `rate` is 0.000000001: it must be a share of `capacity` of at least 8000 bits \
                 per second",
                "setting `mtu` is 100: it must be between 576 and 65535 bytes",
                "setting `max_message` is 4294967296: it must be at least 1 byte and below 4 GiB",
                "setting `max_message` is 0: it must be at least 1 byte and below 4 GiB",
                "setting `memory` is 5: it must be at least 1048576 bytes",
                "setting `memory` is 67108864: it must be at least 20 times `max_message`",
                "setting `policy.margin` is -1: it must be between 0 and 4",
                "setting `capacity` is 0: it must be at least 8000 bits per second",
                "setting `policy.window` is 0: it must be between 1 and 1024 symbols",
                "setting `deadline` is 0: it must be longer than zero",
                "setting `fabric.dscps` is []: it must be 1 to 8 values from 0 to 63",
                "setting `fabric.dscps` is [43, 64]: it must be 1 to 8 values from 0 to 63",
                "setting `fabric.trim_dscp` is 64: it must be between 0 and 63",
                "setting `fabric.downlink` is 0: it must be at least 8000 bits per second",
                "setting `tuning.train` is 0: it must be between 1 and 64 packets",
                "setting `tuning.train` is 65: it must be between 1 and 64 packets",
                "setting `tuning.max_peers` is 0: it must be at least 1",
                "setting `tuning.decode_bytes` is 5: it must be at least twice `max_message`",
                "setting `tuning.max_redundancy` is 1: it must be between 2 and 1000",
            ]
        );
    }
}
