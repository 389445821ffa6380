//! What the number of a path means on the wire.

mod error;
mod file;
mod resolve;
mod text;

pub use error::PathMapError;
pub(crate) use file::read;
pub(crate) use resolve::{Lanes, Usable};

use self::file::Table;
use cloudburst_core::path::Order;
use ipnet::IpNet;
use std::collections::HashSet;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

/// Which paths an endpoint spreads its packets over.
///
/// In text form, for configuration files and command lines:
///
/// | map | a path is |
/// |---|---|
/// | `ecmp:N` | one of N source ports, which switches hash onto some path |
/// | `ecmp:NxM` | one of N source ports with one of M ports of the peer |
/// | `flowlabel:N` | one of N IPv6 flow labels |
/// | `xpath:ADDR,...` | one of the peer's addresses |
/// | `xpath-ipip:ID,...` | a path ID: the destination of an outer IPv4 header |
/// | `bounce:ADDR,...` | a spine switch, which removes the outer header that names it |
/// | `file:PATH` | whatever a TOML file says of the destination |
///
/// `xpath-ipip` and `bounce` write headers themselves, which takes CAP_NET_RAW and a socket bound
/// to a certain IPv4 address; the others need no privilege. They add 20 bytes to each packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathMap(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Ecmp {
        source_ports: u16,
        destination_ports: u16,
    },
    FlowLabel {
        labels: u16,
    },
    /// Addresses of one peer; or, for the peers in one prefix, the prefixes that take its place.
    XPath {
        nets: Arc<[IpNet]>,
    },
    Encapsulated {
        by: Encapsulation,
        outer: Arc<[Ipv4Addr]>,
    },
    File(Arc<Table>),
}

/// What the destination of the outer header stands for: the same on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Encapsulation {
    PathId,
    Spine,
}

/// What a map needs of the sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// UDP source ports.
    pub(crate) sockets: u16,
    /// Ports in a row, of these, that take messages.
    pub(crate) ports: u16,
    pub(crate) labels: u16,
    /// Destinations of outer headers.
    pub(crate) outer: Vec<Ipv4Addr>,
}

impl PathMap {
    /// The most paths of a map.
    pub const MAX: u16 = 64;

    /// A pool of `source_ports` UDP source ports, from 1 to [`MAX`](Self::MAX): switches hash each
    /// onto some path of their own choice (ECMP), so that more ports meet more paths.
    ///
    /// Where one path of four is alive, 16 ports all miss it with one peer in a hundred (0.75^16), 64
    /// with none in practice. Answers come back by the peer's ports: its map counts as much.
    ///
    /// The number is checked when the endpoint is built.
    pub const fn ecmp(source_ports: u16) -> Self {
        Self::ecmp_pairs(source_ports, 1)
    }

    /// Each of `source_ports` with each of as many destination ports as the peer says it has, but
    /// at most `destination_ports`: as many different hashes, of fewer sockets, and as many ways
    /// back. From 1 to [`MAX`](Self::MAX) pairs.
    ///
    /// This endpoint takes messages at `destination_ports` ports itself: that of the builder's
    /// `bind` and those right after it. Whatever forwards the first to it must forward those, too.
    pub const fn ecmp_pairs(source_ports: u16, destination_ports: u16) -> Self {
        Self(Kind::Ecmp { source_ports, destination_ports })
    }

    /// One IPv6 flow label a path, from 1 to [`MAX`](Self::MAX) of them, drawn when the endpoint is
    /// built: one socket for all, and switches that hash the label (RFC 6438) put each onto some
    /// path of their own choice. IPv4 peers cannot be sent to.
    ///
    /// The number is checked when the endpoint is built.
    pub const fn flow_labels(labels: u16) -> Self {
        Self(Kind::FlowLabel { labels })
    }

    /// One destination address a path, from 1 to [`MAX`](Self::MAX) of them, as XPath identifies
    /// paths: all are addresses of the one peer, and the switches send each its own way (by routes
    /// of /32 or /128). The peer must be bound to an unspecified address, so that it takes packets
    /// to any of them.
    ///
    /// Messages go to a peer at one of these addresses; other peers cannot be sent to. The
    /// addresses are checked when the endpoint is built.
    pub fn xpath(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let nets = addresses.into_iter().map(|address| address.to_canonical().into());
        Self(Kind::XPath { nets: nets.collect() })
    }

    /// One path ID a path, from 1 to [`MAX`](Self::MAX) of them, written as the destination of an
    /// outer IPv4 header (protocol 4, RFC 2003): switches route by it, and whoever the last of them
    /// hands the packet to removes it, the peer's host for instance.
    ///
    /// To IPv4 peers only. The endpoint must be bound to a certain address of this host, and have
    /// CAP_NET_RAW. The header takes 20 bytes: `Config::max_datagram` must leave room for them.
    pub fn xpath_ipip(path_ids: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        let outer = path_ids.into_iter().collect();
        Self(Kind::Encapsulated { by: Encapsulation::PathId, outer })
    }

    /// One spine switch a path, from 1 to [`MAX`](Self::MAX) of them, to bounce off (DRB paper,
    /// section 3.1): the outer IPv4 header sends a packet to the spine, which removes it and
    /// forwards what is inside. Should be in the order of [`Shape`](cloudburst_core::path::Shape).
    ///
    /// To IPv4 peers only. The endpoint must be bound to a certain address of this host, and have
    /// CAP_NET_RAW. The header takes 20 bytes: `Config::max_datagram` must leave room for them.
    pub fn bounce(spines: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        let outer = spines.into_iter().collect();
        Self(Kind::Encapsulated { by: Encapsulation::Spine, outer })
    }

    /// Maps of a fabric by destination prefix, from a TOML file; the longest prefix counts.
    ///
    /// ```toml
    /// [[to]]
    /// prefix = "10.1.2.0/24"
    /// paths = "bounce:10.3.0.1,10.3.0.2"
    ///
    /// [[to]] # 10.1.3.H is 10.101.3.H by one path and 10.102.3.H by another
    /// prefix = "10.1.3.0/24"
    /// paths = "xpath:10.101.3.0/24,10.102.3.0/24"
    ///
    /// [[to]]
    /// prefix = "0.0.0.0/0"
    /// paths = "ecmp:16"
    /// ```
    ///
    /// An endpoint with such a map looks at the file twice a second, and uses what it says from
    /// then on. A change that is not sound is logged and changes nothing. Put a new file in the
    /// place of the old one (rename) rather than writing into it.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is no such TOML, or names an unsound map.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, PathMapError> {
        Table::read(path.as_ref()).map(|table| Self(Kind::File(Arc::new(table))))
    }

    /// The map that `text` is, as it was read from the file at `path`.
    pub(crate) fn from_file(path: &Path, text: String) -> Result<Self, PathMapError> {
        Table::parse(path, text).map(|table| Self(Kind::File(Arc::new(table))))
    }

    /// The file that the map was read from, and what it said.
    pub(crate) fn source(&self) -> Option<(&Path, &str)> {
        match &self.0 {
            Kind::File(table) => Some((table.path(), table.text())),
            _ => None,
        }
    }

    /// How many paths lead to a peer. `None`: that depends on the peer.
    fn paths(&self) -> Option<usize> {
        match &self.0 {
            Kind::Ecmp { source_ports, destination_ports: 1 } => Some((*source_ports).into()),
            Kind::Ecmp { .. } | Kind::File(_) => None,
            Kind::FlowLabel { labels } => Some((*labels).into()),
            Kind::XPath { nets } => Some(nets.len()),
            Kind::Encapsulated { outer, .. } => Some(outer.len()),
        }
    }

    pub(crate) fn needs(&self) -> Needs {
        let one = Needs { sockets: 1, ports: 1, ..Needs::default() };
        match &self.0 {
            &Kind::Ecmp { source_ports, destination_ports } => {
                let sockets = source_ports.max(destination_ports);
                Needs { sockets, ports: destination_ports, ..one }
            }
            &Kind::FlowLabel { labels } => Needs { labels, ..one },
            Kind::XPath { .. } => one,
            Kind::Encapsulated { outer, .. } => Needs { outer: outer.to_vec(), ..one },
            Kind::File(table) => table.rows().fold(one, |mut all, (_, map)| {
                let needs = map.needs();
                all.sockets = all.sockets.max(needs.sockets);
                all.ports = all.ports.max(needs.ports);
                all.labels = all.labels.max(needs.labels);
                all.outer.extend(needs.outer);
                all
            }),
        }
    }

    /// Whether sockets that are bound to `bind` can use the map; `reaches` says what they send to.
    pub(crate) fn check(
        &self,
        bind: IpAddr,
        reaches: fn(IpAddr) -> bool,
    ) -> Result<(), PathMapError> {
        if let Kind::File(table) = &self.0 {
            return table.each(|prefix, map| {
                let address = prefix.addr();
                if !reaches(address) {
                    return Err(PathMapError::Family { given: map.to_string(), address, bind });
                }
                map.check_sockets(bind, reaches)
            });
        }
        self.check_alone()?;
        self.check_sockets(bind, reaches)
    }

    fn check_sockets(&self, bind: IpAddr, reaches: fn(IpAddr) -> bool) -> Result<(), PathMapError> {
        let given = || self.to_string();
        match &self.0 {
            Kind::FlowLabel { .. } if bind.is_ipv4() => {
                Err(PathMapError::NoFlowLabels { given: given(), bind })
            }
            Kind::Encapsulated { .. } if !bind.is_ipv4() || bind.is_unspecified() => {
                Err(PathMapError::NoSource { given: given(), bind })
            }
            Kind::XPath { nets } => match nets.iter().find(|net| !reaches(net.addr())) {
                Some(net) => {
                    Err(PathMapError::Family { given: given(), address: net.addr(), bind })
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Whether the map is sound, wherever it may be used.
    fn check_alone(&self) -> Result<(), PathMapError> {
        self.check_list()?;
        match &self.0 {
            Kind::XPath { nets } => match nets.iter().find(|net| !is_host(net)) {
                Some(&net) => Err(PathMapError::Prefix { given: self.to_string(), net }),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Whether the map has paths, not too many, and none twice.
    fn check_list(&self) -> Result<(), PathMapError> {
        let given = || self.to_string();
        let paths = match &self.0 {
            Kind::Ecmp { source_ports, destination_ports } => {
                usize::from(*source_ports) * usize::from(*destination_ports)
            }
            _ => self.paths().unwrap_or(1),
        };
        if !(1..=usize::from(Self::MAX)).contains(&paths) {
            return Err(PathMapError::Unknown { given: given() });
        }
        let addresses: Vec<IpAddr> = match &self.0 {
            Kind::XPath { nets } => nets.iter().map(IpNet::addr).collect(),
            Kind::Encapsulated { outer, .. } => outer.iter().map(|&ip| ip.into()).collect(),
            _ => Vec::new(),
        };
        if let Some(&address) = addresses.iter().find(|address| !is_of_a_host(**address)) {
            return Err(PathMapError::NoHost { given: given(), address });
        }
        match repeated(addresses) {
            Some(address) => Err(PathMapError::Repeated { given: given(), address }),
            None => Ok(()),
        }
    }

    /// Whether `whole` has all of its paths, to everybody whom it leads to, and perhaps more.
    pub(crate) fn is_part_of(&self, whole: &Self) -> bool {
        match (&self.0, &whole.0) {
            (Kind::XPath { nets }, Kind::XPath { nets: all }) => {
                nets.iter().all(|net| all.contains(net))
            }
            (Kind::Encapsulated { by, outer }, Kind::Encapsulated { by: same, outer: all }) => {
                by == same && outer.iter().all(|ip| all.contains(ip))
            }
            (Kind::File(table), Kind::File(all)) => table
                .rows()
                .all(|(prefix, map)| all.exactly(prefix).is_some_and(|all| map.is_part_of(all))),
            _ => self == whole,
        }
    }

    /// Whether its paths can be visited in `order`, to whomever they lead.
    pub(crate) fn check_order(&self, order: Order) -> Result<(), PathMapError> {
        match (&self.0, self.paths()) {
            (Kind::File(table), _) => table.each(|_, map| map.check_order(order)),
            (_, Some(paths)) => Ok(order.check_paths(paths)?),
            (_, None) if order.paths().is_none() => Ok(()),
            (_, None) => Err(PathMapError::NoShape { given: self.to_string(), order }),
        }
    }
}

impl Default for PathMap {
    /// 16 source ports: with half of four paths dead, all 16 are hashed onto dead ones for one pair of
    /// hosts in 65,536; eight are for one in 256.
    fn default() -> Self {
        Self::ecmp(16)
    }
}

/// Whether a host can have the address.
fn is_of_a_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(ip) if ip.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || broadcast)
}

/// Whether the prefix is one address.
fn is_host(net: &IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len()
}

fn repeated<T: Copy + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Option<T> {
    let mut seen = HashSet::new();
    items.into_iter().find(|item| !seen.insert(*item))
}
