//! Path maps that are the same for every destination, or for all of one prefix.

use super::address::{is_host, is_of_a_host, reaches};
use super::error::PathMapError;
use crate::limits::MAX_PATHS;
use cloudburst_core::path::Order;
use ipnet::IpNet;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// What distinguishes the paths of a map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Uniform {
    Ecmp {
        source_ports: u16,
        destination_ports: u16,
    },
    FlowLabel {
        labels: u16,
    },
    /// Addresses of one peer or, for the peers in one prefix, the prefixes that replace it.
    XPath {
        nets: Arc<[IpNet]>,
    },
    Encapsulated {
        by: Encapsulation,
        outer: Arc<[Ipv4Addr]>,
    },
}

/// What the destination of the outer header stands for. On the wire, both are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Encapsulation {
    PathId,
    Spine,
}

/// The resources that a map needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// UDP source ports.
    pub(crate) sockets: u16,
    /// Reserve sockets, for peers to which all of `sockets` are hashed onto dead paths.
    pub(crate) reserve: u16,
    /// How many of the sockets have consecutive ports and take messages.
    pub(crate) ports: u16,
    pub(crate) labels: u16,
    /// Destinations of outer headers.
    pub(crate) outer: Vec<Ipv4Addr>,
}

impl Uniform {
    /// The number of paths to a peer; `None` if it depends on the peer.
    fn paths(&self) -> Option<usize> {
        match self {
            Self::Ecmp { source_ports, destination_ports: 1 } => Some((*source_ports).into()),
            Self::Ecmp { .. } => None,
            Self::FlowLabel { labels } => Some((*labels).into()),
            Self::XPath { nets } => Some(nets.len()),
            Self::Encapsulated { outer, .. } => Some(outer.len()),
        }
    }

    pub(super) fn needs(&self) -> Needs {
        let one = Needs { sockets: 1, ports: 1, ..Needs::default() };
        match self {
            &Self::Ecmp { source_ports, destination_ports } => {
                let sockets = source_ports.max(destination_ports);
                // One socket is no pool: a map of one path has no reserve.
                // The reserve is opened in advance, since opening a socket while the endpoint runs
                // would take a lock for each packet. Each socket costs a descriptor: waiting does
                // not depend on their number.
                let reserve = if sockets > 1 { sockets.min(MAX_PATHS - sockets) } else { 0 };
                Needs { sockets, reserve, ports: destination_ports, ..one }
            }
            &Self::FlowLabel { labels } => Needs { labels, ..one },
            Self::XPath { .. } => one,
            Self::Encapsulated { outer, .. } => Needs { outer: outer.to_vec(), ..one },
        }
    }

    /// Checks that sockets bound to `bind` can use the map.
    pub(super) fn check_sockets(&self, bind: IpAddr) -> Result<(), PathMapError> {
        let given = || self.to_string();
        match self {
            Self::FlowLabel { .. } if bind.is_ipv4() => {
                Err(PathMapError::NoFlowLabels { given: given(), bind })
            }
            Self::Encapsulated { .. } if !bind.is_ipv4() || bind.is_unspecified() => {
                Err(PathMapError::NoSource { given: given(), bind })
            }
            Self::XPath { nets } => match nets.iter().find(|net| !reaches(bind, net.addr())) {
                Some(net) => {
                    Err(PathMapError::Family { given: given(), address: net.addr(), bind })
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Checks the map for use without a prefix.
    pub(super) fn check_alone(&self) -> Result<(), PathMapError> {
        self.check_list()?;
        match self {
            Self::XPath { nets } => match nets.iter().find(|net| !is_host(net)) {
                Some(&net) => Err(PathMapError::Prefix { given: self.to_string(), net }),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Checks that the map has paths, not too many, and none twice.
    pub(super) fn check_list(&self) -> Result<(), PathMapError> {
        let given = || self.to_string();
        let paths = match self {
            Self::Ecmp { source_ports, destination_ports } => {
                usize::from(*source_ports) * usize::from(*destination_ports)
            }
            _ => self.paths().unwrap_or(1),
        };
        if !(1..=usize::from(MAX_PATHS)).contains(&paths) {
            return Err(PathMapError::Count { given: given(), paths });
        }
        let addresses: Vec<IpAddr> = match self {
            Self::XPath { nets } => nets.iter().map(IpNet::addr).collect(),
            Self::Encapsulated { outer, .. } => outer.iter().map(|&ip| ip.into()).collect(),
            _ => Vec::new(),
        };
        if let Some(&address) = addresses.iter().find(|address| !is_of_a_host(**address)) {
            return Err(PathMapError::NoHost { given: given(), address });
        }
        let mut seen = HashSet::new();
        match addresses.into_iter().find(|address| !seen.insert(*address)) {
            Some(address) => Err(PathMapError::Repeated { given: given(), address }),
            None => Ok(()),
        }
    }

    /// Checks that the map can lead to the addresses of `prefix`.
    pub(super) fn check_prefix(&self, prefix: &IpNet) -> Result<(), String> {
        match self {
            Self::FlowLabel { .. } if prefix.addr().is_ipv4() => {
                Err(format!("path map `{self}` needs IPv6 destinations"))
            }
            Self::Encapsulated { .. } if prefix.addr().is_ipv6() => {
                Err(format!("path map `{self}` needs IPv4 destinations"))
            }
            Self::XPath { nets } => {
                let fits = |net: &&IpNet| {
                    net.addr().is_ipv4() == prefix.addr().is_ipv4()
                        && net.prefix_len() == prefix.prefix_len()
                };
                match nets.iter().find(|net| !fits(net)) {
                    Some(net) if is_host(net) => Err(format!(
                        "path map `{self}` has {net}: it must be a prefix of the same family and \
                         length, whose addresses replace those of the destination"
                    )),
                    Some(net) => Err(format!(
                        "path map `{self}` has {net}: it must be of the same family and length"
                    )),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether `whole` has all paths of this map, to all of its peers, and perhaps more.
    pub(super) fn is_part_of(&self, whole: &Self) -> bool {
        match (self, whole) {
            (Self::XPath { nets }, Self::XPath { nets: all }) => {
                nets.iter().all(|net| all.contains(net))
            }
            (Self::Encapsulated { by, outer }, Self::Encapsulated { by: same, outer: all }) => {
                by == same && outer.iter().all(|ip| all.contains(ip))
            }
            _ => self == whole,
        }
    }

    /// Checks that the paths can be visited in `order`, for every peer.
    pub(super) fn check_order(&self, order: Order) -> Result<(), PathMapError> {
        match self.paths() {
            Some(paths) => Ok(order.check_paths(paths)?),
            None if order.paths().is_none() => Ok(()),
            None => Err(PathMapError::NoShape { given: self.to_string(), order }),
        }
    }
}
