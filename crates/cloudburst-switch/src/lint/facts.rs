//! What a configuration says, whatever the language.

use super::Finding;
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

/// The name of a port when all of them are meant.
pub(super) const EVERY_PORT: &str = "*";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) line: usize,
}

/// A value, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Seen<T> {
    pub(super) value: T,
    pub(super) at: Place,
}

/// How much a queue holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cap {
    Packets(u64),
    Bytes(u64),
    /// No fixed number, in the words of the configuration.
    Not(String),
}

/// How a queue has its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// Weight or percent, as the platform has it.
    Weighted(u64),
    Strict,
}

/// What tells packets apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Classifier {
    /// DSCP and queue.
    pub(super) maps: Vec<Seen<(u8, u8)>>,
}

/// What the tiny queue holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) cap: Option<Seen<Cap>>,
    /// What lets it take more than that.
    pub(super) borrows: Vec<Seen<String>>,
}

/// How the link is shared.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    pub(super) tiny: Option<Seen<Share>>,
    pub(super) default: Option<Seen<Share>>,
    /// What queues of other classes have, where all must come to 100 percent.
    pub(super) others: u64,
}

/// How the tiny queue drops packets before it is full.
#[derive(Clone, Debug, Default)]
pub(super) struct Aeolus {
    /// Where it begins and ends, in bytes.
    pub(super) bounds: Option<Seen<(u64, u64)>>,
    /// Packets that are ECN capable are marked, not dropped.
    pub(super) spares_ecn: bool,
    /// That all others are dropped at the upper bound.
    pub(super) is_sure: bool,
}

/// What becomes of packets that find the tiny queue full, if they are trimmed.
#[derive(Debug, Default)]
pub(super) struct Trimming {
    /// Bytes that are left of a packet.
    pub(super) size: Option<Seen<u64>>,
    /// What trimmed packets are marked with, and their queue.
    pub(super) dscp: Option<Seen<u64>>,
    pub(super) queue: Option<Seen<u64>>,
    /// Whether trimming is switched off, where that is said apart.
    pub(super) is_off: bool,
    /// What trims packets of the tiny queue.
    pub(super) eligible: Given<()>,
}

/// What is given to ports by name.
#[derive(Clone, Debug)]
pub(super) struct Given<T> {
    /// By name: class maps, profiles, policies.
    pub(super) named: BTreeMap<String, T>,
    /// Which port has which.
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

/// All that the judge asks for.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) classifiers: Given<Classifier>,
    pub(super) queues: Given<Queue>,
    pub(super) schedules: Given<Schedule>,
    /// Queues with priority flow control.
    pub(super) pfc: Vec<Seen<u8>>,
    /// What the ECMP hash takes.
    pub(super) hash: Option<Seen<Vec<Field>>>,
    pub(super) seed: Option<Seen<u64>>,
    /// Prefixes and next hops.
    pub(super) routes: Vec<Seen<(String, String)>>,
    pub(super) decapsulates: Vec<Seen<String>>,
    /// Addresses of tunnels, and the prefixes that they take packets from.
    pub(super) decapsulates_from: Vec<Seen<(String, BTreeSet<String>)>>,
    /// What drops packets early; ports need not have any.
    pub(super) aeolus: Given<Aeolus>,
    pub(super) trimming: Trimming,
    /// What a parser itself has to say.
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
        self.findings.push(finding(at, found, expected, remedy));
    }
}

pub(super) fn finding(
    at: &Place,
    found: impl Into<String>,
    expected: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    Finding {
        file: at.file.clone(),
        line: at.line,
        found: found.into(),
        expected: expected.into(),
        remedy: remedy.into(),
    }
}

impl<T> Seen<T> {
    pub(super) fn new(value: T, at: &Place) -> Self {
        Self { value, at: at.clone() }
    }

    /// For the last one counts.
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
