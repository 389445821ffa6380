//! The facts that a configuration sets, in a form common to all platforms.

use super::finding::Finding;
use super::text::Location;
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

/// The name that stands for every port.
pub(super) const EVERY_PORT: &str = "*";

/// A value and its location.
#[derive(Clone, Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) at: Location,
}

/// The limit of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cap {
    Packets(u64),
    Bytes(u64),
    /// No fixed number: the words of the configuration.
    Other(String),
}

/// How a queue is scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// With a weight or percent, in the platform's terms.
    Weighted(u64),
    Strict,
}

/// A classifier of packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Classifier {
    /// DSCPs and their queues.
    pub(super) maps: Vec<Located<(u8, u8)>>,
}

/// The settings of the tiny queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) cap: Option<Located<Cap>>,
    /// Settings that let the queue exceed its limit.
    pub(super) borrows: Vec<Located<String>>,
}

/// The shares of the link.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    pub(super) tiny: Option<Located<Share>>,
    pub(super) default: Option<Located<Share>>,
    /// The shares of queues of other classes, where all must add up to 100 percent.
    pub(super) others: u64,
}

/// How the tiny queue drops packets before it is full.
#[derive(Clone, Debug, Default)]
pub(super) struct Aeolus {
    /// The thresholds where it begins and ends, in bytes.
    pub(super) bounds: Option<Located<(u64, u64)>>,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub(super) spares_ecn: bool,
    /// Whether all other packets are dropped at the upper threshold.
    pub(super) drops_all: bool,
}

/// How packets that meet a full tiny queue are trimmed.
#[derive(Debug, Default)]
pub(super) struct Trimming {
    /// Bytes that remain of a packet.
    pub(super) size: Option<Located<u64>>,
    /// The DSCP of trimmed packets.
    pub(super) dscp: Option<Located<u64>>,
    /// Their queue.
    pub(super) queue: Option<Located<u64>>,
    /// Whether trimming is off, on platforms that have a setting for it.
    pub(super) is_off: bool,
    /// Settings that trim packets of the tiny queue.
    pub(super) eligible: Bindings<()>,
}

/// Named settings and the ports that refer to them.
#[derive(Clone, Debug)]
pub(super) struct Bindings<T> {
    /// The settings by name: class maps, profiles, policies.
    pub(super) named: BTreeMap<String, T>,
    /// Ports, and the names they refer to.
    pub(super) bound: Vec<Located<(String, String)>>,
}

impl<T> Default for Bindings<T> {
    fn default() -> Self {
        Self { named: BTreeMap::new(), bound: Vec::new() }
    }
}

impl<T: Default> Bindings<T> {
    pub(super) fn entry(&mut self, name: &str) -> &mut T {
        self.named.entry(name.to_owned()).or_default()
    }

    pub(super) fn bind(&mut self, port: &str, name: &str, at: &Location) {
        let value = (port.to_owned(), name.to_owned());
        self.bound.push(Located { value, at: at.clone() });
    }
}

/// All facts that the judge needs.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) classifiers: Bindings<Classifier>,
    pub(super) queues: Bindings<Queue>,
    pub(super) schedules: Bindings<Schedule>,
    /// Queues with priority flow control.
    pub(super) pfc: Vec<Located<u8>>,
    /// The fields of the ECMP hash.
    pub(super) hash: Option<Located<Vec<Field>>>,
    pub(super) seed: Option<Located<u64>>,
    /// Prefixes and next hops.
    pub(super) routes: Vec<Located<(String, String)>>,
    pub(super) decapsulates: Vec<Located<String>>,
    /// Addresses of tunnels, and the prefixes from which they take packets.
    pub(super) decapsulates_from: Vec<Located<(String, BTreeSet<String>)>>,
    /// Settings that drop packets early. Ports need not have any.
    pub(super) aeolus: Bindings<Aeolus>,
    pub(super) trimming: Trimming,
    /// Findings of the parser itself.
    pub(super) findings: Vec<Finding>,
}

/// A field of a packet that ECMP hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    SourceAddress,
    DestinationAddress,
    Protocol,
    SourcePort,
    DestinationPort,
}

impl Facts {
    pub(super) fn report(
        &mut self,
        at: &Location,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.findings.push(Finding::new(at, found, expected, remedy));
    }
}

impl<T> Located<T> {
    pub(super) fn new(value: T, at: &Location) -> Self {
        Self { value, at: at.clone() }
    }

    /// Wraps the value in `Some`, to replace an earlier one.
    pub(super) fn some(value: T, at: &Location) -> Option<Self> {
        Some(Self::new(value, at))
    }
}

impl Field {
    pub(super) const ALL: [Self; 5] = [
        Self::SourceAddress,
        Self::DestinationAddress,
        Self::Protocol,
        Self::SourcePort,
        Self::DestinationPort,
    ];
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SourceAddress => "source address",
            Self::DestinationAddress => "destination address",
            Self::Protocol => "protocol",
            Self::SourcePort => "source port",
            Self::DestinationPort => "destination port",
        })
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Bytes(n) => write!(f, "{n} bytes"),
            Self::Other(what) => f.write_str(what),
        }
    }
}
