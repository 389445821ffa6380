//! What the switches between endpoints do.

use super::capacity::MIN_CAPACITY;
use super::{Classes, ConfigError};
use crate::rate::Downlink;
use core::fmt;
use core::str::FromStr;

/// The default DSCP of packets.
pub const DEFAULT_DSCP: u8 = 43;
/// The maximum number of DSCPs of an endpoint: one for each class.
const MAX_DSCPS: usize = 8;

/// What the switches of the network do with packets of an endpoint, and which messages are pulled because of
/// that. The default needs one shallow queue for [`DEFAULT_DSCP`].
///
/// Write it with `..Fabric::default()`, as [`Config`](super::Config).
///
/// # Example
///
/// ```
/// use cloudburst_core::config::{Classes, Config, Fabric, Thresholds};
///
/// // Answers have a queue of their own, and so have symbols of long messages.
/// let fabric = Fabric {
///     dscps: vec![46, 43, 45],
///     classes: Classes::ByLeft(Thresholds::new(&[20_000])?),
///     ..Fabric::default()
/// };
/// Config { fabric, ..Config::default() }.check()?;
/// # Ok::<(), cloudburst_core::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    /// The DSCPs of the classes of packets: one to eight values, each from 0 to 63. Default
    /// [`DEFAULT_DSCP`] for all classes.
    ///
    /// Class 0 is control: handshakes and answers. Class 1 is symbols or, if [`classes`](Self::classes) has
    /// several, the most urgent symbols; less urgent symbols have the classes after it. Classes beyond the
    /// last DSCP share it. With `[46, 43]`, switches can prefer answers, which are small and end bursts, to
    /// symbols; with `[43, 43, 45]`, answers and short messages to long ones in two queues. An answer that
    /// leaves in the same batch as symbols of class 1 has their DSCP.
    ///
    /// Switches should give each a queue that is a few packets deep: in a deep one, surplus symbols delay
    /// needed ones. Set the same DSCPs at both ends: each end warns once of packets that arrive with none of
    /// them.
    pub dscps: Vec<u8>,
    /// How symbols are sorted into classes. Default: one class.
    ///
    /// With several classes, short messages overtake long ones if switches serve the classes' DSCPs
    /// by strict priority and the endpoint has a DSCP for each. The two ends need not agree. With
    /// one DSCP, or one queue for all, several classes gain nothing.
    pub classes: Classes,
    /// Which packets are marked as ECN-capable. Default: none.
    pub ecn: EcnMode,
    /// The DSCP from 0 to 63 that switches set in symbols that they trim: they cut off the payload of a
    /// packet that finds its queue full, and forward the header with priority (NDP; SCDP, section IV-B).
    /// Default `None`: they do not trim. Takes effect only with peers that set it, too; set the same DSCP at
    /// both ends, or each warns once of packets that arrive with it.
    ///
    /// Symbols then carry an 8-byte tag that authenticates the header of a trimmed one. A trimmed symbol
    /// counts as lost but its path as alive, so that a lost symbol of a pulled message is pulled again
    /// within a round trip, without waiting for a timer or a later packet. Other messages gain little.
    ///
    /// It gains nothing without switches that trim and that adjust the lengths in the IP and UDP headers and
    /// the UDP checksum: hosts drop packets that are shorter than these lengths. Paths with outer headers
    /// cannot be combined with it: the device that removes the header drops trimmed packets.
    pub trim_dscp: Option<u8>,
    /// The size in bytes from which messages are pulled ([`BurstPolicy::Pulled`]) unless they set a
    /// policy of their own. Default `usize::MAX`: none are. Set it where many hosts send to one at a time
    /// and its switch port drops what they send together; pulled messages are slower by round trips
    /// elsewhere.
    ///
    /// [`BurstPolicy::Pulled`]: super::BurstPolicy::Pulled
    pub pull_above: usize,
    /// The rate at which this endpoint pulls all messages together. Default `None`: `capacity` times
    /// the share of `rate`, for this endpoint alone. Endpoints of a process that share a link must use clones
    /// of one [`Downlink`], or together they pull more than the link carries.
    pub downlink: Option<Downlink>,
    /// Whether the queues are shared with flows of others, such as TCP's, to which the rate must adapt
    /// ([`Rate::Auto`](super::Rate::Auto)). Default false.
    pub shared: bool,
}

impl Default for Fabric {
    fn default() -> Self {
        Self {
            dscps: vec![DEFAULT_DSCP],
            classes: Classes::default(),
            ecn: EcnMode::default(),
            trim_dscp: None,
            pull_above: usize::MAX,
            downlink: None,
            shared: false,
        }
    }
}

impl Fabric {
    /// The network of a cloud, for tenants who cannot set up its queues: one class of packets without a DSCP,
    /// as clouds ignore or reset it, in queues shared with the flows of others.
    ///
    /// The rate then adapts, unless [`Config::rate`](super::Config::rate) says otherwise; set
    /// [`Config::capacity`](super::Config::capacity) to the bandwidth of the instance. Clouds cap each flow, so
    /// messages need several ports, as they have by default.
    pub fn cloud() -> Self {
        Self { dscps: vec![0], shared: true, ..Self::default() }
    }

    /// Checks every field; [`Config::check`](super::Config::check) does so, too.
    ///
    /// # Errors
    ///
    /// Names the field that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let is_dscp = |dscp: &u8| *dscp < 64;
        if !(1..=MAX_DSCPS).contains(&self.dscps.len()) || !self.dscps.iter().all(is_dscp) {
            return Err(ConfigError {
                field: "fabric.dscps",
                value: format!("{:?}", self.dscps),
                expected: "1 to 8 values from 0 to 63",
            });
        }
        if let Some(dscp) = self.trim_dscp
            && !is_dscp(&dscp)
        {
            return Err(ConfigError {
                field: "fabric.trim_dscp",
                value: dscp.to_string(),
                expected: "between 0 and 63",
            });
        }
        if let Some(downlink) = self.downlink.as_ref().map(Downlink::bits_per_second)
            && downlink < MIN_CAPACITY
        {
            return Err(ConfigError {
                field: "fabric.downlink",
                value: downlink.to_string(),
                expected: "at least 8000 bits per second",
            });
        }
        Ok(())
    }
}

impl FromStr for Fabric {
    type Err = ConfigError;

    /// Parses `tiny-queues`, the default, or `cloud` ([`Fabric::cloud`]).
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "tiny-queues" => Ok(Self::default()),
            "cloud" => Ok(Self::cloud()),
            _ => Err(ConfigError {
                field: "fabric",
                value: format!("`{text}`"),
                expected: "`tiny-queues` or `cloud`",
            }),
        }
    }
}

/// Which packets are marked as ECN-capable, ECT(0) (RFC 3168).
///
/// Its text form is `off`, `on` or `aeolus`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EcnMode {
    /// None: all packets are Not-ECT, and switches drop them rather than mark them.
    #[default]
    Off,
    /// All. Receivers report to senders how many symbols were marked CE. A path with marks is not reused
    /// ([`Order::Recycled`](crate::path::Order::Recycled)). Set it where switches mark packets of the
    /// endpoint's DSCPs.
    On,
    /// All but the symbols that are sent before the receiver's first answer to their message, as in Aeolus
    /// (SIGCOMM 2020): a switch that marks (RED with ECN) at one low threshold, such as 6 KB, drops these
    /// symbols beyond it and spares all else. Set it at both ends, or the answers are dropped first, and only
    /// where messages are pulled: it slows down bursts. Without such a switch it gains nothing.
    Aeolus,
}

impl FromStr for EcnMode {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "aeolus" => Ok(Self::Aeolus),
            _ => Err(ConfigError {
                field: "ecn",
                value: format!("`{text}`"),
                expected: "`off`, `on` or `aeolus`",
            }),
        }
    }
}

impl fmt::Display for EcnMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Aeolus => "aeolus",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_of_ecn_is_written_as_it_is_read() {
        for mode in [EcnMode::Off, EcnMode::On, EcnMode::Aeolus] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!("true".parse::<EcnMode>().unwrap_err().field, "ecn");
    }

    #[test]
    fn a_fabric_is_known_by_its_name() {
        assert_eq!("tiny-queues".parse(), Ok(Fabric::default()));
        assert_eq!("cloud".parse(), Ok(Fabric::cloud()));
        assert_eq!("aws".parse::<Fabric>().unwrap_err().field, "fabric");
    }
}
