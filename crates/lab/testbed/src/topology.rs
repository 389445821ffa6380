//! The parameters of a fabric, and the names of its nodes and links.

use crate::Error;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// The most path IDs per spine: their number and that of a leaf share a byte of an address.
const MAX_PATH_IDS: u16 = 3;

/// The parameters of a fabric. [`Topology::default`] is the testbed of the paper's Figure 8, ten times
/// slower.
///
/// [`Fabric::up`](crate::Fabric::up) checks all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Hosts, 1 to 250, spread over the leaves evenly and in order. Default 8.
    pub hosts: u16,
    /// Leaves, 1 to 64. Default 2.
    pub leaves: u16,
    /// Spines, 1 to 64; each is linked to every leaf. Default 4.
    pub spines: u16,
    /// Bits per second of a link between host and leaf, 1 Mb/s to 10 Gb/s. Default 100 Mb/s: two
    /// cores carry eight hosts at that rate.
    pub rate: u64,
    /// Bits per second of a link between leaf and spine. Default: as [`rate`](Self::rate). If the sum
    /// over the spines is below `rate` times the hosts per leaf, the fabric is oversubscribed.
    pub uplink_rate: Option<u64>,
    /// DSCP of the packets that go into the tiny queue, 0 to 63. Default 43.
    pub dscp: u8,
    /// DSCPs of further tiny queues, at most 3, one for each queue. Default none. Ports serve the
    /// queue of [`dscp`](Self::dscp) first, by strict priority, then these in order; all of them
    /// share one weight.
    #[serde(default)]
    pub low_dscps: Vec<u8>,
    /// Capacity in packets of each tiny queue of a switch's port. Default 8. A deeper queue delays
    /// packets, a shallower one drops short bursts.
    pub tiny_packets: u32,
    /// How switches trim packets that find a tiny queue full. Default `None`: they are dropped.
    ///
    /// With it or [`selective`](Self::selective), a process emulates the tiny queues of switches,
    /// because the kernel has none that do so. They are served at the rate of the port: other traffic
    /// that shares the port delays packets, but does not lengthen the emulated queues. Excludes
    /// [`low_dscps`](Self::low_dscps).
    #[serde(default)]
    pub trim: Option<Trim>,
    /// Bytes in a tiny queue of a switch from which packets that are not ECN-capable are dropped, so
    /// that others have the rest of it to themselves, as by RED with ECN and one threshold (Aeolus); no
    /// packet is marked. Default `None`: all packets are treated alike. Excludes
    /// [`trim`](Self::trim), and has the same restrictions.
    #[serde(default)]
    pub selective: Option<u32>,
    /// Capacity in packets of the tiny queue of a host's port. Default 128, the largest block:
    /// packets that a host itself drops were never on the network.
    pub host_tiny_packets: u32,
    /// Capacity in packets of the queue of all other packets. Default 256.
    pub default_packets: u32,
    /// How the two queues share a busy link.
    pub weights: Weights,
    /// Percent of the packets that each link between leaf and spine loses, in each direction. Default 0.
    pub loss: f64,
    /// Bytes of the largest IP packet, 1,280 to 9,000. Default 1,500. Encapsulation takes 20.
    pub mtu: u32,
    /// Whether hosts decapsulate IP-in-IP packets addressed to them, as spines do: for XPath with the
    /// path in an outer header. Default false, because a program on the host that decapsulates
    /// itself would receive all such packets twice.
    pub hosts_decapsulate: bool,
    /// XPath path IDs, that is, addresses of each host, per spine, 1 to 3. Default 1. With more,
    /// several paths share an uplink, as in fabrics with a layer below the spines.
    pub path_ids: u16,
    /// The seed of the switches' ECMP hash seeds: each leaf hashes differently, and fabrics with the
    /// same seed hash alike. Default 1.
    pub seed: u32,
}

/// The maximum number of tiny queues besides the first one.
const MAX_LOW: u64 = 3;

/// Packet trimming (NDP): a packet that finds a tiny queue full is truncated, with correct lengths
/// and checksums, and overtakes the others. The text form is `128:44`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trim {
    /// Bytes that remain of a frame, including its Ethernet header: 64 to 1,280.
    pub bytes: u32,
    /// DSCP of trimmed packets, 0 to 63. They have a queue of as many bytes as the tiny queue, which is served
    /// first. Packets that an earlier switch has trimmed wait with the others.
    pub dscp: u8,
}

/// Weighted round robin: the guaranteed share of a busy link for each queue. Capacity that one does
/// not use is available to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// The weight of the tiny queue, or of all tiny queues together, 1 to 100. Default 1.
    pub tiny: u32,
    /// The weight of the queue of all other packets, 1 to 100. Default 1.
    pub default: u32,
}

/// The limits and weights of switches' queues, which
/// [`Fabric::set_queues`](crate::Fabric::set_queues) can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queues {
    /// [`Topology::tiny_packets`].
    pub tiny_packets: u32,
    /// [`Topology::default_packets`].
    pub default_packets: u32,
    /// [`Topology::weights`].
    pub weights: Weights,
}

impl Default for Topology {
    fn default() -> Self {
        Self {
            hosts: 8,
            leaves: 2,
            spines: 4,
            rate: 100_000_000,
            uplink_rate: None,
            dscp: 43,
            low_dscps: Vec::new(),
            tiny_packets: 8,
            trim: None,
            selective: None,
            host_tiny_packets: 128,
            default_packets: 256,
            weights: Weights { tiny: 1, default: 1 },
            loss: 0.0,
            mtu: 1500,
            hosts_decapsulate: false,
            path_ids: 1,
            seed: 1,
        }
    }
}

impl Topology {
    /// # Errors
    ///
    /// Names the first field that is out of range, its value and its range.
    pub fn validate(&self) -> Result<(), Error> {
        let within = |field, value: u64, low: u64, high: u64| {
            let expected = || format!("{low} to {high}");
            let wrong = || parameter(field, value, expected());
            if (low..=high).contains(&value) { Ok(()) } else { Err(wrong()) }
        };
        within("hosts", self.hosts.into(), 1, 250)?;
        within("leaves", self.leaves.into(), 1, 64)?;
        within("spines", self.spines.into(), 1, 64)?;
        if self.hosts < self.leaves {
            let expected = format!("at least one for each of the {} leaves", self.leaves);
            return Err(parameter("hosts", self.hosts, expected));
        }
        within("rate", self.rate, 1_000_000, 10_000_000_000)?;
        within("uplink_rate", self.uplink_rate(), 1_000_000, 10_000_000_000)?;
        within("dscp", self.dscp.into(), 0, 63)?;
        within("low_dscps", self.low_dscps.len() as u64, 0, MAX_LOW)?;
        for (place, &dscp) in self.low_dscps.iter().enumerate() {
            within("low_dscps", dscp.into(), 0, 63)?;
            if dscp == self.dscp || self.low_dscps[..place].contains(&dscp) {
                return Err(parameter("low_dscps", dscp, "different from other DSCPs".into()));
            }
        }
        if let Some(Trim { bytes, dscp }) = self.trim {
            within("trim.bytes", bytes.into(), 64, 1280)?;
            within("trim.dscp", dscp.into(), 0, 63)?;
            if dscp == self.dscp {
                return Err(parameter("trim.dscp", dscp, "different from other DSCPs".into()));
            }
        }
        if let Some(bytes) = self.selective {
            within("selective", bytes.into(), 1, 1_000_000_000)?;
            if self.trim.is_some() {
                return Err(parameter("selective", bytes, "none, or no trimming".into()));
            }
        }
        if let (true, Some(dscp)) = (self.is_emulated(), self.low_dscps.first()) {
            let expected = "none where switches trim or drop selectively".into();
            return Err(parameter("low_dscps", dscp, expected));
        }
        within("tiny_packets", self.tiny_packets.into(), 1, 100_000)?;
        within("host_tiny_packets", self.host_tiny_packets.into(), 1, 100_000)?;
        within("default_packets", self.default_packets.into(), 1, 100_000)?;
        within("weights.tiny", self.weights.tiny.into(), 1, 100)?;
        within("weights.default", self.weights.default.into(), 1, 100)?;
        within("mtu", self.mtu.into(), 1280, 9000)?;
        within("path_ids", self.path_ids.into(), 1, MAX_PATH_IDS.into())?;
        check_loss(self.loss)
    }

    /// Returns the queues of its switches.
    #[must_use]
    pub const fn queues(&self) -> Queues {
        let Self { tiny_packets, default_packets, weights, .. } = *self;
        Queues { tiny_packets, default_packets, weights }
    }

    /// Returns whether a process emulates the tiny queues of switches.
    pub(crate) const fn is_emulated(&self) -> bool {
        self.trim.is_some() || self.selective.is_some()
    }

    /// Returns whether it does so for the ports of `node`.
    pub(crate) const fn emulates(&self, node: Node) -> bool {
        self.is_emulated() && !matches!(node, Node::Host(_))
    }

    /// Returns the bits per second between a leaf and a spine.
    #[must_use]
    pub fn uplink_rate(&self) -> u64 {
        self.uplink_rate.unwrap_or(self.rate)
    }

    /// Returns the bits per second of a link.
    #[must_use]
    pub fn link_rate(&self, link: Link) -> u64 {
        if matches!(link.upper, Node::Spine(_)) { self.uplink_rate() } else { self.rate }
    }

    /// Returns the rate of a leaf's hosts divided by that of its uplinks.
    #[must_use]
    pub fn over_subscription(&self) -> f64 {
        let hosts = (1..=self.leaves).map(|leaf| self.hosts_of(leaf).count()).max().unwrap_or(0);
        hosts as f64 * self.rate as f64 / (f64::from(self.spines) * self.uplink_rate() as f64)
    }

    /// Returns the leaf of a host.
    #[must_use]
    pub fn leaf_of(&self, host: u16) -> u16 {
        let before = u32::from(host.saturating_sub(1)) * u32::from(self.leaves);
        (before / u32::from(self.hosts.max(1))) as u16 + 1
    }

    /// Returns the hosts of a leaf.
    pub fn hosts_of(&self, leaf: u16) -> impl Iterator<Item = u16> + '_ {
        (1..=self.hosts).filter(move |&host| self.leaf_of(host) == leaf)
    }

    /// Returns all nodes: hosts, then leaves, then spines.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + use<> {
        let hosts = self.hosts;
        let leaves = self.leaves;
        let spines = self.spines;
        let hosts = (1..=hosts).map(Node::Host);
        hosts.chain((1..=leaves).map(Node::Leaf)).chain((1..=spines).map(Node::Spine))
    }

    /// Returns the XPath path IDs to any host, grouped by spine: the spine of each, and its number
    /// there, from 1.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (u16, u16)> + use<> {
        let spines = self.spines;
        let path_ids = self.path_ids;
        (1..=spines).flat_map(move |spine| (1..=path_ids).map(move |number| (spine, number)))
    }

    /// Returns the nodes that decapsulate IP-in-IP packets.
    pub(crate) fn decapsulating(&self) -> impl Iterator<Item = Node> + use<> {
        let hosts = if self.hosts_decapsulate { self.hosts } else { 0 };
        (1..=hosts).map(Node::Host).chain((1..=self.spines).map(Node::Spine))
    }

    /// Returns all links: those of the hosts, then those of the spines.
    pub fn links(&self) -> Vec<Link> {
        let hosts = (1..=self.hosts)
            .map(|host| Link { lower: Node::Host(host), upper: Node::Leaf(self.leaf_of(host)) });
        let spines = (1..=self.leaves).flat_map(|leaf| {
            (1..=self.spines)
                .map(move |spine| Link { lower: Node::Leaf(leaf), upper: Node::Spine(spine) })
        });
        hosts.chain(spines).collect()
    }

    /// Returns the nodes that `node` is linked to.
    #[must_use]
    pub fn neighbours(&self, node: Node) -> Vec<Node> {
        match node {
            Node::Host(host) => vec![Node::Leaf(self.leaf_of(host))],
            Node::Leaf(leaf) => {
                let hosts = self.hosts_of(leaf).map(Node::Host);
                hosts.chain((1..=self.spines).map(Node::Spine)).collect()
            }
            Node::Spine(_) => (1..=self.leaves).map(Node::Leaf).collect(),
        }
    }

    /// # Errors
    ///
    /// If there is no such node.
    pub fn check_node(&self, node: Node) -> Result<(), Error> {
        let (index, count, kind) = match node {
            Node::Host(index) => (index, self.hosts, 'h'),
            Node::Leaf(index) => (index, self.leaves, 'l'),
            Node::Spine(index) => (index, self.spines, 's'),
        };
        if (1..=count).contains(&index) {
            return Ok(());
        }
        Err(Error::NoSuchNode { node, has: format!("{kind}1 to {kind}{count}") })
    }

    /// # Errors
    ///
    /// If there is no such node or link.
    pub fn check_target(&self, target: Target) -> Result<(), Error> {
        match target {
            Target::Node(node) => self.check_node(node),
            Target::Link(link) => {
                self.check_node(link.lower)?;
                self.check_node(link.upper)?;
                let joined = self.neighbours(link.lower).contains(&link.upper);
                if joined { Ok(()) } else { Err(Error::NoSuchLink { link }) }
            }
        }
    }

    /// Returns the parameters that differ from those of `other`, with both values of each.
    pub(crate) fn differences(&self, other: &Self) -> String {
        let fields = |topology| match serde_json::to_value(topology) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let ours = fields(self);
        let theirs = fields(other);
        let differ = ours.iter().filter(|(field, value)| theirs.get(*field) != Some(value));
        let text = differ.map(|(field, value)| match theirs.get(field) {
            Some(theirs) => format!("{field} {value}, not {theirs}"),
            None => field.clone(),
        });
        text.collect::<Vec<_>>().join("; ")
    }
}

pub(crate) fn check_loss(percent: f64) -> Result<(), Error> {
    if (0.0..=100.0).contains(&percent) {
        return Ok(());
    }
    Err(parameter("loss", percent, "a percentage, 0 to 100".into()))
}

fn parameter(field: &'static str, value: impl fmt::Display, expected: String) -> Error {
    Error::Parameter { field, value: value.to_string(), expected }
}

/// A host or a switch, counted from 1. The text form is `h1`, `l1` or `s1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A host.
    Host(u16),
    /// A leaf, or top-of-rack switch.
    Leaf(u16),
    /// A spine switch.
    Spine(u16),
}

/// A link, by its ends. The text form is `h1-l1` or `l1-s3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The end that is nearer to the hosts.
    pub lower: Node,
    /// The end that is nearer to the spines.
    pub upper: Node,
}

/// The target of a failure: all links of a node, or one link. The text form is `s2` or `l1-s3`;
/// `spine:2`, `spine2` and `link:leaf1-spine3` are accepted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A host or switch with all its links.
    Node(Node),
    /// A link.
    Link(Link),
}

impl Link {
    /// Returns the link between two nodes, given in any order.
    #[must_use]
    pub fn between(one: Node, other: Node) -> Self {
        Self { lower: one.min(other), upper: one.max(other) }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(index) => write!(f, "h{index}"),
            Self::Leaf(index) => write!(f, "l{index}"),
            Self::Spine(index) => write!(f, "s{index}"),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.lower, self.upper)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => node.fmt(f),
            Self::Link(link) => link.fmt(f),
        }
    }
}

impl FromStr for Node {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || parameter("node", text, "h1, l1 or s1: a host, leaf or spine".into());
        let digits = text.find(|c: char| c.is_ascii_digit()).ok_or_else(wrong)?;
        let (kind, index) = text.split_at(digits);
        let index: u16 = index.parse().map_err(|_| wrong())?;
        match kind.trim_end_matches(':') {
            "h" | "host" => Ok(Self::Host(index)),
            "l" | "leaf" => Ok(Self::Leaf(index)),
            "s" | "spine" => Ok(Self::Spine(index)),
            _ => Err(wrong()),
        }
    }
}

impl FromStr for Link {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || parameter("link", text, "h1-l1 or l1-s3: the two ends".into());
        let ends = text.strip_prefix("link:").unwrap_or(text);
        let (one, other) = ends.split_once('-').ok_or_else(wrong)?;
        let one = one.parse().map_err(|_| wrong())?;
        let other = other.parse().map_err(|_| wrong())?;
        Ok(Self::between(one, other))
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.contains('-') { text.parse().map(Self::Link) } else { text.parse().map(Self::Node) }
    }
}

/// Serializes as text, so that state files and `--json` show the names that users type.
macro_rules! as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

as_text!(Node, Link, Target);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_spread_over_the_leaves_in_order() {
        let topology = Topology::default();
        let leaves: Vec<_> = (1..=8).map(|host| topology.leaf_of(host)).collect();
        assert_eq!(leaves, [1, 1, 1, 1, 2, 2, 2, 2]);
        let uneven = Topology { hosts: 5, leaves: 3, ..topology };
        let leaves: Vec<_> = (1..=5).map(|host| uneven.leaf_of(host)).collect();
        assert_eq!(leaves, [1, 1, 2, 2, 3]);
    }

    #[test]
    fn the_error_names_a_parameter_its_value_and_its_bounds() {
        let wrong = |change: fn(&mut Topology)| {
            let mut topology = Topology::default();
            change(&mut topology);
            topology.validate().unwrap_err().to_string()
        };
        assert_eq!(wrong(|t| t.spines = 0), "spines 0: expected 1 to 64");
        assert_eq!(wrong(|t| t.dscp = 64), "dscp 64: expected 0 to 63");
        let trim = Some(Trim { bytes: 128, dscp: 44 });
        let wrong_trim = |bytes, dscp| {
            let trim = Some(Trim { bytes, dscp });
            Topology { trim, ..Topology::default() }.validate().unwrap_err().to_string()
        };
        assert_eq!(wrong_trim(63, 44), "trim.bytes 63: expected 64 to 1280");
        assert_eq!(wrong_trim(128, 43), "trim.dscp 43: expected different from other DSCPs");
        let both = Topology { trim, selective: Some(6000), ..Topology::default() };
        let both = both.validate().unwrap_err().to_string();
        assert_eq!(both, "selective 6000: expected none, or no trimming");
        let low = Topology { trim, low_dscps: vec![45], ..Topology::default() };
        let low = low.validate().unwrap_err().to_string();
        assert_eq!(low, "low_dscps 45: expected none where switches trim or drop selectively");
        assert_eq!(wrong(|t| t.path_ids = 4), "path_ids 4: expected 1 to 3");
        assert_eq!(wrong(|t| t.loss = f64::NAN), "loss NaN: expected a percentage, 0 to 100");
        assert_eq!(
            wrong(|t| t.leaves = 9),
            "hosts 8: expected at least one for each of the 9 leaves"
        );
        assert_eq!(
            wrong(|t| t.uplink_rate = Some(1)),
            "uplink_rate 1: expected 1000000 to 10000000000"
        );
    }

    #[test]
    fn node_names_are_parsed_in_long_and_short_form() {
        for text in ["s2", "spine2", "spine:2"] {
            assert_eq!(text.parse::<Target>().unwrap(), Target::Node(Node::Spine(2)));
        }
        for text in ["l1-s3", "link:leaf1-spine3", "s3-l1", "link:spine:3-leaf:1"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), "l1-s3");
        }
        for text in ["", "x1", "s", "s-1", "l1-", "s99999", "s2x"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn links_join_hosts_to_their_leaf_and_leaves_to_every_spine() {
        let topology = Topology { hosts: 4, ..Topology::default() };
        assert_eq!(topology.links().len(), 4 + 2 * 4);
        let check = |text: &str| topology.check_target(text.parse().unwrap());
        assert!(check("h3-l2").is_ok() && check("l2-s4").is_ok() && check("h4").is_ok());
        assert!(matches!(check("h3-l1"), Err(Error::NoSuchLink { .. })));
        assert!(matches!(check("h1-s1"), Err(Error::NoSuchLink { .. })));
        assert!(matches!(check("s5"), Err(Error::NoSuchNode { .. })));
    }

    #[test]
    fn differences_between_topologies_are_named() {
        let topology = Topology::default();
        let other = Topology { spines: 2, uplink_rate: Some(5_000_000), ..topology.clone() };
        assert_eq!(topology.differences(&other), "spines 4, not 2; uplink_rate null, not 5000000");
        assert_eq!(other.over_subscription(), 40.0);
    }
}
