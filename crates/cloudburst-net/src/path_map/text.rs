//! Path maps in text form.

use super::{Encapsulation, Kind, PathMap, PathMapError, is_host};
use core::fmt;
use core::str::FromStr;
use ipnet::IpNet;
use std::net::IpAddr;

impl fmt::Display for PathMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Ecmp { source_ports, destination_ports: 1 } => write!(f, "ecmp:{source_ports}"),
            Kind::Ecmp { source_ports, destination_ports } => {
                write!(f, "ecmp:{source_ports}x{destination_ports}")
            }
            Kind::FlowLabel { labels } => write!(f, "flowlabel:{labels}"),
            Kind::XPath { nets } => list(f, "xpath", nets.iter().copied().map(Net)),
            Kind::Encapsulated { by: Encapsulation::PathId, outer } => {
                list(f, "xpath-ipip", outer.iter())
            }
            Kind::Encapsulated { by: Encapsulation::Spine, outer } => {
                list(f, "bounce", outer.iter())
            }
            Kind::File(table) => write!(f, "file:{}", table.path().display()),
        }
    }
}

/// A prefix; a single address without its length.
struct Net(IpNet);

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_host(&self.0) { self.0.addr().fmt(f) } else { self.0.fmt(f) }
    }
}

fn list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    items: impl Iterator<Item = T>,
) -> fmt::Result {
    f.write_str(name)?;
    for (i, item) in items.enumerate() {
        let separator = if i == 0 { ':' } else { ',' };
        write!(f, "{separator}{item}")?;
    }
    Ok(())
}

impl FromStr for PathMap {
    type Err = PathMapError;

    /// Reads what [`Display`](fmt::Display) writes; of `file:PATH`, the file as well.
    fn from_str(given: &str) -> Result<Self, PathMapError> {
        if let Some(path) = given.strip_prefix("file:") {
            return Self::file(path);
        }
        let map = Self::parse(given)?;
        map.check_alone()?;
        Ok(map)
    }
}

impl PathMap {
    /// Reads any map but a file. It is not checked yet.
    pub(super) fn parse(given: &str) -> Result<Self, PathMapError> {
        let map = match given.split_once(':') {
            Some(("ecmp", ports)) => match ports.split_once('x') {
                None => number(ports).map(Self::ecmp),
                Some((source, destination)) => number(source)
                    .zip(number(destination))
                    .map(|(source, destination)| Self::ecmp_pairs(source, destination)),
            },
            Some(("flowlabel", labels)) => number(labels).map(Self::flow_labels),
            Some(("xpath", nets)) => {
                items(nets, net).map(|nets| Self(Kind::XPath { nets: nets.into() }))
            }
            Some(("xpath-ipip", ids)) => items(ids, |id| id.parse().ok()).map(Self::xpath_ipip),
            Some(("bounce", spines)) => items(spines, |spine| spine.parse().ok()).map(Self::bounce),
            _ => None,
        };
        map.ok_or_else(|| PathMapError::Unknown { given: given.to_owned() })
    }
}

fn items<T>(list: &str, parse: impl FnMut(&str) -> Option<T>) -> Option<Vec<T>> {
    list.split(',').map(parse).collect()
}

/// An address, or a prefix with nothing beyond its length. IPv4 in mapped form is plain IPv4.
pub(super) fn net(text: &str) -> Option<IpNet> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical().into());
    }
    let net: IpNet = text.parse().ok()?;
    let mapped = net.addr().is_ipv6() && net.addr().to_canonical().is_ipv4();
    (net.trunc() == net && !mapped).then_some(net)
}

/// A number, of digits alone.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_map_are_the_same() {
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
    fn a_refusal_says_what_came_and_what_is_accepted() {
        for given in [
            "",
            "ecmp",
            "ecmp:",
            "ecmp:0",
            "ecmp:65",
            "ecmp:-1",
            "ecmp:+8",
            "ecmp:4x",
            "ecmp:x4",
            "ecmp:0x4",
            "ecmp:4x0",
            "ecmp:16x5",
            "ecmp:65535x65535",
            "drb:4",
            "ecmp:8 ",
            "flowlabel:65",
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
        assert!(PathMap::ecmp(0).check_alone().is_err());
        assert!(PathMap::xpath([]).check_alone().is_err());
    }

    #[test]
    fn paths_that_are_one_are_named_and_so_are_prefixes_of_nobody() {
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
            assert!(error.contains(&format!("names {nobody}, which no host has")), "{error}");
        }
        let error = "xpath:10.0.0.0/24".parse::<PathMap>().unwrap_err().to_string();
        assert!(error.contains("10.0.0.0/24, which is not one address"), "{error}");
    }
}
