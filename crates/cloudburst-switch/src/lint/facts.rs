//! The facts that a configuration sets, in a form common to all platforms.

use super::finding::Finding;
use super::text::Place;
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

/// The name that stands for every port.
pub(super) const EVERY_PORT: &str = "*";

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Seen<T> {
    pub(super) value: T,
    pub(super) at: Place,
}

/// The limit of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cap {
    Packets(u64),
    Bytes(u64),
    /// No fixed number: the words of the configuration.
    Not(String),
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
    pub(super) maps: Vec<Seen<(u8, u8)>>,
}

/// The settings of the tiny queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) cap: Option<Seen<Cap>>,
    /// Settings that let the queue exceed its limit.
    pub(super) borrows: Vec<Seen<String>>,
}

/// The shares of the link.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    pub(super) tiny: Option<Seen<Share>>,
    pub(super) default: Option<Seen<Share>>,
    /// The shares of queues of other classes, where all must add up to 100 percent.
    pub(super) others: u64,
}

/// How the tiny queue drops packets before it is full.
#[derive(Clone, Debug, Default)]
pub(super) struct Aeolus {
    /// The thresholds where it begins and ends, in bytes.
    pub(super) bounds: Option<Seen<(u64, u64)>>,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub(super) spares_ecn: bool,
    /// Whether all other packets are dropped at the upper threshold.
    pub(super) is_sure: bool,
}

/// How packets that meet a full tiny queue are trimmed.
#[derive(Debug, Default)]
pub(super) struct Trimming {
    /// Bytes that remain of a packet.
    pub(super) size: Option<Seen<u64>>,
    /// The DSCP of trimmed packets.
    pub(super) dscp: Option<Seen<u64>>,
    /// Their queue.
    pub(super) queue: Option<Seen<u64>>,
    /// Whether trimming is off, on platforms that have a setting for it.
    pub(super) is_off: bool,
    /// Settings that trim packets of the tiny queue.
    pub(super) eligible: Given<()>,
}

/// Named settings and the ports that refer to them.
#[derive(Clone, Debug)]
pub(super) struct Given<T> {
    /// The settings by name: class maps, profiles, policies.
    pub(super) named: BTreeMap<String, T>,
    /// Ports, and the names they refer to.
    pub(super) bound: Vec<Seen<(String, String)>>,
}

impl<T> Default for Given<T> {
    fn default() -> Self {
        Self { named: BTreeMap::new(), bound: Vec::new() }
    }
}

impl<T: Default> Given<T> {
    pub(super) fn entry(&mut self, name: &str) -> &mut T {
        self.named.entry(name.to_owned()).or_default()
    }

    pub(super) fn bind(&mut self, port: &str, name: &str, at: &Place) {
        let value = (port.to_owned(), name.to_owned());
        self.bound.push(Seen { value, at: at.clone() });
    }
}

/// All facts that the judge needs.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) classifiers: Given<Classifier>,
    pub(super) queues: Given<Queue>,
    pub(super) schedules: Given<Schedule>,
    /// Queues with priority flow control.
    pub(super) pfc: Vec<Seen<u8>>,
    /// The fields of the ECMP hash.
    pub(super) hash: Option<Seen<Vec<Field>>>,
    pub(super) seed: Option<Seen<u64>>,
    /// Prefixes and next hops.
    pub(super) routes: Vec<Seen<(String, String)>>,
    pub(super) decapsulates: Vec<Seen<String>>,
    /// Addresses of tunnels, and the prefixes from which they take packets.
    pub(super) decapsulates_from: Vec<Seen<(String, BTreeSet<String>)>>,
    /// Settings that drop packets early. Ports need not have any.
    pub(super) aeolus: Given<Aeolus>,
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
    pub(super) fn find(
        &mut self,
        at: &Place,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.findings.push(Finding::new(at, found, expected, remedy));
    }
}

impl<T> Seen<T> {
    pub(super) fn new(value: T, at: &Place) -> Self {
        Self { value, at: at.clone() }
    }

    /// Wraps the value in `Some`, to replace an earlier one.
    pub(super) fn some(value: T, at: &Place) -> Option<Self> {
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
            Self::Not(what) => f.write_str(what),
        }
    }
}
