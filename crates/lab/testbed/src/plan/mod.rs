//! The input of each program as text: batches for `ip` and `tc`, rules for `nft`, sysctls. There are no
//! side effects here.
//!
//! A port is named after its neighbour: in the namespace of `l1`, `s3` is the port to spine 3. Names of
//! ports always follow `dev` or `name`: `ip link add b` would read a broadcast address.

mod routes;

pub(crate) use routes::addresses_and_routes;

use crate::address::mac_text;
use crate::state::{Failure, State};
use crate::topology::{Link, Node, Topology};
use core::fmt::Write as _;
use core::iter;

/// The handle of the qdisc that is the tiny queue, as `tc` prints it.
pub(crate) const TINY: &str = "11:";
/// Returns the handle of the further tiny queue at `place`.
pub(crate) fn low(place: usize) -> String {
    format!("{}:", 12 + place)
}

/// The handle of the queue of all other packets.
pub(crate) const DEFAULT: &str = "21:";

/// The class of the tiny queue, as the priority of a socket whose packets go there.
pub(crate) const TINY_CLASS: i32 = 0x1_0010;

/// The end of the veth pair to which packets for emulated tiny queues of a switch are redirected.
pub(crate) const DIVERT: &str = "divert";
/// The end of the pair from which they are read.
pub(crate) const RELAY: &str = "relay";
/// The limit in packets of the kernel's tiny queue behind an emulated one: it is as fast, and must not
/// drop packets unless other traffic fills the port.
const BEHIND: u32 = 1000;

/// The group of all ports, by which they are removed with one command.
pub(crate) const GROUP: &str = "3202";

/// Returns the name of a node's namespace.
pub(crate) fn namespace(name: &str, node: Node) -> String {
    format!("{name}-{node}")
}

/// `ip`: all namespaces.
pub(crate) fn namespaces(name: &str, topology: &Topology) -> String {
    lines(topology.nodes().map(|node| format!("netns add {}", namespace(name, node))))
}

/// `ip`: all links, with both ends created in their namespaces.
pub(crate) fn links(fabric: &str, topology: &Topology) -> String {
    let end = |node: Node, neighbour: Node| {
        // `gso_max_segs 1`, also for TCP: with offloads off, the kernel still segments after the queue,
        // so a super-packet would count as one packet there, and arrive as a burst behind it.
        format!(
            "name {neighbour} address {} mtu {} txqueuelen 1000 gso_max_segs 1 group {GROUP} netns {}",
            mac_text(node, neighbour),
            topology.mtu,
            namespace(fabric, node)
        )
    };
    let links = topology.links().into_iter().map(|Link { lower, upper }| {
        format!("link add {} type veth peer {}", end(lower, upper), end(upper, lower))
    });
    let emulating = topology.nodes().filter(|&node| topology.emulates(node));
    let diversions = emulating.map(|node| {
        let end =
            |name| format!("name {name} mtu {} netns {}", topology.mtu, namespace(fabric, node));
        format!("link add {} type veth peer {}", end(DIVERT), end(RELAY))
    });
    lines(links.chain(diversions))
}

/// Returns files under `/proc/sys/net`, and their values.
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
    if topology.emulates(node) {
        for end in [DIVERT, RELAY] {
            set(format!("ipv6/conf/{end}/disable_ipv6"), 1);
        }
    }
    if let Node::Leaf(index) | Node::Spine(index) = node {
        set("ipv4/conf/all/forwarding".into(), 1);
        set("ipv6/conf/all/forwarding".into(), 1);
        // Addresses, protocol and ports.
        set("ipv4/fib_multipath_hash_policy".into(), 1);
        // The same and the flow label: 3 is "custom fields".
        set("ipv6/fib_multipath_hash_policy".into(), 3);
        set("ipv6/fib_multipath_hash_fields".into(), 0x3f);
        // Not 0, which stands for a random seed at each boot.
        let kind = if matches!(node, Node::Leaf(_)) { 0 } else { 1 << 16 };
        let seed = topology.seed.wrapping_mul(0x9e37_79b9).wrapping_add(kind + u32::from(index));
        set("ipv4/fib_multipath_hash_seed".into(), seed.max(1));
    }
    settings
}

/// A sysctl that kernels before 6.11 do not have.
pub(crate) const SEED: &str = "ipv4/fib_multipath_hash_seed";

/// `ethtool`: the offloads of a port.
pub(crate) fn offloads<'a>(topology: &Topology, port: &'a str) -> Vec<&'a str> {
    let mut args = vec!["-K", port, "tso", "off", "gso", "off", "gro", "off"];
    args.extend(["tx-udp-segmentation", "off"]);
    if topology.is_emulated() {
        // Packets that a program forwards must have valid checksums.
        args.extend(["tx", "off"]);
    }
    args
}

/// `ip`: takes down the ports of `node` that belong to `links`.
pub(crate) fn links_down(links: &[Link], node: Node, state: &State) -> String {
    let own = links.iter().filter(|link| link.lower == node || link.upper == node);
    let down = own.filter(|link| state.failure(**link) == Some(Failure::Down));
    lines(down.map(|link| {
        let port = if link.lower == node { link.upper } else { link.lower };
        format!("link set dev {port} down")
    }))
}

/// `ip`: a query for each port, which returns once the port can send. A port starts to send shortly
/// after its link is up, when a kernel worker has processed it, and drops packets until then. A query
/// by name, unlike one for all ports, completes that work first.
pub(crate) fn settle(topology: &Topology, node: Node) -> String {
    let ports = topology.neighbours(node).into_iter();
    lines(ports.map(|port| format!("link show dev {port}")))
}

/// `tc`: the queues of each port.
///
/// HTB with two classes that may both borrow up to the link's rate: each is guaranteed the share of its
/// weight, and if both borrow, their quanta divide the rest in the same proportion. If there are further
/// tiny queues, the class of the tiny queue contains a class for each, which has no share of its own and
/// borrows in order of priority.
pub(crate) fn queues(topology: &Topology, node: Node) -> String {
    let mut text = String::new();
    let is_host = matches!(node, Node::Host(_));
    let frame = topology.mtu + 14;
    for neighbour in topology.neighbours(node) {
        let rate = topology.link_rate(Link::between(node, neighbour));
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        line(format!("qdisc add dev {neighbour} root handle 1: htb default 20"));
        line(format!(
            "class add dev {neighbour} parent 1: classid 1:1 {}",
            htb(rate, rate, topology.mtu, 1)
        ));
        line(shares(topology, node, neighbour, "add"));
        if is_host {
            for Leaf { class, shaper, .. } in leaves(topology) {
                // Super-packets of a host (UDP_SEGMENT) are segmented before they are queued: TBF
                // segments packets larger than its burst. Its rate is so high that it never waits.
                let rate = (4 * rate).max(10_000_000_000);
                line(format!(
                    "qdisc add dev {neighbour} parent 1:{class} handle {shaper}: \
                     tbf rate {rate}bit burst {} limit 100000000",
                    frame + 100
                ));
            }
        }
        line(limits(topology, node, neighbour, "add"));
        let mut filter = |dscp: u8, action: &str| {
            // The upper six bits of the byte; the lower two are ECN's.
            let byte = dscp << 2;
            for (order, protocol, field) in [(1, "ip", "ip dsfield"), (2, "ipv6", "ip6 priority")] {
                line(format!(
                    "filter add dev {neighbour} parent 1: prio {order} protocol {protocol} \
                     u32 match {field} {byte:#04x} 0xfc {action}"
                ));
            }
        };
        if topology.emulates(node) {
            for dscp in dscps(topology).chain(topology.trim.map(|trim| trim.dscp)) {
                filter(dscp, &format!("action mirred egress redirect dev {DIVERT}"));
            }
        } else {
            let tiny = leaves(topology).into_iter().zip(dscps(topology));
            tiny.for_each(|(Leaf { class, .. }, dscp)| filter(dscp, &format!("flowid 1:{class}")));
        }
    }
    text
}

/// `tc`: the same limits and weights as [`queues`], as a change of existing queues.
pub(crate) fn requeue(topology: &Topology, node: Node) -> String {
    lines(topology.neighbours(node).into_iter().map(|neighbour| {
        let shares = shares(topology, node, neighbour, "change");
        format!("{shares}\n{}", limits(topology, node, neighbour, "change"))
    }))
}

/// A queue of a port: its class, the shaper that segments super-packets at hosts, and the queue
/// itself.
struct Leaf {
    class: u32,
    shaper: u32,
    queue: u32,
}

/// Returns the tiny queues, in the order of [`dscps`], and the queue of all other packets. `tc` reads
/// these numbers as hexadecimal.
fn leaves(topology: &Topology) -> Vec<Leaf> {
    let leaf = |class, shaper, queue| Leaf { class, shaper, queue };
    let mut leaves = match topology.low_dscps.len() as u32 {
        0 => vec![leaf(10, 10, 11)],
        low => (0..=low).map(|place| leaf(11 + place, 110 + 10 * place, 11 + place)).collect(),
    };
    leaves.push(leaf(20, 20, 21));
    leaves
}

/// Returns the DSCPs of the tiny queues, the most urgent first.
fn dscps(topology: &Topology) -> impl Iterator<Item = u8> {
    iter::once(topology.dscp).chain(topology.low_dscps.iter().copied())
}

/// The classes of a port.
fn shares(topology: &Topology, node: Node, neighbour: Node, verb: &str) -> String {
    let rate = topology.link_rate(Link::between(node, neighbour));
    let weights = topology.weights;
    let class = |(id, weight): (&str, u32)| {
        let share = rate * u64::from(weight) / u64::from(weights.tiny + weights.default);
        format!(
            "class {verb} dev {neighbour} parent 1:1 classid 1:{id} {}",
            htb(share, rate, topology.mtu, weight)
        )
    };
    let mut lines = [("10", weights.tiny), ("20", weights.default)].map(class).to_vec();
    if !topology.low_dscps.is_empty() {
        // Priorities of HTB, because not every kernel has the `prio` qdisc. The rate is minimal, less
        // than a frame a second: HTB has no class without a rate.
        let frame = topology.mtu + 14;
        let ceiling = burst(rate, frame);
        let inner =
            format!("htb rate 8kbit ceil {rate}bit burst {frame} cburst {ceiling} quantum {frame}");
        lines.extend((0..).zip(dscps(topology)).map(|(priority, _)| {
            let class = 11 + priority;
            format!(
                "class {verb} dev {neighbour} parent 1:10 classid 1:{class} {inner} prio {priority}"
            )
        }));
    }
    lines.join("\n")
}

fn htb(share: u64, rate: u64, mtu: u32, weight: u32) -> String {
    let frame = mtu + 14;
    let burst = burst(rate, frame);
    format!(
        "htb rate {share}bit ceil {rate}bit burst {burst} cburst {burst} quantum {}",
        weight * frame
    )
}

/// Returns the bytes that a class may send at once, so that a timer that is 100 us late costs no
/// throughput.
fn burst(rate: u64, frame: u32) -> u64 {
    2 * u64::from(frame) + rate / 8 / 10_000
}

/// Returns the limits of the queues of a port, in packets.
fn limits(topology: &Topology, node: Node, neighbour: Node, verb: &str) -> String {
    let is_host = matches!(node, Node::Host(_));
    let tiny_packets = match node {
        Node::Host(_) => topology.host_tiny_packets,
        _ if topology.emulates(node) => BEHIND,
        _ => topology.tiny_packets,
    };
    let limit = |Leaf { class, shaper, queue }: Leaf| {
        let parent = if is_host { format!("{shaper}:1") } else { format!("1:{class}") };
        let packets = if queue == 21 { topology.default_packets } else { tiny_packets };
        format!(
            "qdisc {verb} dev {neighbour} parent {parent} handle {queue}: pfifo limit {packets}"
        )
    };
    leaves(topology).into_iter().map(limit).collect::<Vec<_>>().join("\n")
}

/// `nft`: for each port, a chain for losses, with counters.
pub(crate) fn loss_table(topology: &Topology, node: Node) -> String {
    let mut text = String::from("table netdev cbrst {\n");
    for port in topology.neighbours(node) {
        // At ingress, so that a black hole drops everything and changes nothing else: routes and
        // neighbours stay.
        let _ = writeln!(
            text,
            "counter lost_{port} {{}}\ncounter failed_{port} {{}}\n\
             chain {port} {{ type filter hook ingress device \"{port}\" priority 0; policy accept; }}"
        );
    }
    text.push_str("}\n");
    text
}

/// `nft`: the present losses of a node's ports. Replaced as one transaction whenever they change.
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

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Target, Trim};

    fn small() -> State {
        State::new("t", &Topology { hosts: 2, spines: 2, ..Topology::default() })
    }

    #[test]
    fn queues_are_chosen_by_dscp_whatever_the_ecn_bits() {
        let topology = Topology { dscp: 10, tiny_packets: 3, ..Topology::default() };
        let text = queues(&topology, Node::Spine(1));
        assert!(text.contains("match ip dsfield 0x28 0xfc flowid 1:10"), "{text}");
        assert!(text.contains("dev l2 parent 1:10 handle 11: pfifo limit 3\n"), "{text}");
        assert!(text.contains("dev l2 parent 1:20 handle 21: pfifo limit 256\n"), "{text}");
    }

    #[test]
    fn emulated_queues_take_both_dscps_from_the_ports_of_switches() {
        let trim = Some(Trim { bytes: 128, dscp: 44 });
        let topology = Topology { trim, tiny_packets: 3, ..Topology::default() };
        let text = queues(&topology, Node::Leaf(1));
        for byte in ["0xac", "0xb0"] {
            let action = "action mirred egress redirect dev divert\n";
            assert!(
                text.contains(&format!(
                    "dev s1 parent 1: prio 1 protocol ip u32 match ip dsfield {byte} 0xfc {action}"
                )),
                "{text}"
            );
        }
        assert!(text.contains("dev s1 parent 1:10 handle 11: pfifo limit 1000\n"), "{text}");
        assert!(!text.contains("flowid"), "{text}");
        assert!(queues(&topology, Node::Host(1)).contains("0xac 0xfc flowid 1:10\n"));
        assert_eq!(links("t", &topology).matches("name divert mtu 1500 netns t-").count(), 2 + 4);
    }

    #[test]
    fn further_tiny_queues_are_inside_the_class_of_the_first() {
        let topology = Topology { low_dscps: vec![45, 47], ..Topology::default() };
        let text = queues(&topology, Node::Spine(1));
        for (place, dscp) in [43, 45, 47].into_iter().enumerate() {
            let class = 11 + place;
            let byte = dscp << 2;
            for part in [
                format!("dev l2 parent 1:10 classid 1:{class} htb rate 8kbit ceil 100000000bit "),
                format!("dev l2 parent 1:{class} handle {class}: pfifo limit 8\n"),
                format!("match ip dsfield {byte:#04x} 0xfc flowid 1:{class}\n"),
            ] {
                assert!(text.contains(&part), "{part}\n{text}");
            }
            assert!(text.contains(&format!(" prio {place}\n")), "{text}");
        }
        let host = queues(&topology, Node::Host(1));
        assert!(host.contains("parent 1:12 handle 120: tbf "), "{host}");
        assert!(host.contains("parent 120:1 handle 12: pfifo limit 128\n"), "{host}");
    }

    #[test]
    fn silent_failures_drop_at_both_ends_and_loss_has_three_digits() {
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
