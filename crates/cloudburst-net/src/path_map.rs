//! What the number of a path means on the wire.

use cloudburst_core::path::{Lanes, PathMap as CorePathMap, Via};
use core::fmt;
use core::str::FromStr;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Which paths an endpoint spreads its packets over.
///
/// In text form, for configuration files and command lines, `ecmp:N`, `flowlabel:N` or
/// `xpath:ADDR,ADDR,...`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathMap(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Ecmp { source_ports: u16 },
    FlowLabel { labels: u16 },
    XPath { addresses: Arc<[IpAddr]> },
}

/// Why a path map was refused. The caller is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathMapError {
    /// Text that names no map, or a number of paths that no map has.
    #[error(
        "path map `{given}` is unknown: it must be `ecmp:N` or `flowlabel:N`, with N from 1 to {max}, \
         or `xpath:ADDR,...`, with 1 to {max} IP addresses of the peer, one a path",
        max = PathMap::MAX
    )]
    Unknown {
        /// What came.
        given: String,
    },
    /// Two paths that are one.
    #[error("path map `{given}` names {address} twice: each path needs an address of its own")]
    Repeated {
        /// What came.
        given: String,
        /// The address.
        address: IpAddr,
    },
    /// IPv4 has no flow labels.
    #[error(
        "path map `{given}` needs IPv6, and the sockets are bound to {bind}: bind to `[::]:PORT`"
    )]
    NoFlowLabels {
        /// What came.
        given: String,
        /// What the sockets are bound to.
        bind: IpAddr,
    },
    /// Paths that the sockets cannot take.
    #[error(
        "path map `{given}` names {address}, which sockets bound to {bind} cannot send to: bind to \
         an address of that family"
    )]
    Family {
        /// What came.
        given: String,
        /// The address of the other family.
        address: IpAddr,
        /// What the sockets are bound to.
        bind: IpAddr,
    },
}

impl PathMap {
    /// The most paths of a map.
    pub const MAX: u16 = 64;

    /// A pool of `source_ports` UDP source ports, from 1 to [`MAX`](Self::MAX): switches hash each
    /// onto some path of their own choice (ECMP), so that more ports meet more paths.
    ///
    /// The number is checked when the endpoint is built.
    pub const fn ecmp(source_ports: u16) -> Self {
        Self(Kind::Ecmp { source_ports })
    }

    /// One IPv6 flow label a path, from 1 to [`MAX`](Self::MAX) of them, drawn when the endpoint is
    /// built: one socket for all, and switches that hash the label (RFC 6438) put each onto some path
    /// of their own choice. IPv4 peers cannot be sent to.
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
        Self(Kind::XPath { addresses: addresses.into_iter().collect() })
    }

    /// How many paths there are to a peer.
    pub fn paths(&self) -> usize {
        match &self.0 {
            Kind::Ecmp { source_ports: paths } | Kind::FlowLabel { labels: paths } => {
                (*paths).into()
            }
            Kind::XPath { addresses } => addresses.len(),
        }
    }

    /// How many lanes, that is sockets, the map needs.
    pub const fn lanes(&self) -> u16 {
        match self.0 {
            Kind::Ecmp { source_ports } => source_ports,
            Kind::FlowLabel { .. } | Kind::XPath { .. } => 1,
        }
    }

    /// How many flow labels the map needs.
    pub(crate) const fn labels(&self) -> u16 {
        match self.0 {
            Kind::FlowLabel { labels } => labels,
            Kind::Ecmp { .. } | Kind::XPath { .. } => 0,
        }
    }

    /// Whether sockets that are bound to `bind` can use the map; `reaches` says what they send to.
    pub(crate) fn check(
        &self,
        bind: IpAddr,
        reaches: fn(SocketAddr) -> bool,
    ) -> Result<(), PathMapError> {
        self.check_alone()?;
        if self.labels() > 0 && bind.is_ipv4() {
            return Err(PathMapError::NoFlowLabels { given: self.to_string(), bind });
        }
        match self.addresses().iter().find(|&&address| !reaches((address, 1).into())) {
            Some(&address) => Err(PathMapError::Family { given: self.to_string(), address, bind }),
            None => Ok(()),
        }
    }

    fn check_alone(&self) -> Result<(), PathMapError> {
        if !(1..=usize::from(Self::MAX)).contains(&self.paths()) {
            return Err(PathMapError::Unknown { given: self.to_string() });
        }
        let mut seen = HashSet::new();
        match self.addresses().iter().find(|address| !seen.insert(address.to_canonical())) {
            Some(&address) => Err(PathMapError::Repeated { given: self.to_string(), address }),
            None => Ok(()),
        }
    }

    fn addresses(&self) -> &[IpAddr] {
        match &self.0 {
            Kind::Ecmp { .. } | Kind::FlowLabel { .. } => &[],
            Kind::XPath { addresses } => addresses,
        }
    }

    /// The map as the core wants it, for sockets that reach what `reaches` says.
    pub(crate) fn for_sockets(self, reaches: fn(SocketAddr) -> bool) -> Reachable {
        Reachable { map: self, reaches }
    }
}

impl Default for PathMap {
    /// Eight source ports.
    fn default() -> Self {
        Self::ecmp(8)
    }
}

impl fmt::Display for PathMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Ecmp { source_ports } => write!(f, "ecmp:{source_ports}"),
            Kind::FlowLabel { labels } => write!(f, "flowlabel:{labels}"),
            Kind::XPath { addresses } => {
                f.write_str("xpath:")?;
                for (i, address) in addresses.iter().enumerate() {
                    let separator = if i == 0 { "" } else { "," };
                    write!(f, "{separator}{address}")?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for PathMap {
    type Err = PathMapError;

    fn from_str(given: &str) -> Result<Self, PathMapError> {
        let map = match given.split_once(':') {
            Some(("ecmp", ports)) => ports.parse().ok().map(Self::ecmp),
            Some(("flowlabel", labels)) => labels.parse().ok().map(Self::flow_labels),
            Some(("xpath", list)) => {
                let addresses = list.split(',').map(|address| address.parse().ok());
                addresses.collect::<Option<Vec<IpAddr>>>().map(Self::xpath)
            }
            _ => None,
        };
        let map = map.ok_or_else(|| PathMapError::Unknown { given: given.to_owned() })?;
        map.check_alone()?;
        Ok(map)
    }
}

/// The paths of a map to any peer that the sockets can address, and none to others.
#[derive(Debug)]
pub(crate) struct Reachable {
    map: PathMap,
    reaches: fn(SocketAddr) -> bool,
}

impl CorePathMap for Reachable {
    fn lanes(&self) -> u16 {
        self.map.lanes().max(self.map.labels())
    }

    fn paths(&self, peer: SocketAddr) -> Vec<Via> {
        if !(self.reaches)(peer) {
            return Vec::new();
        }
        match &self.map.0 {
            Kind::Ecmp { source_ports } => Lanes(*source_ports).paths(peer),
            Kind::FlowLabel { labels } if peer.is_ipv6() => Lanes(*labels).paths(peer),
            Kind::XPath { addresses } if addresses.contains(&peer.ip()) => {
                let via = |&address| Via { lane: 0, remote: (address, peer.port()).into() };
                addresses.iter().map(via).collect()
            }
            Kind::FlowLabel { .. } | Kind::XPath { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(map: &PathMap) -> Result<(), PathMapError> {
        map.check([0, 0, 0, 0].into(), |peer| peer.is_ipv4())
    }

    #[test]
    fn text_and_map_are_the_same() {
        assert_eq!("ecmp:8".parse(), Ok(PathMap::default()));
        for ports in [1, 64] {
            let map = PathMap::ecmp(ports);
            assert_eq!(map.to_string().parse(), Ok(map.clone()));
            assert_eq!((map.lanes(), map.paths()), (ports, ports.into()));
        }
        let map: PathMap = "flowlabel:8".parse().unwrap();
        assert_eq!((map.to_string().as_str(), map.lanes(), map.paths()), ("flowlabel:8", 1, 8));
        let text = "xpath:10.0.0.1,10.1.0.1,fd00::1";
        let map: PathMap = text.parse().unwrap();
        assert_eq!((map.to_string().as_str(), map.lanes(), map.paths()), (text, 1, 3));
    }

    #[test]
    fn a_refusal_says_what_came_and_what_is_accepted() {
        for given in [
            "",
            "ecmp",
            "ecmp:",
            "ecmp:0",
            "ecmp:65",
            "ecmp:-1",
            "drb:4",
            "ecmp:8 ",
            "xpath:",
            "xpath:10.0.0",
            "xpath:10.0.0.1:7",
            "xpath:10.0.0.1,",
        ] {
            let error = given.parse::<PathMap>().unwrap_err().to_string();
            let expected = format!(
                "path map `{given}` is unknown: it must be `ecmp:N` or `flowlabel:N`, with N from 1 \
                 to 64, or `xpath:ADDR,...`, with 1 to 64 IP addresses of the peer, one a path"
            );
            assert_eq!(error, expected);
        }
        assert!(check(&PathMap::ecmp(0)).is_err());
        assert!(check(&PathMap::xpath([])).is_err());
    }

    #[test]
    fn paths_that_are_one_or_that_cannot_be_taken_are_named() {
        let error = "xpath:10.0.0.1,10.0.0.2,::ffff:10.0.0.1".parse::<PathMap>().unwrap_err();
        assert!(error.to_string().contains("names ::ffff:10.0.0.1 twice"), "{error}");
        let error = check(&PathMap::flow_labels(8)).unwrap_err().to_string();
        assert!(error.contains("needs IPv6") && error.contains("bound to 0.0.0.0"), "{error}");
        let map: PathMap = "xpath:10.0.0.1,fd00::1".parse().unwrap();
        let error = check(&map).unwrap_err().to_string();
        assert!(error.contains("fd00::1") && error.contains("bound to 0.0.0.0"), "{error}");
    }

    #[test]
    fn only_the_peer_that_has_the_addresses_is_reached() {
        let map: PathMap = "xpath:10.0.0.1,10.1.0.1".parse().unwrap();
        let map = map.for_sockets(|peer| peer.is_ipv4());
        let vias = map.paths("10.1.0.1:7000".parse().unwrap());
        let remotes: Vec<String> = vias.iter().map(|via| via.remote.to_string()).collect();
        assert_eq!(remotes, ["10.0.0.1:7000", "10.1.0.1:7000"]);
        assert!(map.paths("10.0.0.3:7000".parse().unwrap()).is_empty());
    }
}
