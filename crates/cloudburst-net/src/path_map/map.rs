//! The path maps that users give.

use super::address::reaches;
use super::error::PathMapError;
use super::file::{Table, read};
use super::uniform::{Encapsulation, Needs, Uniform};
use crate::limits::MAX_PATHS;
use cloudburst_core::path::Order;
use core::fmt;
use core::str::FromStr;
use ipnet::IpNet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

/// The paths over which an endpoint spreads its packets.
///
/// In text form, for configuration files and command lines:
///
/// | map | a path is |
/// |---|---|
/// | `ecmp:N` | one of N source ports, which switches hash onto a path |
/// | `ecmp:NxM` | one of N source ports with one of M ports of the peer |
/// | `flowlabel:N` | one of N IPv6 flow labels |
/// | `xpath:ADDR,...` | one of the peer's addresses |
/// | `xpath-ipip:ID,...` | a path ID: the destination of an outer IPv4 header |
/// | `bounce:ADDR,...` | a spine switch, which removes the outer header that names it |
/// | `file:PATH` | as a TOML file says for the destination |
///
/// `xpath-ipip` and `bounce` write IP headers themselves, which requires CAP_NET_RAW and a socket bound to a
/// specific IPv4 address, and adds 20 bytes to each packet. The others need no privilege.
///
/// # Example
///
/// ```
/// # use cloudburst_net::PathMap;
/// assert_eq!("ecmp:16".parse(), Ok(PathMap::default()));
/// assert_eq!("ecmp:8x2".parse(), Ok(PathMap::ecmp_pairs(8, 2)));
/// let spines = [[10, 3, 0, 1], [10, 3, 0, 2]].map(Into::into);
/// assert_eq!(PathMap::bounce(spines).to_string(), "bounce:10.3.0.1,10.3.0.2");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathMap(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Form {
    Uniform(Uniform),
    File(Arc<Table>),
}

impl PathMap {
    /// The maximum number of paths of a map.
    pub const MAX: u16 = MAX_PATHS;

    /// A pool of `source_ports` UDP source ports, from 1 to [`MAX`](Self::MAX): switches hash each onto a
    /// path of their own choice (ECMP), so more ports use more paths.
    ///
    /// If only one path of four is alive, all of 16 ports miss it for one peer in a hundred (0.75^16), and
    /// all of 64 for practically none. The endpoint therefore opens as many reserve sockets as ports, up to
    /// [`MAX`](Self::MAX) sockets in all. If a peer has not answered eight handshake attempts, which take a
    /// quarter of a second, the next `source_ports` sockets are tried, cyclically. A single port has no
    /// reserve. Answers to a peer go to the ports of the peer's own map, which therefore matters as much.
    ///
    /// The number is checked when the endpoint is built.
    pub const fn ecmp(source_ports: u16) -> Self {
        Self::ecmp_pairs(source_ports, 1)
    }

    /// Pairs of each of `source_ports` source ports with each destination port that the peer announces, of
    /// which at most `destination_ports` are used: as many different hashes with fewer sockets, and as many
    /// reverse paths. From 1 to [`MAX`](Self::MAX) pairs.
    ///
    /// This endpoint takes messages at `destination_ports` ports itself: that of the builder's `bind` and
    /// those right after it. A device that forwards the first port to it must forward those, too.
    pub const fn ecmp_pairs(source_ports: u16, destination_ports: u16) -> Self {
        Self(Form::Uniform(Uniform::Ecmp { source_ports, destination_ports }))
    }

    /// One IPv6 flow label per path, from 1 to [`MAX`](Self::MAX) of them, chosen at random when the endpoint is built.
    /// One socket serves all, and switches that hash the label (RFC 6438) put each onto a path of their own
    /// choice. IPv4 peers cannot be reached.
    ///
    /// The number is checked when the endpoint is built.
    pub const fn flow_labels(labels: u16) -> Self {
        Self(Form::Uniform(Uniform::FlowLabel { labels }))
    }

    /// One destination address per path, from 1 to [`MAX`](Self::MAX) of them, as XPath identifies paths: all
    /// are addresses of a single peer, and the switches route each along a path of its own (by /32 or /128
    /// routes). The peer must be bound to an unspecified address, so that it takes packets to any of them.
    ///
    /// Only the peer at these addresses can be reached. The addresses are checked when the endpoint is built.
    pub fn xpath(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let nets = addresses.into_iter().map(|address| address.to_canonical().into());
        Self(Form::Uniform(Uniform::XPath { nets: nets.collect() }))
    }

    /// One path ID per path, from 1 to [`MAX`](Self::MAX) of them, written as the destination of an outer
    /// IPv4 header (protocol 4, RFC 2003): switches route by it, and the device behind the last switch, such
    /// as the peer's host, removes the header.
    ///
    /// Only IPv4 peers can be reached. The endpoint must be bound to a specific address of this host, and
    /// needs CAP_NET_RAW. The header takes 20 bytes of `Config::mtu`.
    pub fn xpath_ipip(path_ids: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        let outer = path_ids.into_iter().collect();
        Self(Form::Uniform(Uniform::Encapsulated { by: Encapsulation::PathId, outer }))
    }

    /// One spine switch per path, from 1 to [`MAX`](Self::MAX) of them, to bounce packets off (DRB paper,
    /// section 3.1): the outer IPv4 header leads a packet to the spine, which removes the header and forwards
    /// the inner packet. Give the spines in the order of [`Shape`](cloudburst_core::path::Shape).
    ///
    /// Only IPv4 peers can be reached. The endpoint must be bound to a specific address of this host, and
    /// needs CAP_NET_RAW. The header takes 20 bytes of `Config::mtu`.
    pub fn bounce(spines: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        let outer = spines.into_iter().collect();
        Self(Form::Uniform(Uniform::Encapsulated { by: Encapsulation::Spine, outer }))
    }

    /// Path maps by destination prefix, from a TOML file; the longest matching prefix counts. Requires the
    /// default feature `path-file`: without it, every file is refused.
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
    /// An endpoint with such a map reads the file twice a second, and applies changes. An invalid change is
    /// logged and ignored. Replace the file by a new one (rename) rather than writing into it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or parsed, or has an invalid map.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, PathMapError> {
        let path = path.as_ref();
        Self::from_file(path, read(path)?)
    }

    /// Parses `text`, as it was read from the file at `path`.
    pub(crate) fn from_file(path: &Path, text: String) -> Result<Self, PathMapError> {
        Table::parse(path, text).map(|table| Self(Form::File(Arc::new(table))))
    }

    /// The file that the map was read from, and its contents.
    pub(crate) fn source(&self) -> Option<(&Path, &str)> {
        match &self.0 {
            Form::File(table) => Some((&table.path, &table.text)),
            _ => None,
        }
    }

    /// The error for a file that cannot be watched, because the system refuses a thread.
    pub(crate) fn unwatched(&self, error: &io::Error) -> PathMapError {
        let path = self.source().map(|(path, _)| path.to_owned()).unwrap_or_default();
        PathMapError::File { path, reason: format!("cannot start a thread to watch it: {error}") }
    }

    /// The map for a destination, and the prefix that it is for if it is from a file.
    pub(crate) fn to(&self, destination: IpAddr) -> Option<(Option<&IpNet>, &Uniform)> {
        match &self.0 {
            Form::Uniform(map) => Some((None, map)),
            Form::File(table) => table.row(destination).map(|(prefix, map)| (Some(prefix), map)),
        }
    }

    pub(crate) fn needs(&self) -> Needs {
        match &self.0 {
            Form::Uniform(map) => map.needs(),
            Form::File(table) => table.needs(),
        }
    }

    /// Checks that sockets bound to `bind` can use the map.
    pub(crate) fn check(&self, bind: IpAddr) -> Result<(), PathMapError> {
        match &self.0 {
            Form::Uniform(map) => {
                map.check_alone()?;
                map.check_sockets(bind)
            }
            Form::File(table) => table.each(|prefix, map| {
                let address = prefix.addr();
                if !reaches(bind, address) {
                    return Err(PathMapError::Family { given: map.to_string(), address, bind });
                }
                map.check_sockets(bind)
            }),
        }
    }

    /// Whether `whole` has all paths of this map, to all of its peers, and perhaps more.
    pub(crate) fn is_part_of(&self, whole: &Self) -> bool {
        match (&self.0, &whole.0) {
            (Form::Uniform(map), Form::Uniform(whole)) => map.is_part_of(whole),
            (Form::File(table), Form::File(whole)) => table.is_part_of(whole),
            _ => false,
        }
    }

    /// Checks that the paths can be visited in `order`, for every peer.
    pub(crate) fn check_order(&self, order: Order) -> Result<(), PathMapError> {
        match &self.0 {
            Form::Uniform(map) => map.check_order(order),
            Form::File(table) => table.each(|_, map| map.check_order(order)),
        }
    }
}

impl Default for PathMap {
    /// 16 source ports: if two of four paths are dead, all 16 are hashed onto dead paths for one pair of
    /// hosts in 65,536, and all of eight for one in 256.
    fn default() -> Self {
        // Of 1,576 messages with three of four spines dead, 197 did not arrive with 8 ports, 28
        // with 16 and none with 64. Each port on a dead path is found dead by itself, so that more
        // ports are slower then: the p50 is 14.4 ms with 64 and 8.2 ms with 16. On healthy paths, all are
        // equal.
        Self::ecmp(16)
    }
}

impl fmt::Display for PathMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Uniform(map) => map.fmt(f),
            Form::File(table) => write!(f, "file:{}", table.path.display()),
        }
    }
}

impl FromStr for PathMap {
    type Err = PathMapError;

    /// Parses the text that [`Display`](fmt::Display) writes. For `file:PATH`, reads the file as well.
    fn from_str(given: &str) -> Result<Self, PathMapError> {
        if let Some(path) = given.strip_prefix("file:") {
            return Self::file(path);
        }
        let map = Uniform::parse(given)?;
        map.check_alone()?;
        Ok(Self(Form::Uniform(map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_survives_formatting_and_parsing() {
        assert_eq!("ecmp:16".parse(), Ok(PathMap::default()));
        for text in [
            "ecmp:1",
            "ecmp:64",
            "ecmp:16x4",
            "flowlabel:8",
            "xpath:10.0.0.1,10.1.0.1,fd00::1",
            "xpath-ipip:10.9.0.1,10.9.0.2",
            "bounce:10.3.0.1",
        ] {
            let map: PathMap = text.parse().unwrap();
            assert_eq!(map.to_string(), text);
        }
        assert_eq!("ecmp:4x1".parse(), Ok(PathMap::ecmp(4)));
    }

    #[test]
    fn an_unknown_map_is_refused_with_the_accepted_forms() {
        for given in [
            "",
            "ecmp",
            "ecmp:",
            "ecmp:-1",
            "ecmp:+8",
            "ecmp:4x",
            "ecmp:x4",
            "ecmp:65536",
            "drb:4",
            "ecmp:8 ",
            "xpath:",
            "xpath:10.0.0",
            "xpath:10.0.0.1:7",
            "xpath:10.0.0.1,",
            "xpath:10.0.0.1/24",
            "xpath:::ffff:10.0.0.0/104",
            "xpath-ipip:",
            "xpath-ipip:fd00::1",
            "bounce:10.3.0.1,spine2",
        ] {
            let error = given.parse::<PathMap>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("path map `{given}` is unknown: ")), "{error}");
            assert!(error.contains("`bounce:ADDR,...`") && error.contains("1 to 64"), "{error}");
        }
        let check = |map: PathMap| map.check([127, 0, 0, 1].into());
        assert!(check(PathMap::ecmp(0)).is_err());
        assert!(check(PathMap::xpath([])).is_err());
    }

    #[test]
    fn a_map_of_too_many_paths_or_none_is_refused_with_the_limits() {
        for (given, paths) in [
            ("ecmp:0", 0),
            ("ecmp:65", 65),
            ("ecmp:0x4", 0),
            ("ecmp:4x0", 0),
            ("ecmp:16x5", 80),
            ("ecmp:65535x65535", 4_294_836_225_u64),
            ("flowlabel:65", 65),
        ] {
            let error = given.parse::<PathMap>().unwrap_err().to_string();
            let expected = format!("path map `{given}` has {paths} paths: it must have 1 to 64");
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn repeated_addresses_and_addresses_of_no_host_are_refused() {
        for (text, twice) in [
            ("xpath:10.0.0.1,10.0.0.2,::ffff:10.0.0.1", "10.0.0.1"),
            ("bounce:10.3.0.1,10.3.0.1", "10.3.0.1"),
        ] {
            let error = text.parse::<PathMap>().unwrap_err().to_string();
            assert!(error.contains(&format!("names {twice} twice")), "{error}");
        }
        for (text, nobody) in [
            ("xpath:10.0.0.1,224.0.0.1", "224.0.0.1"),
            ("bounce:255.255.255.255", "255.255.255.255"),
            ("xpath-ipip:0.0.0.0", "0.0.0.0"),
        ] {
            let error = text.parse::<PathMap>().unwrap_err().to_string();
            assert!(error.contains(&format!("names {nobody}, which no host can have")), "{error}");
        }
        let error = "xpath:10.0.0.0/24".parse::<PathMap>().unwrap_err().to_string();
        assert!(error.contains("10.0.0.0/24, which is not one address"), "{error}");
    }
}
