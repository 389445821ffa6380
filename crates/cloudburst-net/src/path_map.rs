//! What the number of a path means on the wire.

use cloudburst_core::path::{Lanes, PathMap as CorePathMap, Via};
use core::fmt;
use core::str::FromStr;
use std::net::SocketAddr;

/// Which paths an endpoint spreads its packets over.
///
/// In text form `ecmp:N`, for configuration files and command lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathMap(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Ecmp { source_ports: u16 },
}

/// Why a path map was refused. The caller is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("path map `{given}` is unknown: it must be `ecmp:N`, with N from 1 to {}", PathMap::MAX)]
pub struct PathMapError {
    /// What came.
    pub given: String,
}

impl PathMap {
    /// The most paths of a map: each is a socket.
    pub const MAX: u16 = 64;

    /// A pool of `source_ports` UDP source ports, from 1 to [`MAX`](Self::MAX): switches hash each
    /// onto some path of their own choice (ECMP), so that more ports meet more paths.
    ///
    /// The number is checked when the endpoint is built.
    pub const fn ecmp(source_ports: u16) -> Self {
        Self(Kind::Ecmp { source_ports })
    }

    /// How many lanes, that is sockets, the map needs.
    pub const fn lanes(&self) -> u16 {
        let Kind::Ecmp { source_ports } = self.0;
        source_ports
    }

    pub(crate) fn check(self) -> Result<Self, PathMapError> {
        if (1..=Self::MAX).contains(&self.lanes()) {
            Ok(self)
        } else {
            Err(PathMapError { given: self.to_string() })
        }
    }

    /// The map as the core wants it, for sockets that reach what `reaches` says.
    pub(crate) fn for_sockets(self, reaches: fn(SocketAddr) -> bool) -> Reachable {
        Reachable { lanes: Lanes(self.lanes()), reaches }
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
        let Kind::Ecmp { source_ports } = self.0;
        write!(f, "ecmp:{source_ports}")
    }
}

impl FromStr for PathMap {
    type Err = PathMapError;

    fn from_str(given: &str) -> Result<Self, PathMapError> {
        given
            .strip_prefix("ecmp:")
            .and_then(|ports| ports.parse().ok())
            .and_then(|ports| Self::ecmp(ports).check().ok())
            .ok_or_else(|| PathMapError { given: given.to_owned() })
    }
}

/// All lanes to any peer that the sockets can address, and none to others.
#[derive(Debug)]
pub(crate) struct Reachable {
    lanes: Lanes,
    reaches: fn(SocketAddr) -> bool,
}

impl CorePathMap for Reachable {
    fn paths(&self, peer: SocketAddr) -> Vec<Via> {
        if (self.reaches)(peer) { self.lanes.paths(peer) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_map_are_the_same() {
        assert_eq!("ecmp:8".parse(), Ok(PathMap::default()));
        for ports in [1, 64] {
            let map = PathMap::ecmp(ports);
            assert_eq!(map.to_string().parse(), Ok(map));
            assert_eq!(map.lanes(), ports);
        }
    }

    #[test]
    fn a_refusal_says_what_came_and_what_is_accepted() {
        for given in ["", "ecmp", "ecmp:", "ecmp:0", "ecmp:65", "ecmp:-1", "drb:4", "ecmp:8 "] {
            let error = given.parse::<PathMap>().unwrap_err().to_string();
            let expected =
                format!("path map `{given}` is unknown: it must be `ecmp:N`, with N from 1 to 64");
            assert_eq!(error, expected);
        }
        assert!(PathMap::ecmp(0).check().is_err());
    }
}
