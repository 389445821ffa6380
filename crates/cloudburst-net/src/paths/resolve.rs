//! Resolves path maps to the egresses of an endpoint.

use super::addresses::Addresses;
use crate::io::{EgressNumbers, OUTER_LEN, Routes, UdpIo};
use crate::limits::MAX_OUTER;
use crate::path_map::{Needs, PathMap, PathMapError, Uniform, is_host};
use cloudburst_core::naming::Naming;
use cloudburst_core::path::{Order, PathResolver, Via};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The paths of a map to any peer that the sockets can address, and none to others.
#[derive(Debug)]
pub(crate) struct Resolved {
    map: PathMap,
    /// The map that the order fits: `map`, or one of which it is a subset.
    pub(crate) whole: PathMap,
    egresses: EgressNumbers,
    addresses: Arc<Addresses>,
    routes: Option<Arc<Routes>>,
}

/// What all path maps of an endpoint share, and the settings that they must suit.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    pub(crate) bind: IpAddr,
    pub(crate) order: Order,
    pub(crate) addresses: Arc<Addresses>,
    /// `None` if the system does not tell the MTU of routes.
    pub(crate) routes: Option<Arc<Routes>>,
}

impl Resolver {
    /// Resolves `map` to the endpoint's sockets. If the order does not fit the paths of `map`, it
    /// must fit those of `whole`, of which `map` must be a subset.
    pub(crate) fn resolve(
        &self,
        map: PathMap,
        whole: &PathMap,
        io: &UdpIo,
    ) -> Result<Resolved, PathMapError> {
        map.check(self.bind)?;
        let whole = match map.check_order(self.order) {
            Ok(()) => map.clone(),
            Err(_) if map.is_part_of(whole) => whole.clone(),
            Err(error) => return Err(error),
        };
        let needs = map.needs();
        check(&io.egresses(&[]), &map, &needs)?;
        let outer = [needs.outer, whole.needs().outer].concat();
        let egresses = io.egresses(&outer);
        if outer.iter().any(|ip| !egresses.outer.contains_key(ip)) {
            return Err(PathMapError::TooManyOuter { given: map.to_string(), most: MAX_OUTER });
        }
        let addresses = self.addresses.clone();
        let routes = self.routes.clone();
        Ok(Resolved { map, whole, egresses, addresses, routes })
    }
}

/// Checks that the egresses suffice for the needs of the map `given`.
fn check(egresses: &EgressNumbers, given: &PathMap, needs: &Needs) -> Result<(), PathMapError> {
    let raw = |any: bool| u16::from(any);
    for (what, needed, built) in [
        ("sockets", needs.sockets, egresses.sockets),
        ("ports for messages", needs.ports, egresses.ports),
        ("flow labels", needs.labels, egresses.labels),
        ("raw sockets", raw(!needs.outer.is_empty()), raw(egresses.encapsulates)),
    ] {
        if needed > built {
            return Err(PathMapError::NotBuilt { given: given.to_string(), what, needed, built });
        }
    }
    Ok(())
}

impl Resolved {
    /// The paths of `map` to `peer`, of this generation.
    fn vias(&self, map: &PathMap, peer: SocketAddr, ports: u16, generation: u32) -> Vec<Via> {
        let ip = peer.ip();
        let egresses = &self.egresses;
        let Some((prefix, map)) = map.to(ip) else { return Vec::new() };
        match map {
            &Uniform::Ecmp { source_ports, destination_ports } => {
                let to = (0..ports.clamp(1, destination_ports)).map_while(|more| {
                    let mut to = peer;
                    to.set_port(peer.port().checked_add(more)?);
                    Some(to)
                });
                let sockets = u32::from(egresses.sockets);
                // Each generation takes the next part of the pool, its reserve included.
                let first = u32::from(source_ports) * (generation % sockets);
                let pool = |remote| {
                    let egress = move |nth| ((first + u32::from(nth)) % sockets) as u16;
                    let via = move |nth| Via { egress: egress(nth), local: None, remote };
                    (0..source_ports).map(via)
                };
                to.flat_map(pool).collect()
            }
            &Uniform::FlowLabel { labels } if ip.is_ipv6() => {
                let via =
                    |label| Via { egress: egresses.sockets + label, local: None, remote: peer };
                (0..labels).map(via).collect()
            }
            Uniform::XPath { nets } => {
                let known = prefix.is_some() || nets.iter().any(|net| net.addr() == ip);
                let to = nets.iter().filter(|_| known).filter_map(|net| address_in(net, ip));
                let via = |ip| {
                    let mut remote = peer;
                    remote.set_ip(ip);
                    Via { egress: 0, local: None, remote }
                };
                to.map(via).collect()
            }
            Uniform::Encapsulated { outer, .. } if ip.is_ipv4() => {
                let via = |&egress| Via { egress, local: None, remote: peer };
                outer.iter().filter_map(|outer| egresses.outer.get(outer)).map(via).collect()
            }
            Uniform::FlowLabel { .. } | Uniform::Encapsulated { .. } => Vec::new(),
        }
    }
}

impl PathResolver for Resolved {
    fn paths(&self, peer: SocketAddr, ports: u16) -> Vec<Via> {
        if peer.port() == 0 || !self.addresses.reach(peer.ip()) {
            return Vec::new();
        }
        self.vias(&self.map, peer, ports, 0)
    }

    fn slots(&self, peer: SocketAddr, ports: u16) -> Vec<Via> {
        self.vias(&self.whole, peer, ports, 0)
    }

    /// With hashed ports, the next window of all sockets, cyclically.
    fn regenerate(&self, peer: SocketAddr, ports: u16, generation: u32) -> Vec<Via> {
        match self.map.to(peer.ip()) {
            Some((_, &Uniform::Ecmp { source_ports, .. }))
                if source_ports < self.egresses.sockets =>
            {
                self.vias(&self.map, peer, ports, generation)
            }
            _ => Vec::new(),
        }
    }

    fn overhead(&self, via: Via) -> usize {
        if via.egress < self.egresses.sockets + self.egresses.labels { 0 } else { OUTER_LEN }
    }

    fn mtu(&self, via: Via) -> Option<usize> {
        // With an outer header, the packet goes to the address in that.
        let outer = self.egresses.outer.iter().find(|(_, number)| **number == via.egress);
        let ip = outer.map_or(via.remote.ip(), |(ip, _)| (*ip).into());
        self.routes.as_ref()?.mtu(SocketAddr::new(ip, via.remote.port()))
    }

    fn naming(&self, address: SocketAddr) -> Naming {
        self.addresses.naming(address)
    }
}

/// The address in `net` with the same host part as `ip`.
fn address_in(net: &IpNet, ip: IpAddr) -> Option<IpAddr> {
    match (net, ip) {
        (IpNet::V4(net), IpAddr::V4(ip)) => Some((net.addr() | (ip & net.hostmask())).into()),
        (IpNet::V6(net), IpAddr::V6(ip)) => Some((net.addr() | (ip & net.hostmask())).into()),
        // A list for one peer may have addresses of both families.
        (net, _) if is_host(net) => Some(net.addr()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddrV6;

    fn resolved(map: PathMap) -> Resolved {
        let outer = [([10, 3, 0, 1].into(), 40), ([10, 3, 0, 2].into(), 41)].into();
        let egresses = EgressNumbers { sockets: 8, ports: 2, labels: 4, encapsulates: true, outer };
        let addresses = Addresses::new([0_u16; 8].into(), [], Vec::new()).into();
        Resolved { whole: map.clone(), map, egresses, addresses, routes: None }
    }

    fn vias(map: &str, peer: &str, ports: u16) -> Vec<(u16, String)> {
        let paths = resolved(map.parse().unwrap()).paths(peer.parse().unwrap(), ports);
        paths.iter().map(|via| (via.egress, via.remote.to_string())).collect()
    }

    #[test]
    fn pairs_of_ports_are_as_many_as_the_peer_has_ports_and_the_map_allows() {
        assert_eq!(vias("ecmp:4x4", "10.0.0.1:7000", 1).len(), 4);
        assert_eq!(vias("ecmp:4x4", "10.0.0.1:7000", 2).len(), 8);
        assert_eq!(vias("ecmp:4x4", "10.0.0.1:7000", 64).len(), 16);
        assert_eq!(vias("ecmp:1x4", "10.0.0.1:65534", 4).len(), 2, "no such ports");
        let last = vias("ecmp:2x2", "10.0.0.1:7000", 2).pop();
        assert_eq!(last, Some((1, "10.0.0.1:7001".into())));
    }

    #[test]
    fn each_generation_takes_the_next_sockets_of_the_pool() {
        let egresses = |map: &str, generation| {
            let paths = resolved(map.parse().unwrap()).regenerate(
                "10.0.0.1:7".parse().unwrap(),
                1,
                generation,
            );
            paths.iter().map(|via| via.egress).collect::<Vec<_>>()
        };
        assert_eq!(egresses("ecmp:3", 1), [3, 4, 5]);
        assert_eq!(egresses("ecmp:3", 2), [6, 7, 0]);
        assert_eq!(egresses("ecmp:3", 8), [0, 1, 2]);
        assert_eq!(egresses("ecmp:3", u32::MAX), [5, 6, 7]);
        assert!(egresses("xpath:10.0.0.1,10.1.0.1", 1).is_empty());
    }

    #[test]
    fn a_link_local_peer_keeps_its_scope() {
        for map in ["ecmp:2x2", "xpath:fe80::1", "flowlabel:2"] {
            let map = resolved(map.parse().unwrap());
            let peer = SocketAddrV6::new("fe80::1".parse().unwrap(), 7, 0, 3);
            for via in map.paths(peer.into(), 2) {
                assert!(matches!(via.remote, SocketAddr::V6(to) if to.scope_id() == 3), "{via:?}");
            }
        }
    }

    #[test]
    fn only_the_peer_that_has_the_addresses_is_reached() {
        let map = "xpath:10.0.0.1,10.1.0.1";
        let both = [(0, "10.0.0.1:7000".into()), (0, "10.1.0.1:7000".into())];
        assert_eq!(vias(map, "10.1.0.1:7000", 1), both);
        assert!(vias(map, "10.0.0.3:7000", 1).is_empty());
        assert!(vias(map, "10.0.0.1:0", 1).is_empty());
    }

    #[test]
    fn labels_and_outer_headers_have_egresses_of_their_own_and_peers_of_their_family() {
        let egresses =
            |map, peer| vias(map, peer, 1).iter().map(|(egress, _)| *egress).collect::<Vec<_>>();
        assert_eq!(egresses("flowlabel:4", "[fd00::1]:7"), [8, 9, 10, 11]);
        assert!(egresses("flowlabel:4", "10.0.0.1:7").is_empty());
        for map in ["bounce:10.3.0.2,10.3.0.1", "xpath-ipip:10.3.0.2,10.3.0.1"] {
            assert_eq!(egresses(map, "10.0.0.1:7"), [41, 40]);
            assert!(egresses(map, "[fd00::1]:7").is_empty());
        }
    }

    #[test]
    fn an_address_keeps_its_place_in_the_prefix() {
        let net = |text: &str| text.parse().unwrap();
        let v4: IpAddr = "10.1.2.9".parse().unwrap();
        let v6: IpAddr = "fd00::9".parse().unwrap();
        assert_eq!(address_in(&net("10.101.2.0/24"), v4), "10.101.2.9".parse().ok());
        assert_eq!(address_in(&net("10.200.0.0/13"), v4), "10.201.2.9".parse().ok());
        assert_eq!(address_in(&net("fd01::/64"), v6), "fd01::9".parse().ok());
        assert_eq!(address_in(&net("fd01::/64"), v4), None);
    }

    #[test]
    fn a_map_that_needs_more_than_was_opened_is_refused() {
        let map = PathMap::ecmp(16);
        let egresses = resolved(PathMap::default()).egresses;
        let error = check(&egresses, &map, &map.needs()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "path map `ecmp:16` needs 16 sockets, and this endpoint was built with 8: build it \
             with a map that needs as many"
        );
    }
}
