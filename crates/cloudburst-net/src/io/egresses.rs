//! The numbers of egresses.

use std::collections::HashMap;
use std::net::Ipv4Addr;

/// The numbers of an endpoint's egresses: first its sockets, then its flow labels, then
/// destinations of outer headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EgressNumbers {
    pub(crate) sockets: u16,
    /// How many of the sockets take messages.
    pub(crate) ports: u16,
    pub(crate) labels: u16,
    pub(crate) encapsulates: bool,
    pub(crate) outer: HashMap<Ipv4Addr, u16>,
}
