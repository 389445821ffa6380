//! What an examination measured.

use super::addresses::Addresses;
use super::exam::Findings;
use super::trace::{Route, distinct};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};

/// All measurements of an examination.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) peer: SocketAddr,
    pub(super) local: IpAddr,
    pub(super) addresses: Addresses,
    pub(super) here: End,
    pub(super) there: End,
    /// Whether the receiver's answer reached an endpoint with all these source ports.
    pub(super) all_ports_answered: bool,
    #[serde(flatten)]
    pub(super) sizes: Sizes,
    pub(super) ports: Vec<Port>,
    /// Distinct paths of the ports that work; `None` if no router answers.
    pub(super) paths: Option<Vec<Path>>,
}

/// One end.
#[derive(Debug, Serialize)]
pub(super) struct End {
    pub(super) dscp: u8,
    /// The first other DSCP that was received.
    pub(super) first_foreign_dscp: Option<u8>,
    pub(super) buffers: Buffers,
    /// Whether the system segments batches, as far as was tried.
    pub(super) gso: bool,
    /// Whether received datagrams were coalesced; `None`: not known.
    pub(super) gro: Option<bool>,
    pub(super) kernel_drops: u64,
}

/// The sizes of packets, in bytes.
#[derive(Debug, Serialize)]
pub(super) struct Sizes {
    /// The longest packets that were sent.
    pub(super) mtu: usize,
    /// The longest that the path to the receiver carries, as far as this system knows.
    pub(super) path_mtu: Option<usize>,
    /// Whether any packets of `mtu` bytes arrived that were sent one at a time.
    pub(super) full_packets_arrive: bool,
    /// Whether a message of many packets arrived.
    pub(super) burst_arrived: bool,
}

/// The sizes of each socket's buffers, in bytes.
#[derive(Debug, Serialize)]
pub(super) struct Buffers {
    pub(super) wanted: u64,
    pub(super) receive: u64,
    pub(super) send: u64,
}

/// One source port.
#[derive(Debug, Serialize)]
pub(super) struct Port {
    pub(super) port: u16,
    /// Routers on the route there, in order; null where none answered.
    pub(super) hops: Vec<Option<IpAddr>>,
    /// `None`: no answer, or no longer any.
    pub(super) found: Option<Findings>,
}

/// A path, and the ports that take it.
#[derive(Debug, Serialize)]
pub(super) struct Path {
    pub(super) hops: Vec<Option<IpAddr>>,
    pub(super) ports: Vec<u16>,
}

impl Path {
    /// Returns the distinct paths of those `ports` that work, if any router on the `routes` answered.
    pub(super) fn of_working(routes: &[Route], ports: &[Port]) -> Option<Vec<Self>> {
        if routes.iter().all(|route| route.hops.iter().all(Option::is_none)) {
            return None;
        }
        let works = |route: &&Route| {
            ports.iter().any(|port| port.port == route.port && port.found.is_some())
        };
        let working: Vec<Route> = routes.iter().filter(works).cloned().collect();
        let path = |(route, ports): (Route, Vec<u16>)| Self { hops: route.hops, ports };
        Some(distinct(&working).into_iter().map(path).collect())
    }
}

/// Lists routers in order, with a star for each that is silent.
pub(super) fn routers(hops: &[Option<IpAddr>]) -> String {
    if hops.is_empty() {
        return "no router".into();
    }
    let names = hops.iter().map(|hop| hop.map_or("*".into(), |hop| hop.to_string()));
    names.collect::<Vec<String>>().join(" ")
}
