//! The text form of path maps, except files.

use super::address::is_host;
use super::error::PathMapError;
use super::uniform::{Encapsulation, Uniform};
use core::fmt;
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

impl fmt::Display for Uniform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ecmp { source_ports, destination_ports: 1 } => write!(f, "ecmp:{source_ports}"),
            Self::Ecmp { source_ports, destination_ports } => {
                write!(f, "ecmp:{source_ports}x{destination_ports}")
            }
            Self::FlowLabel { labels } => write!(f, "flowlabel:{labels}"),
            Self::XPath { nets } => list(f, "xpath", nets.iter().map(net_text)),
            Self::Encapsulated { by: Encapsulation::PathId, outer } => {
                list(f, "xpath-ipip", outer.iter())
            }
            Self::Encapsulated { by: Encapsulation::Spine, outer } => {
                list(f, "bounce", outer.iter())
            }
        }
    }
}

/// A prefix, written without its length if it is a single address.
fn net_text(net: &IpNet) -> String {
    if is_host(net) { net.addr().to_string() } else { net.to_string() }
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

impl Uniform {
    /// Parses any map but a file, without checking it.
    pub(super) fn parse(given: &str) -> Result<Self, PathMapError> {
        let map = match given.split_once(':') {
            Some(("ecmp", ports)) => match ports.split_once('x') {
                None => number(ports).zip(Some(1)),
                Some((source, destination)) => number(source).zip(number(destination)),
            }
            .map(|(source_ports, destination_ports)| Self::Ecmp {
                source_ports,
                destination_ports,
            }),
            Some(("flowlabel", labels)) => number(labels).map(|labels| Self::FlowLabel { labels }),
            Some(("xpath", nets)) => items(nets, net).map(|nets| Self::XPath { nets }),
            Some(("xpath-ipip", ids)) => items(ids, |id| id.parse().ok())
                .map(|outer| Self::Encapsulated { by: Encapsulation::PathId, outer }),
            Some(("bounce", spines)) => items(spines, |spine| spine.parse().ok())
                .map(|outer| Self::Encapsulated { by: Encapsulation::Spine, outer }),
            _ => None,
        };
        map.ok_or_else(|| PathMapError::Unknown { given: given.to_owned() })
    }
}

fn items<T>(list: &str, parse: impl FnMut(&str) -> Option<T>) -> Option<Arc<[T]>> {
    list.split(',').map(parse).collect()
}

/// Parses an address, or a prefix with host bits of zero. IPv4-mapped addresses become IPv4, and
/// IPv4-mapped prefixes are refused.
pub(super) fn net(text: &str) -> Option<IpNet> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical().into());
    }
    let net: IpNet = text.parse().ok()?;
    let mapped = net.addr().is_ipv6() && net.addr().to_canonical().is_ipv4();
    (net.trunc() == net && !mapped).then_some(net)
}

/// Parses a number of digits only.
fn number(text: &str) -> Option<u16> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits { text.parse().ok() } else { None }
}
