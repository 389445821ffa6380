//! Every limit of sockets and path maps, once.
//!
//! Limits of the protocol are the core's.

/// The most paths of a map.
pub(crate) const MAX_PATHS: u16 = 64;
/// The most DSCPs of an endpoint: one a class.
pub(crate) const MAX_DSCPS: usize = 8;
/// Destinations of outer headers that are remembered of one endpoint. None is forgotten: packets on
/// their way to the sockets name them by number.
pub(crate) const MAX_OUTER: usize = 4_096;
/// The largest UDP payload over IPv4.
pub(crate) const MAX_UDP_PAYLOAD: usize = 65_507;
