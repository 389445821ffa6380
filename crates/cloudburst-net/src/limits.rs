//! Limits of sockets and path maps. Those of the protocol are in the core.

/// The most paths of a map.
pub(crate) const MAX_PATHS: u16 = 64;
/// The most destinations of outer headers of one endpoint. None is ever forgotten: packets on their
/// way to the sockets refer to them by number.
pub(crate) const MAX_OUTER: usize = 4_096;
/// The largest UDP payload over IPv4.
pub(crate) const MAX_UDP_PAYLOAD: usize = 65_507;
