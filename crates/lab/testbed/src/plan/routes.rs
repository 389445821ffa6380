//! Addresses, neighbours and routes.

use crate::address::{link_local, mac_text, path_v4, path_v6, v4, v6};
use crate::state::{Failure, State};
use crate::topology::{Link, Node, Topology};
use core::fmt::Write as _;
use std::net::IpAddr;

/// `ip`: addresses, neighbours and routes of a node. It is idempotent, so it also restores those that
/// were lost with a link that went down.
pub(crate) fn addresses_and_routes(topology: &Topology, node: Node, state: &State) -> String {
    let mut plan = Routes { topology, node, state, text: String::new() };
    plan.line("link set dev lo up");
    plan.own_addresses();
    if topology.emulates(node) {
        plan.line(format!("link set dev {} up", super::DIVERT));
        plan.line(format!("link set dev {} up", super::RELAY));
    }
    for neighbour in topology.neighbours(node) {
        if plan.is_usable(neighbour) {
            plan.neighbour(neighbour);
        }
    }
    match node {
        Node::Host(host) => plan.host(host),
        Node::Leaf(leaf) => plan.leaf(leaf),
        Node::Spine(spine) => plan.spine(spine),
    }
    plan.text
}

struct Routes<'a> {
    topology: &'a Topology,
    node: Node,
    state: &'a State,
    text: String,
}

impl Routes<'_> {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    fn is_usable(&self, neighbour: Node) -> bool {
        self.state.failure(Link::between(self.node, neighbour)) != Some(Failure::Down)
    }

    fn own_addresses(&mut self) {
        let topology = self.topology;
        let node = self.node;
        let own: [IpAddr; 2] = [v4(topology, node).into(), v6(topology, node).into()];
        let (port, aliases) = match node {
            // Programs query the speed of the interface that has their address.
            Node::Host(host) => (Node::Leaf(topology.leaf_of(host)).to_string(), Some(host)),
            _ => ("lo".into(), None),
        };
        for address in own {
            self.own_address(address, &port);
        }
        if let Some(host) = aliases {
            for path in topology.paths() {
                self.own_address(path_v4(topology, host, path).into(), "lo");
                self.own_address(path_v6(topology, host, path).into(), "lo");
            }
        }
    }

    fn own_address(&mut self, address: IpAddr, port: &str) {
        let nodad = if address.is_ipv6() { " nodad" } else { "" };
        self.line(format!("address replace {} dev {port}{nodad}", prefix(address)));
    }

    /// Adds a permanent neighbour entry: ARP requests could be lost like any packet.
    fn neighbour(&mut self, neighbour: Node) {
        let mac = mac_text(neighbour, self.node);
        self.line(format!("link set dev {neighbour} up"));
        for hop in [IpAddr::from(v4(self.topology, neighbour)), link_local(neighbour).into()] {
            self.line(format!(
                "neighbour replace {hop} lladdr {mac} dev {neighbour} nud permanent"
            ));
        }
    }

    /// Adds a route through any of `neighbours`.
    fn route(&mut self, to: &str, neighbours: &[Node]) {
        let usable = neighbours.iter().filter(|&&neighbour| self.is_usable(neighbour));
        let mut route = format!("route replace {to}");
        let before = route.len();
        for neighbour in usable {
            let _ = if to.contains(':') {
                write!(route, " nexthop via {} dev {neighbour}", link_local(*neighbour))
            } else {
                let hop = v4(self.topology, *neighbour);
                write!(route, " nexthop via {hop} dev {neighbour} onlink")
            };
        }
        if route.len() > before {
            self.line(route);
        }
    }

    fn host(&mut self, host: u16) {
        let leaf = Node::Leaf(self.topology.leaf_of(host));
        if self.is_usable(leaf) {
            let topology = self.topology;
            let node = self.node;
            // The aliases are addresses of this host too; these are its source addresses.
            let hop = v4(topology, leaf);
            let src = v4(topology, node);
            self.line(format!("route replace 0.0.0.0/0 via {hop} dev {leaf} src {src} onlink"));
            let hop = link_local(leaf);
            let src = v6(topology, node);
            self.line(format!("route replace ::/0 via {hop} dev {leaf} src {src}"));
        }
    }

    fn leaf(&mut self, own: u16) {
        let topology = self.topology;
        let spines: Vec<_> = (1..=topology.spines).map(Node::Spine).collect();
        for &spine in &spines {
            self.reach_node(spine, &[spine]);
        }
        for leaf in (1..=topology.leaves).filter(|&leaf| leaf != own) {
            self.reach_node(Node::Leaf(leaf), &spines);
            self.reach_hosts_of(leaf, &spines);
        }
        for host in 1..=topology.hosts {
            let here = topology.leaf_of(host) == own;
            if here {
                self.reach_node(Node::Host(host), &[Node::Host(host)]);
            }
            for path in topology.paths() {
                let by = if here { Node::Host(host) } else { Node::Spine(path.0) };
                self.reach_alias(host, path, by);
            }
        }
    }

    fn spine(&mut self, own: u16) {
        for leaf in 1..=self.topology.leaves {
            self.reach_node(Node::Leaf(leaf), &[Node::Leaf(leaf)]);
            self.reach_hosts_of(leaf, &[Node::Leaf(leaf)]);
        }
        for host in 1..=self.topology.hosts {
            for path in self.topology.paths().filter(|&(spine, _)| spine == own) {
                self.reach_alias(host, path, Node::Leaf(self.topology.leaf_of(host)));
            }
        }
    }

    fn reach_node(&mut self, node: Node, by: &[Node]) {
        self.route(&prefix(v4(self.topology, node).into()), by);
        self.route(&prefix(v6(self.topology, node).into()), by);
    }

    fn reach_hosts_of(&mut self, leaf: u16, by: &[Node]) {
        self.route(&format!("10.1.{leaf}.0/24"), by);
        self.route(&format!("fd00:cb:1:{leaf:x}::/64"), by);
    }

    /// XPath: a path is a destination address with its own route.
    fn reach_alias(&mut self, host: u16, path: (u16, u16), by: Node) {
        self.route(&prefix(path_v4(self.topology, host, path).into()), &[by]);
        self.route(&prefix(path_v6(self.topology, host, path).into()), &[by]);
    }
}

fn prefix(address: IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> State {
        State::new("t", &Topology { hosts: 2, spines: 2, ..Topology::default() })
    }

    #[test]
    fn a_leaf_spreads_over_the_spines_and_pins_aliases_to_one() {
        let state = small();
        let text = addresses_and_routes(&state.topology, Node::Leaf(1), &state);
        for line in [
            "route replace 10.1.2.0/24 nexthop via 10.3.0.1 dev s1 onlink nexthop via 10.3.0.2 dev s2 onlink\n",
            "route replace 10.102.2.2/32 nexthop via 10.3.0.2 dev s2 onlink\n",
            "route replace 10.102.1.1/32 nexthop via 10.1.1.1 dev h1 onlink\n",
            "route replace fd00:cb:102:2::2/128 nexthop via fe80::cb:3:2 dev s2\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn all_path_ids_of_a_spine_lead_there() {
        let mut state = small();
        state.topology.path_ids = 3;
        let text = addresses_and_routes(&state.topology, Node::Leaf(1), &state);
        for to in ["10.102.2.2/32", "10.102.66.2/32", "10.102.130.2/32"] {
            let line = format!("route replace {to} nexthop via 10.3.0.2 dev s2 onlink\n");
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        let line = "route replace fd00:cb:102:2::1:2/128 nexthop via fe80::cb:3:2 dev s2\n";
        assert!(text.contains(line), "{line} is not in\n{text}");
        let spine = addresses_and_routes(&state.topology, Node::Spine(2), &state);
        assert!(spine.contains("route replace 10.102.66.2/32") && !spine.contains("10.101."));
        let host = addresses_and_routes(&state.topology, Node::Host(2), &state);
        assert!(host.contains("address replace 10.102.130.2/32 dev lo\n"), "{host}");
    }

    #[test]
    fn no_route_uses_a_link_that_is_down() {
        let mut state = small();
        state.failed.insert("l1-s2".parse().unwrap(), Failure::Down);
        let text = addresses_and_routes(&state.topology, Node::Leaf(1), &state);
        assert!(!text.contains("s2"), "{text}");
        assert!(text.contains("route replace 10.1.2.0/24 nexthop via 10.3.0.1 dev s1 onlink\n"));
    }
}
