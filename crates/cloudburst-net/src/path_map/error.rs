//! Why a path map was refused.

use crate::limits::MAX_PATHS;
use cloudburst_core::path::{Order, OrderError};
use ipnet::IpNet;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// Why a path map was refused. Its author is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathMapError {
    /// The text is not a path map.
    #[error(
        "path map `{given}` is unknown: it must be `ecmp:N` or `ecmp:NxM`, `flowlabel:N`, \
         `xpath:ADDR,...` with addresses of the peer, `xpath-ipip:ID,...` or `bounce:ADDR,...` with \
         IPv4 addresses, of 1 to {max} paths each, or `file:PATH`",
        max = MAX_PATHS
    )]
    Unknown {
        /// The text of the map.
        given: String,
    },
    /// No path, or more than an endpoint can use.
    #[error("path map `{given}` has {paths} paths: it must have 1 to {max}", max = MAX_PATHS)]
    Count {
        /// The text of the map.
        given: String,
        /// The number of its paths.
        paths: usize,
    },
    /// The same path is given twice.
    #[error("path map `{given}` names {address} twice: each path needs an address of its own")]
    Repeated {
        /// The text of the map.
        given: String,
        /// The address.
        address: IpAddr,
    },
    /// An address that no host can have.
    #[error("path map `{given}` names {address}, which no host can have")]
    NoHost {
        /// The text of the map.
        given: String,
        /// The address.
        address: IpAddr,
    },
    /// Too many destinations of outer headers, which an endpoint never forgets.
    #[error(
        "path map `{given}` exceeds the {most} destinations of outer headers that one endpoint can use \
         in its lifetime: build another endpoint"
    )]
    TooManyOuter {
        /// The text of the map.
        given: String,
        /// The maximum.
        most: usize,
    },
    /// A prefix outside a path file, so that the addresses it replaces are unknown.
    #[error(
        "path map `{given}` names {net}, which is not one address: prefixes are allowed only in files \
         (`file:PATH`), for a `prefix` of the same length"
    )]
    Prefix {
        /// The text of the map.
        given: String,
        /// The prefix.
        net: IpNet,
    },
    /// IPv4 has no flow labels.
    #[error(
        "path map `{given}` needs IPv6, and the sockets are bound to {bind}: bind to `[::]:PORT`"
    )]
    NoFlowLabels {
        /// The text of the map.
        given: String,
        /// The address that the sockets are bound to.
        bind: IpAddr,
    },
    /// An address of another family than the sockets.
    #[error(
        "path map `{given}` leads to {address}, which sockets bound to {bind} cannot send to: bind \
         to an address of that family"
    )]
    Family {
        /// The text of the map.
        given: String,
        /// The address of the other family.
        address: IpAddr,
        /// The address that the sockets are bound to.
        bind: IpAddr,
    },
    /// The map writes IP headers, and the endpoint is not bound to an address that can be their
    /// source.
    #[error(
        "path map `{given}` writes IPv4 headers, which need a source, and the sockets are bound to \
         {bind}: bind to an IPv4 address of this host"
    )]
    NoSource {
        /// The text of the map.
        given: String,
        /// The address that the sockets are bound to.
        bind: IpAddr,
    },
    /// A digit reversal for a number of paths that depends on the peer.
    #[error(
        "path map `{given}` has a number of paths that depends on the peer, and order {order} needs a \
         fixed number: use rrb, rb or recycled"
    )]
    NoShape {
        /// The text of the map.
        given: String,
        /// The order.
        order: Order,
    },
    /// An order that does not fit the map.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The map needs more than the endpoint was built with: sockets are opened once.
    #[error(
        "path map `{given}` needs {needed} {what}, and this endpoint was built with {built}: build \
         it with a map that needs as many"
    )]
    NotBuilt {
        /// The text of the map.
        given: String,
        /// What the map needs more of.
        what: &'static str,
        /// How many it needs.
        needed: u16,
        /// How many the endpoint has.
        built: u16,
    },
    /// A file that cannot be read.
    #[error("cannot read the path map file {path}: {reason}", path = path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// A file that cannot be parsed.
    #[error(
        "cannot parse the path map file {path}, which must have a table [[to]] for each destination, \
         with `prefix` and `paths`: {reason}",
        path = path.display()
    )]
    Table {
        /// The path of the file.
        path: PathBuf,
        /// The position, and what is wrong there.
        reason: String,
    },
    /// An invalid entry of a file.
    #[error("the path map file {path}, prefix {prefix}: {reason}", path = path.display())]
    Row {
        /// The path of the file.
        path: PathBuf,
        /// The prefix of the entry, as written in the file.
        prefix: String,
        /// What is wrong.
        reason: String,
    },
}

impl From<PathMapError> for io::Error {
    /// The kind is [`io::ErrorKind::InvalidInput`]. The error is in [`io::Error::get_ref`].
    fn from(error: PathMapError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}
