//! Traffic classes of symbols, which switches may serve in order of priority.

use super::ConfigError;
use crate::path::MAX_LEVELS;
use core::fmt;
use core::str::FromStr;

/// The maximum number of thresholds.
const MAX_THRESHOLDS: usize = MAX_LEVELS - 1;
/// The thresholds that are valid, as errors describe them.
const EXPECTED: &str = "1 to 3 thresholds in bytes, above 0 and in ascending order";

/// How symbols are sorted into traffic classes, the first of which is the most urgent. Switches
/// recognise a class by its DSCP, and may serve classes by strict priority.
///
/// After three timeouts in a row without an answer, all symbols of a message move to the first
/// class, so that overload in more urgent classes does not starve it.
///
/// The text form is `one`, `left:20000` or `sent:10000/100000`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Classes {
    /// All symbols are of the first class.
    #[default]
    One,
    /// By the bytes of the message that remain, as far as the receiver has reported. A message with
    /// at most the first threshold remaining is in the first class, and so on; one with more than the
    /// last threshold is in the last class. Messages of the same size thus begin in the same class,
    /// and the few symbols that repair a long message are urgent.
    ByLeft(Thresholds),
    /// By the bytes of the message already sent, as in PIAS (NSDI 2015, 4.1) and SCDP (IV-B): the
    /// first class until the first threshold is reached, and so on. For networks that already use
    /// such thresholds; Cloudburst knows the sizes of messages and does not need them.
    BySent(Thresholds),
}

/// One to three thresholds between classes, in bytes and in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    bytes: [u32; MAX_THRESHOLDS],
    count: usize,
}

impl Thresholds {
    /// Creates thresholds, one fewer than the number of classes.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] unless there are 1 to 3 thresholds, above 0 and in ascending order.
    pub fn new(bytes: &[u32]) -> Result<Self, ConfigError> {
        let ascends =
            bytes.first().is_some_and(|&first| first > 0) && bytes.is_sorted_by(|a, b| a < b);
        let mut all = [0; MAX_THRESHOLDS];
        match all.get_mut(..bytes.len()) {
            Some(slots) if ascends => slots.copy_from_slice(bytes),
            _ => return Err(refuse(format!("{bytes:?}"))),
        }
        Ok(Self { bytes: all, count: bytes.len() })
    }

    /// Returns the thresholds, in ascending order.
    pub fn bytes(&self) -> &[u32] {
        &self.bytes[..self.count]
    }

    /// The number of leading thresholds for which `is_passed` holds.
    fn passed(&self, is_passed: impl Fn(u64) -> bool) -> u8 {
        self.bytes().iter().take_while(|&&bytes| is_passed(bytes.into())).count() as u8
    }
}

impl Classes {
    /// Returns the number of classes.
    pub fn count(&self) -> usize {
        match self {
            Self::One => 1,
            Self::ByLeft(thresholds) | Self::BySent(thresholds) => thresholds.count + 1,
        }
    }

    /// Returns the class of the next symbol of a message of which `sent` bytes were sent and `left`
    /// remain, counted from 0, the most urgent.
    pub(crate) fn level(&self, sent: impl FnOnce() -> u64, left: impl FnOnce() -> u64) -> u8 {
        match self {
            Self::One => 0,
            Self::ByLeft(thresholds) => {
                let left = left();
                thresholds.passed(|bytes| left > bytes)
            }
            Self::BySent(thresholds) => {
                let sent = sent();
                thresholds.passed(|bytes| sent >= bytes)
            }
        }
    }
}

impl FromStr for Classes {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let thresholds = |list: &str| {
            let numbers = list.split('/').map(str::parse).collect::<Result<Vec<u32>, _>>();
            Thresholds::new(&numbers.map_err(|_| refuse(list.to_owned()))?)
        };
        match text.split_once(':') {
            None if text == "one" => Ok(Self::One),
            Some(("left", list)) => thresholds(list).map(Self::ByLeft),
            Some(("sent", list)) => thresholds(list).map(Self::BySent),
            _ => Err(ConfigError {
                field: "classes",
                value: text.to_owned(),
                expected: "`one`, or `left:` or `sent:` with thresholds in bytes, such as left:20000",
            }),
        }
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, thresholds) = match self {
            Self::One => return f.write_str("one"),
            Self::ByLeft(thresholds) => ("left", thresholds),
            Self::BySent(thresholds) => ("sent", thresholds),
        };
        f.write_str(name)?;
        for (place, bytes) in thresholds.bytes().iter().enumerate() {
            let separator = if place == 0 { ':' } else { '/' };
            write!(f, "{separator}{bytes}")?;
        }
        Ok(())
    }
}

const fn refuse(value: String) -> ConfigError {
    ConfigError { field: "classes", value, expected: EXPECTED }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> Classes {
        text.parse().unwrap()
    }

    #[test]
    fn the_class_changes_above_a_threshold_of_bytes_left_and_at_one_of_bytes_sent() {
        let level = |left: u64| classes("left:10000/20000").level(|| unreachable!(), || left);
        assert_eq!([0, 10_000, 10_001, 20_000, 20_001, u64::MAX].map(level), [0, 0, 1, 1, 2, 2]);
        let level = |sent: u64| classes("sent:10000").level(|| sent, || unreachable!());
        assert_eq!([0, 9_999, 10_000].map(level), [0, 0, 1]);
        assert_eq!(Classes::One.level(|| unreachable!(), || unreachable!()), 0);
    }

    #[test]
    fn classes_are_written_as_they_are_read() {
        for (text, count) in [("one", 1), ("left:20000", 2), ("sent:10000/100000/1000000", 4)] {
            assert_eq!((classes(text).to_string().as_str(), classes(text).count()), (text, count));
        }
        for wrong in
            ["", "two", "left", "left:", "left:0", "sent:2/1", "sent:1/2/3/4", "left:5000000000"]
        {
            let error = wrong.parse::<Classes>().unwrap_err();
            assert_eq!(error.field, "classes", "{error}");
        }
    }
}
