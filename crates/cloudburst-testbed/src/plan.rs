//! What each program is told, as text: batches for `ip` and `tc`, rules for `nft`, sysctls. No side
//! effects here.
//!
//! A port is named after what it leads to: in the namespace of `l1`, `s3` is the port to spine 3.
//! Names of ports stand behind `dev` or `name`, always: `ip link add b` would read a broadcast
//! address.

use crate::address::{link_local, mac, path_v4, path_v6, v4, v6};
use crate::state::{Failure, State};
use crate::topology::{Link, Node, Topology};
use core::fmt::Write as _;
use std::net::IpAddr;

/// The handle of the qdisc that is the tiny queue, as `tc` prints it.
pub(crate) const TINY: &str = "11:";
/// The same for the queue of everything else.
pub(crate) const DEFAULT: &str = "21:";

/// The group of all ports: they can be removed with one word, and at once.
pub(crate) const GROUP: &str = "3202";

/// The name of a node's namespace.
pub(crate) fn namespace(name: &str, node: Node) -> String {
    format!("{name}-{node}")
}

/// `ip`: all namespaces.
pub(crate) fn namespaces(name: &str, topology: &Topology) -> String {
    lines(topology.nodes().map(|node| format!("netns add {}", namespace(name, node))))
}

/// `ip`: all links, both ends of each where they belong from the start.
pub(crate) fn links(name: &str, topology: &Topology) -> String {
    let end = |node: Node, neighbour: Node| {
        // One segment a packet, also of TCP's: a queue counts packets.
        format!(
            "name {neighbour} address {} mtu {} txqueuelen 1000 gso_max_segs 1 group {GROUP} netns {}",
            mac(node, neighbour),
            topology.mtu,
            namespace(name, node)
        )
    };
    lines(topology.links().into_iter().map(|Link { lower, upper }| {
        format!("link add {} type veth peer {}", end(lower, upper), end(upper, lower))
    }))
}

/// Files under `/proc/sys/net`, and what to write there.
pub(crate) fn sysctls(topology: &Topology, node: Node) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    let mut set = |key: String, value: u32| settings.push((key, value.to_string()));
    let ports = topology.neighbours(node).into_iter().map(|neighbour| neighbour.to_string());
    for port in ["all", "default"].map(String::from).into_iter().chain(ports) {
        set(format!("ipv4/conf/{port}/rp_filter"), 0);
        set(format!("ipv4/conf/{port}/send_redirects"), 0);
        set(format!("ipv6/conf/{port}/disable_ipv6"), 0);
        set(format!("ipv6/conf/{port}/accept_dad"), 0);
        set(format!("ipv6/conf/{port}/accept_ra"), 0);
        set(format!("ipv6/conf/{port}/router_solicitations"), 0);
    }
    if let Node::Leaf(index) | Node::Spine(index) = node {
        set("ipv4/conf/all/forwarding".into(), 1);
        set("ipv6/conf/all/forwarding".into(), 1);
        // Addresses, protocol and ports.
        set("ipv4/fib_multipath_hash_policy".into(), 1);
        // The same and the flow label: 3 is "as the fields say".
        set("ipv6/fib_multipath_hash_policy".into(), 3);
        set("ipv6/fib_multipath_hash_fields".into(), 0x3f);
        // Not 0, which means a seed that changes from boot to boot.
        let kind = if matches!(node, Node::Leaf(_)) { 0 } else { 1 << 16 };
        let seed = topology.seed.wrapping_mul(0x9e37_79b9).wrapping_add(kind + u32::from(index));
        set("ipv4/fib_multipath_hash_seed".into(), seed.max(1));
    }
    settings
}

/// The sysctl that kernels before 6.11 do not have.
pub(crate) const SEED: &str = "ipv4/fib_multipath_hash_seed";

/// `ip`: addresses, neighbours and routes of a node. Saying it twice changes nothing, so it also
/// brings back what went with a link that was down.
pub(crate) fn addresses_and_routes(topology: &Topology, node: Node, state: &State) -> String {
    let mut plan = Routes { topology, node, state, text: String::new() };
    plan.line("link set dev lo up");
    plan.own_addresses();
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

/// `ip`: the ports of `node` among those of `links` that are to go down.
pub(crate) fn links_down(links: &[Link], node: Node, state: &State) -> String {
    let own = links.iter().filter(|link| link.lower == node || link.upper == node);
    let down = own.filter(|link| state.failure(**link) == Some(Failure::Down));
    lines(down.map(|link| {
        let port = if link.lower == node { link.upper } else { link.lower };
        format!("link set dev {port} down")
    }))
}

/// `ip`: a question for each port whose answer waits until it sends. A port begins to a moment after
/// its link is up, when a worker of the kernel has come to it; until then it drops. Asking for one
/// port by name, other than for all, does that work first.
pub(crate) fn settle(topology: &Topology, node: Node) -> String {
    let ports = topology.neighbours(node).into_iter();
    lines(ports.map(|port| format!("link show dev {port}")))
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
        let (topology, node) = (self.topology, self.node);
        let own: [IpAddr; 2] = [v4(topology, node).into(), v6(topology, node).into()];
        let (port, aliases) = match node {
            // Programs ask the interface that has their address how fast it is.
            Node::Host(host) => (Node::Leaf(topology.leaf_of(host)).to_string(), Some(host)),
            _ => ("lo".into(), None),
        };
        for address in own {
            self.own_address(address, &port);
        }
        if let Some(host) = aliases {
            for spine in 1..=topology.spines {
                self.own_address(path_v4(topology, host, spine).into(), "lo");
                self.own_address(path_v6(topology, host, spine).into(), "lo");
            }
        }
    }

    fn own_address(&mut self, address: IpAddr, port: &str) {
        let nodad = if address.is_ipv6() { " nodad" } else { "" };
        self.line(format!("address replace {} dev {port}{nodad}", prefix(address)));
    }

    /// Nobody asks for hardware addresses: questions would be lost like everything else.
    fn neighbour(&mut self, neighbour: Node) {
        let mac = mac(neighbour, self.node);
        self.line(format!("link set dev {neighbour} up"));
        for hop in [IpAddr::from(v4(self.topology, neighbour)), link_local(neighbour).into()] {
            self.line(format!(
                "neighbour replace {hop} lladdr {mac} dev {neighbour} nud permanent"
            ));
        }
    }

    /// A route by way of any of `neighbours`.
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
            let (topology, node) = (self.topology, self.node);
            // The aliases are addresses of this host too; these are the ones to speak from.
            let (hop, src) = (v4(topology, leaf), v4(topology, node));
            self.line(format!("route replace 0.0.0.0/0 via {hop} dev {leaf} src {src} onlink"));
            let (hop, src) = (link_local(leaf), v6(topology, node));
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
            for spine in 1..=topology.spines {
                let by = if here { Node::Host(host) } else { Node::Spine(spine) };
                self.reach_alias(host, spine, by);
            }
        }
    }

    fn spine(&mut self, own: u16) {
        for leaf in 1..=self.topology.leaves {
            self.reach_node(Node::Leaf(leaf), &[Node::Leaf(leaf)]);
            self.reach_hosts_of(leaf, &[Node::Leaf(leaf)]);
        }
        for host in 1..=self.topology.hosts {
            self.reach_alias(host, own, Node::Leaf(self.topology.leaf_of(host)));
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

    /// XPath: a path is a destination address, and a route of its own.
    fn reach_alias(&mut self, host: u16, spine: u16, by: Node) {
        self.route(&prefix(path_v4(self.topology, host, spine).into()), &[by]);
        self.route(&prefix(path_v6(self.topology, host, spine).into()), &[by]);
    }
}

/// `tc`: the two queues of each port.
///
/// HTB with two classes that both may borrow up to the link's rate: each is sure of its weight's
/// share, and where both borrow, their quanta make them take turns in the same proportion.
pub(crate) fn queues(topology: &Topology, node: Node) -> String {
    let mut text = String::new();
    let is_host = matches!(node, Node::Host(_));
    let tiny_packets = if is_host { topology.host_tiny_packets } else { topology.tiny_packets };
    let frame = topology.mtu + 14;
    let (tiny, rest) = (topology.weights.tiny, topology.weights.default);
    for neighbour in topology.neighbours(node) {
        let rate = topology.link_rate(Link::between(node, neighbour));
        // What a timer that is late by 100 us must be able to make up for.
        let burst = 2 * u64::from(frame) + rate / 8 / 10_000;
        let class = |id: &str, parent: &str, weight: u32| {
            let share = rate * u64::from(weight) / u64::from(tiny + rest);
            let share = if parent == "1:" { rate } else { share };
            format!(
                "class add dev {neighbour} parent {parent} classid {id} htb rate {share}bit \
                 ceil {rate}bit burst {burst} cburst {burst} quantum {}",
                weight * frame
            )
        };
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        line(format!("qdisc add dev {neighbour} root handle 1: htb default 20"));
        line(class("1:1", "1:", 1));
        line(class("1:10", "1:1", tiny));
        line(class("1:20", "1:1", rest));
        for (id, packets) in [("1", tiny_packets), ("2", topology.default_packets)] {
            let mut parent = format!("1:{id}0");
            if is_host {
                // What a host sends as one super-packet (UDP_SEGMENT) is cut before it is queued:
                // TBF cuts what is larger than its burst. Its rate is such that it never waits.
                let rate = (4 * rate).max(10_000_000_000);
                line(format!(
                    "qdisc add dev {neighbour} parent {parent} handle {id}0: \
                     tbf rate {rate}bit burst {} limit 100000000",
                    frame + 100
                ));
                parent = format!("{id}0:1");
            }
            line(format!(
                "qdisc add dev {neighbour} parent {parent} handle {id}1: pfifo limit {packets}"
            ));
        }
        // The upper six bits of the byte; the lower two are ECN's.
        let dscp = topology.dscp << 2;
        for (order, protocol, field) in [(1, "ip", "ip dsfield"), (2, "ipv6", "ip6 priority")] {
            line(format!(
                "filter add dev {neighbour} parent 1: prio {order} protocol {protocol} \
                 u32 match {field} {dscp:#04x} 0xfc flowid 1:10"
            ));
        }
    }
    text
}

/// `nft`: for each port, a place for what it loses, with counters.
pub(crate) fn loss_table(topology: &Topology, node: Node) -> String {
    let mut text = String::from("table netdev cbrst {\n");
    for port in topology.neighbours(node) {
        let _ = writeln!(
            text,
            "counter lost_{port} {{}}\ncounter failed_{port} {{}}\n\
             chain {port} {{ type filter hook ingress device \"{port}\" priority 0; policy accept; }}"
        );
    }
    text.push_str("}\n");
    text
}

/// `nft`: what a node's ports lose by now. Said anew, as one transaction, whenever it changes.
pub(crate) fn loss_rules(topology: &Topology, node: Node, state: &State) -> String {
    let mut text = String::new();
    for port in topology.neighbours(node) {
        let link = Link::between(node, port);
        let _ = writeln!(text, "flush chain netdev cbrst {port}");
        if state.failure(link) == Some(Failure::Silent) {
            let _ = writeln!(text, "add rule netdev cbrst {port} counter name failed_{port} drop");
        }
        let thousandths = (state.loss(link) * 1000.0).round() as u32;
        if thousandths > 0 {
            let _ = writeln!(
                text,
                "add rule netdev cbrst {port} numgen random mod 100000 < {thousandths} \
                 counter name lost_{port} drop"
            );
        }
    }
    text
}

fn prefix(address: IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 })
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Target;

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
    fn no_route_uses_a_link_that_is_down() {
        let mut state = small();
        state.failed.insert("l1-s2".parse().unwrap(), Failure::Down);
        let text = addresses_and_routes(&state.topology, Node::Leaf(1), &state);
        assert!(!text.contains("s2"), "{text}");
        assert!(text.contains("route replace 10.1.2.0/24 nexthop via 10.3.0.1 dev s1 onlink\n"));
    }

    #[test]
    fn queues_are_told_by_dscp_without_ecn() {
        let topology = Topology { dscp: 10, tiny_packets: 3, ..Topology::default() };
        let text = queues(&topology, Node::Spine(1));
        assert!(text.contains("match ip dsfield 0x28 0xfc flowid 1:10"), "{text}");
        assert!(text.contains("dev l2 parent 1:10 handle 11: pfifo limit 3\n"), "{text}");
        assert!(text.contains("dev l2 parent 1:20 handle 21: pfifo limit 256\n"), "{text}");
    }

    #[test]
    fn what_fails_silently_is_dropped_at_both_ends_and_loss_has_three_digits() {
        let mut state = small();
        state.failed.insert(Target::Node(Node::Spine(2)), Failure::Silent);
        state.loss.insert("l1-s1".parse().unwrap(), 0.25);
        let leaf = loss_rules(&state.topology, Node::Leaf(1), &state);
        assert!(leaf.contains("add rule netdev cbrst s2 counter name failed_s2 drop\n"));
        assert!(leaf.contains("s1 numgen random mod 100000 < 250 counter name lost_s1 drop\n"));
        assert!(!leaf.contains("add rule netdev cbrst h1"));
        let spine = loss_rules(&state.topology, Node::Spine(2), &state);
        assert_eq!(spine.matches("counter name failed_").count(), 2);
    }
}
