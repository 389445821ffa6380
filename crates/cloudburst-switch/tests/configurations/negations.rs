//! Later lines of a configuration that remove earlier ones.

use crate::common::*;
use std::fs;

/// Lines that, appended to a leaf's file, undo part of it, and a part of the finding that the lint must report.
struct Negation {
    platform: &'static str,
    file: &'static str,
    text: &'static str,
    finding: &'static str,
}

const fn negation(
    platform: &'static str,
    file: &'static str,
    text: &'static str,
    finding: &'static str,
) -> Negation {
    Negation { platform, file, text, finding }
}

#[rustfmt::skip]
const NEGATIONS: &[Negation] = &[
    negation("picos", "qos.cli", "delete class-of-service interface ge-1/1/2 scheduler-profile\n",
        "ge-1/1/2 without a limit"),
    negation("picos", "qos.cli", "delete class-of-service scheduler cloudburst-wrr buffer\n", "queue 5 without limit"),
    negation("picos", "qos.cli", "delete class-of-service classifier cloudburst-in forwarding-class cloudburst code-point 43\n",
        "does not map DSCP 43"),
    negation("picos", "ecmp.cli", "delete interface ecmp hash-mapping field port-source\n", "lacks source port"),
    negation("picos", "paths.cli", "delete protocols static route 10.102.2.5/32\n", "no route to 10.102.2.5/32"),
    negation("sonic", "zz.patch.json", "[{\"op\": \"remove\", \"path\": \"/BUFFER_QUEUE/Ethernet4|5\"}]",
        "Ethernet4 without a limit"),
    negation("sonic", "zz.patch.json", "{\"op\": \"remove\", \"path\": \"/BUFFER_QUEUE\"}", "one operation; expected a list"),
    negation("sonic", "aa.patch.json", "[{\"op\": \"remove\", \"path\": \"/SWITCH_HASH/GLOBAL\"}]", "no ECMP hash"),
    negation("cumulus4", "paths.frr", "no ip route 10.102.2.5/32 10.3.0.2 swp6\n", "no route to 10.102.2.5/32"),
    negation("cumulus5", "qos.nv", "nv unset qos egress-scheduler default-global traffic-class 5\n",
        "no share for the tiny queue"),
    negation("cumulus5", "qos.nv", "nv unset qos advance-buffer-config default-global egress-lossy-buffer traffic-class 3-6\n",
        "queue 5 without limit"),
    negation("cumulus5", "qos.nv", "nv unset qos mapping default-global dscp 43-44\n", "DSCP 44 goes to queue 5 too"),
    negation("cumulus5", "qos.nv", "nv set qos mapping default-global dscp 10-12 switch-priority 5\nnv unset qos mapping default-global dscp 11\n",
        "DSCP 10 goes to queue 5 too"),
    negation("cumulus5", "ecmp.nv", "nv unset system forwarding ecmp-hash source-port\n", "lacks source port"),
    negation("cumulus5", "aeolus.nv", "nv unset qos congestion-control\n", "without selective dropping"),
    negation("os10", "qos.cfg", "interface ethernet1/1/2\n no service-policy output type queuing CLOUDBURST-OUT\n",
        "ethernet1/1/2 without a limit"),
    negation("os10", "qos.cfg", "policy-map type queuing CLOUDBURST-OUT\n class CLOUDBURST\n  no queue-limit\n",
        "queue 5 without limit"),
    negation("os10", "qos.cfg", "policy-map type queuing CLOUDBURST-OUT\n class CLOUDBURST\n  no bandwidth percent 25\n",
        "no share for the tiny queue"),
    negation("os10", "aeolus.cfg", "wred CLOUDBURST\n no random-detect ecn\n", "selective dropping without ECN"),
    negation("os10", "ecmp.cfg", "no load-balancing ip-selection\n", "no ECMP hash"),
    negation("eos", "qos.cfg", "interface Ethernet2\n   uc-tx-queue 5\n      no random-detect drop\n",
        "Ethernet2 has a queue 5 without limit"),
    negation("eos", "qos.cfg", "interface Ethernet2\n   no uc-tx-queue 5\n", "Ethernet2 has a queue 5 without limit"),
    negation("eos", "qos.cfg", "no platform trident mmu queue profile CLOUDBURST apply\n", "no MMU profile applied"),
    negation("eos", "qos.cfg", "no qos map dscp 44\n", "DSCP 44 goes to queue 5 too"),
    negation("eos", "qos.cfg", "qos map dscp 10 11 to traffic-class 5\nno qos map dscp 11\n", "DSCP 10 goes to queue 5 too"),
    negation("eos", "ecmp.cfg", "no ip load-sharing trident fields ip\n", "no ECMP hash"),
    negation("eos", "aeolus.cfg", "default interface Ethernet3\n", "Ethernet3 without selective dropping"),
    negation("nxos", "qos.cfg", "system qos\n  no service-policy type queuing output CLOUDBURST-OUT\n",
        "Ethernet1/1 and 7 more ports without a limit"),
    negation("nxos", "qos.cfg", "interface ethernet1/2\n  no service-policy type qos input CLOUDBURST-IN\n",
        "Ethernet1/2 without a classifier by DSCP"),
    negation("nxos", "qos.cfg", "policy-map type queuing CLOUDBURST-OUT\n  class type queuing c-out-8q-q5\n    no queue-limit 1 mbytes\n",
        "queue 5 without limit"),
    negation("nxos", "qos.cfg", "no class-map type qos match-any CLOUDBURST\n", "does not map DSCP 43"),
    negation("nxos", "aeolus.cfg", "policy-map type queuing CLOUDBURST-OUT\n  class type queuing c-out-8q-q5\n    no random-detect\n",
        "has no selective dropping"),
    negation("iosxe", "qos.cfg", "interface GigabitEthernet2\n no service-policy output\n", "GigabitEthernet2 without a limit"),
    negation("iosxe", "qos.cfg", "policy-map CLOUDBURST-OUT\n class CLOUDBURST\n  no queue-limit\n", "queue 5 without limit"),
    negation("iosxe", "qos.cfg", "no class-map CLOUDBURST\n", "does not map DSCP 43"),
    negation("iosxe", "paths.cfg", "no ip route 10.102.2.5 255.255.255.255\n", "no route to 10.102.2.5/32"),
    negation("openconfig", "zz.json", "[{\"op\": \"remove\", \"path\": \"/openconfig-qos:qos/buffer-allocation-profiles\"}]",
        "refers to cloudburst, which is not there"),
    negation("linux", "qos.sh", "tc filter del dev h2 parent 1: prio 2\n", "h2, ipv6, does not map DSCP 43"),
    negation("linux", "qos.sh", "tc filter del dev h2\n", "h2, ip, does not map DSCP 43"),
    negation("linux", "qos.sh", "tc qdisc del dev h2 parent 1:10 handle 11:\n", "h2 has a queue 5 without limit"),
    negation("linux", "qos.sh", "tc class del dev h2 classid 1:10\n", "h2 has no share for the tiny queue"),
    negation("linux", "paths.sh", "ip route del 10.102.2.5\n", "no route to 10.102.2.5/32"),
    negation("linux", "paths.sh", "ip route delete 10.102.2.5/32 via 10.3.0.2\n", "no route to 10.102.2.5/32"),
    negation("linux", "ecmp.sh", "sysctl -w net.ipv4.fib_multipath_hash_policy=0\n", "lacks protocol, source port"),
    // Interfaces in ranges, and in other spellings.
    negation("eos", "qos.cfg", "interface Ethernet1-2\n   no uc-tx-queue 5\n", "Ethernet1 has a queue 5 without limit"),
    negation("eos", "qos.cfg", "interface Et2,4\n   no uc-tx-queue 5\n", "Ethernet4 has a queue 5 without limit"),
    negation("eos", "qos.cfg", "interface Ethernet 2\n   no uc-tx-queue 5\n", "Ethernet2 has a queue 5 without limit"),
    negation("eos", "qos.cfg", "default interface Ethernet1-3\n", "Ethernet1 and 2 more ports without a classifier"),
    negation("nxos", "qos.cfg", "interface Ethernet1/1-2\n  no service-policy type qos input CLOUDBURST-IN\n",
        "Ethernet1/1 and 1 more ports without a classifier"),
    negation("nxos", "qos.cfg", "interface ethernet 1/2\n  no service-policy type qos input\n", "Ethernet1/2 without a classifier"),
    negation("nxos", "qos.cfg", "int e1/2-1/3\n  no service-policy type qos input CLOUDBURST-IN\n",
        "Ethernet1/2 and 1 more ports without a classifier"),
    negation("iosxe", "qos.cfg", "interface range GigabitEthernet1 - 2\n no service-policy output CLOUDBURST-OUT\n",
        "GigabitEthernet1 and 1 more ports without a limit"),
    negation("iosxe", "qos.cfg", "interface Gi2\n no service-policy  output\n", "GigabitEthernet2 without a limit"),
    negation("os10", "qos.cfg", "interface range ethernet1/1/1-1/1/2\n no service-policy output type queuing CLOUDBURST-OUT\n",
        "ethernet1/1/1 and 1 more ports without a limit"),
    negation("os10", "qos.cfg", "default interface range Ethernet 1/1/1-1/1/3,ethernet1/1/5\n",
        "ethernet1/1/1 and 3 more ports without a limit"),
    // Settings that undo another, and other forms of a negation.
    negation("eos", "qos.cfg", "interface Ethernet2\n   uc-tx-queue 5\n      priority strict\n", "the tiny queue has strict priority"),
    negation("eos", "qos.cfg", "interface Ethernet2\n   uc-tx-queue 5\n      default priority\n", "the tiny queue has strict priority"),
    negation("eos", "qos.cfg", "default interface\nno qos map\n", "DSCP 40 goes to queue 5 too"),
    negation("eos", "paths.cfg", "no ip routing\n", "routing is off"),
    negation("eos", "qos.cfg", "interface Ethernet2\n   qos trust cos\n", "Ethernet2 trusts cos"),
    negation("nxos", "qos.cfg", "class-map type qos match-any CLOUDBURST\n  no match dscp 40-47\n", "does not map DSCP 43"),
    negation("nxos", "qos.cfg", "policy-map type queuing CLOUDBURST-OUT\n  no class type queuing c-out-8q-q3\n",
        "CLOUDBURST-OUT lacks c-out-8q-q3"),
    negation("nxos", "qos.cfg", "policy-map type qos CLOUDBURST-IN\n  class CLOUDBURST\n    set qos-group 0\n", "DSCP 43 goes to queue 0"),
    negation("iosxe", "qos.cfg", "class-map match-any CLOUDBURST\n no match ip dscp 43\n", "does not map DSCP 43"),
    negation("iosxe", "aeolus.cfg", "policy-map CLOUDBURST-OUT\n class CLOUDBURST\n  no random-detect dscp-based\n",
        "has no selective dropping"),
    negation("cumulus5", "qos.nv", "nv set interface swp2 qos egress-scheduler profile OTHER\n", "swp2 has egress-scheduler OTHER"),
    negation("cumulus5", "qos.nv", "nv set interface swp1-3 qos mapping profile OTHER\n", "swp1-3 has mapping OTHER"),
    negation("cumulus5", "qos.nv", "sudo nv unset qos mapping default-global dscp 44\n", "DSCP 44 goes to queue 5 too"),
    // Negations that the check does not understand.
    negation("eos", "qos.cfg", "interface Ethernet2\n   no uc-tx-q 6\n", "`no uc-tx-q 6` is not understood"),
    negation("eos", "qos.cfg", "interface Ethernet1-2/1-4\n   no uc-tx-queue 5\n", "`interface Ethernet1-2/1-4` is not understood"),
    negation("nxos", "qos.cfg", "interface Ethernet1/2\n  no serv type qos inp CLOUDBURST-IN\n", "is not understood"),
    negation("nxos", "qos.cfg", "policy-map type queuing CLOUDBURST-OUT\n  class type queuing c-out-8q-q5\n    no band rem\n",
        "`no band rem` is not understood"),
    negation("nxos", "ecmp.cfg", "no ip load-sharing address source-destination port source-destination universal-id 200\n",
        "is not understood"),
    negation("iosxe", "paths.cfg", "no ip route 10.102.2.5 255.255.255.255 10.3.0.2\n", "is not understood"),
    negation("os10", "ecmp.cfg", "no load-balancing ip-selection l4-source-port\n", "is not understood"),
    negation("picos", "qos.cli", "deactivate class-of-service\n", "is not understood"),
    negation("picos", "qos.cli", "delete class-of-service interface te-1/1/[1-50]\n", "is not understood"),
    negation("picos", "qos.cli", "delete class-of-service scheduler cloudburst-wrr buffer queue-limit 640\n", "is not understood"),
    negation("picos", "qos.cli", "delete class-of-service sched cloudburst-wrr\n", "is not understood"),
    negation("cumulus4", "paths.frr", "unset ip route 10.102.2.5/32\n", "is not understood"),
    negation("cumulus5", "qos.nv", "nv unset qos mapping default-global dscp af11\n", "is not understood"),
    negation("cumulus5", "qos.nv", "nv config replace other.yaml\n", "is not understood"),
    negation("cumulus5", "qos.nv", "for port in 1 2; do nv unset interface swp$port qos mapping; done\n", "is not understood"),
    // Linux
    negation("linux", "qos.sh", "sudo /sbin/tc -force qdisc del root dev h2\n", "h2 has a queue 5 without limit"),
    negation("linux", "qos.sh", "tc filter del dev h2 parent 1:0 prio 1\n", "h2, ip, does not map DSCP 43"),
    negation("linux", "qos.sh", "tc filter del dev h2 parent 1: prio 9\n", "is not understood"),
    negation("linux", "qos.sh", "tc filter flush dev h2\n", "is not understood"),
    negation("linux", "qos.sh", "tc filter add dev h2 parent 1: pref 0 protocol ip u32 match ip dsfield 0xac 0xfc flowid 1:20\n",
        "DSCP 43 goes to queue 0"),
    negation("linux", "qos.sh", "for port in h1 h2; do tc qdisc del dev $port root; done\n", "is not understood"),
    negation("linux", "qos.sh", "if true; then\n  tc qdisc del dev h2 root\nfi\n", "`tc qdisc del dev h2 root` is not understood"),
    negation("linux", "qos.sh", "ip link del h2\n", "h2 has a queue 5 without limit"),
    negation("linux", "qos.sh", "ethtool --offload h2 gro on\n", "h2 may join packets (gro)"),
    negation("linux", "qos.sh", "ethtool -K h2 generic-receive-offload on tcp-segmentation-offload on\n", "h2 may join packets (tso, gro)"),
    negation("linux", "qos.sh", "dcb pfc set dev h2 prio-pfc all:on\n", "priority flow control for queue 5"),
    negation("linux", "ecmp.sh", "sysctl net.ipv4.fib_multipath_hash_policy=0\n", "lacks protocol, source port"),
    negation("linux", "ecmp.sh", "sysctl -q -w net.ipv4.ip_forward=1 net/ipv4/fib_multipath_hash_policy=0\n", "lacks protocol, source port"),
    negation("linux", "ecmp.sh", "sysctl --system\n", "is not understood"),
    negation("linux", "ecmp.sh", "echo 0 > /proc/sys/net/ipv4/fib_multipath_hash_policy\n", "is not understood"),
    negation("linux", "paths.sh", "ip -4 route del 10.102.2.5\n", "no route to 10.102.2.5/32"),
    negation("linux", "paths.sh", "ip ro del 10.102.2.5/32\n", "no route to 10.102.2.5/32"),
    negation("linux", "paths.sh", "ip route flush table main\n", "no route to 10.102.2.5/32"),
    negation("linux", "paths.sh", "ip route replace 10.102.2.5/32 nexthop via 10.3.0.2 nexthop via 10.3.0.9\n", "by way of 10.3.0.9"),
    negation("linux", "paths.sh", "ip route replace blackhole 10.102.2.5\n", "by way of blackhole"),
    negation("linux", "paths.sh", "ip route del 10.102.2.5 via 10.3.0.9\n", "is not understood"),
    negation("linux", "paths.sh", "ip route flush dev s2\n", "no route to 10.102.2.5/32"),
    negation("linux", "paths.sh", "ip route flush proto boot\n", "no route to 10.102.2.5/32"),
    negation("linux", "paths.sh", "ip route flush via 10.3.0.2\n", "no route to 10.102.2.5/32"),
    negation("linux", "paths.sh", "ip route flush\n", "no route to 10.102.2.5/32"),
    negation("linux", "qos.sh", "echo 'done\ntc qdisc del dev h2 root\n", "`echo 'done` is not understood"),
    negation("linux", "qos.sh", "echo \"done\ntc qdisc del dev h2 root\n", "`echo \"done` is not understood"),
    negation("cumulus5", "qos.nv", "echo 'done\nnv unset qos mapping\n", "`echo 'done` is not understood"),
    negation("linux", "qos.sh", "cat <<EOF | sh\ntc qdisc del dev h2 root", "is not understood"),
    negation("linux", "qos.sh", "x=$((1<<3))\ntc qdisc del dev h2 root\n", "h2 has a queue 5 without limit"),
    negation("linux", "qos.sh", "x=$((tc qdisc del dev h2 root) || true)\n", "is not understood"),
    negation("linux", "qos.sh", "tc qdisc replace dev h2 root handle 7: fq\n", "the root of h2 is fq"),
    // Files are applied in the order of the guide, and not in that of their names.
    negation("picos", "ecmp.cli", "delete class-of-service interface ge-1/1/2 scheduler-profile\n", "ge-1/1/2 without a limit"),
    negation("cumulus5", "aeolus.nv", "nv unset qos mapping default-global dscp 44\n", "DSCP 44 goes to queue 5 too"),
    negation("os10", "aeolus.cfg", "policy-map type queuing CLOUDBURST-OUT\n class CLOUDBURST\n  no queue-limit\n",
        "queue 5 without limit"),
    negation("os10", "ecmp.cfg", "interface ethernet1/1/2\n no service-policy output type queuing CLOUDBURST-OUT\n",
        "ethernet1/1/2 without a limit"),
    negation("eos", "aeolus.cfg", "interface Ethernet2\n   no uc-tx-queue 5\n", "Ethernet2 without a limit"),
    negation("eos", "aeolus.cfg", "no ip route 10.102.2.5/32 Ethernet6 10.3.0.2\n", "no route to 10.102.2.5/32"),
    negation("eos", "ecmp.cfg", "no qos map dscp 44\n", "DSCP 44 goes to queue 5 too"),
    negation("nxos", "aeolus.cfg", "no ip load-sharing address source-destination port source-destination universal-id 1\n",
        "no ECMP hash"),
    negation("nxos", "ecmp.cfg", "system qos\n  no service-policy type queuing output CLOUDBURST-OUT\n",
        "Ethernet1/1 and 7 more ports without a limit"),
    negation("iosxe", "aeolus.cfg", "policy-map CLOUDBURST-OUT\n class CLOUDBURST\n  no queue-limit\n", "queue 5 without limit"),
    negation("iosxe", "ecmp.cfg", "interface GigabitEthernet2\n no service-policy output CLOUDBURST-OUT\n",
        "GigabitEthernet2 without a limit"),
    negation("linux", "aeolus.sh", "tc filter del dev h2\n", "h2, ip, does not map DSCP 43"),
    negation("linux", "aeolus.sh", "ip route del 10.102.2.5\n", "no route to 10.102.2.5/32"),
    negation("linux", "aeolus.sh", "tc qdisc del dev h2 root\n", "h2 without selective dropping"),
    negation("linux", "aeolus.sh", "tc qdisc replace dev h2 parent 1:10 handle 11: pfifo limit 8\n", "h2 without selective dropping"),
    negation("linux", "ecmp.sh", "tc qdisc del dev h2 root\n", "h2 has no share for the tiny queue"),
];

/// A leaf with `text` at the end of `file`.
fn with(platform: &str, file: &str, text: &str) -> (Option<i32>, String) {
    let rendered = Rendered::of(&find(platform).leaf(1));
    let before = fs::read_to_string(rendered.path(file)).unwrap_or_default();
    fs::write(rendered.path(file), before + text).unwrap();
    let ended = rendered.check();
    (ended.code, String::from_utf8_lossy(&ended.stdout).into_owned() + &ended.stderr)
}

#[test]
fn removed_settings_are_reported_as_missing() {
    let mut missed = Vec::new();
    for Negation { platform, file, text, finding } in NEGATIONS {
        let (code, output) = with(platform, file, text);
        if code != Some(1) || !output.lines().any(|line| line.contains(finding)) {
            missed.push(format!(
                "{platform} {file}: {text:?} should say {finding:?}, not:\n{output}"
            ));
        }
    }
    let of = NEGATIONS.len();
    assert!(missed.is_empty(), "{} of {of} missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn settings_that_are_removed_and_set_again_apply() {
    for (platform, file, text) in [
        (
            "picos",
            "qos.cli",
            "delete class-of-service scheduler cloudburst-wrr buffer queue-limit\n\
             set class-of-service scheduler cloudburst-wrr buffer queue-limit 64\n",
        ),
        (
            "cumulus5",
            "qos.nv",
            "nv unset qos mapping default-global dscp 40-47\n\
             nv set qos mapping default-global dscp 40-42,44-45,47 switch-priority 0\n\
             nv set qos mapping default-global dscp 46 switch-priority 6\n",
        ),
        (
            "os10",
            "qos.cfg",
            "policy-map type queuing CLOUDBURST-OUT\n class CLOUDBURST\n  no queue-limit\n  \
             queue-limit queue-len 12 thresh-mode static 1\n",
        ),
        (
            "eos",
            "qos.cfg",
            "interface Ethernet2\n   no priority-flow-control priority 5\n   uc-tx-queue 5\n      \
             no priority\n      no shape rate\n",
        ),
        (
            "nxos",
            "qos.cfg",
            "policy-map type queuing CLOUDBURST-OUT\n  class type queuing c-out-8q-q5\n    \
             priority level 1\n    no priority level 1\n    bandwidth remaining percent 25\n",
        ),
        (
            "iosxe",
            "qos.cfg",
            "interface GigabitEthernet2\n service-policy output MINE\n no service-policy output MINE\n",
        ),
        (
            "eos",
            "qos.cfg",
            "interface Ethernet2\n   no qos trust\n   qos trust dscp\n   uc-tx-queue 5\n      priority strict\n      no priority\n",
        ),
        (
            "linux",
            "paths.sh",
            "ip route replace 10.102.2.5/32 via 10.3.0.9\nip route replace 10.102.2.5/32 via 10.3.0.2\n\
             dcb pfc set dev h2 prio-pfc all:on\ndcb pfc set dev h2 prio-pfc 5:off\n",
        ),
        (
            "linux",
            "qos.sh",
            "tc filter del dev h2 parent 1: prio 1\ntc filter add dev h2 parent 1: prio 1 protocol ip \
             u32 match ip dsfield 0xac 0xfc flowid 1:10\nip route del 10.9.9.9\n",
        ),
    ] {
        let (code, output) = with(platform, file, text);
        assert_eq!(code, Some(0), "{platform}: {output}");
    }
}

#[test]
fn removed_tunnels_are_reported_as_missing() {
    for (platform, file, text) in [
        ("eos", "paths.cfg", "no ip decap-group CLOUDBURST\n"),
        ("nxos", "paths.cfg", "no feature tunnel\n"),
        ("nxos", "paths.cfg", "interface Tunnel 100\n  no tunnel source\n"),
        ("linux", "paths.sh", "ip tunnel del cloudburst\n"),
        ("linux", "paths.sh", "ip link set dev cloudburst down\n"),
        ("linux", "paths.sh", "ip link set cloudburst up\nip link set down dev cloudburst\n"),
    ] {
        let rendered = Rendered::of(&find(platform).spine(1));
        let before = fs::read_to_string(rendered.path(file)).unwrap();
        fs::write(rendered.path(file), before + text).unwrap();
        let output = String::from_utf8_lossy(&rendered.check().stdout).into_owned();
        assert!(output.contains("nothing decapsulates IP-in-IP packets"), "{text}: {output}");
    }
}

#[test]
fn other_tunnels_and_tables_are_ignored() {
    let from = "decapsulate_from = [\"10.1.0.0/16\"]\n";
    let parameters = format!("{from}{}", find("linux").spine(1));
    for (text, finding) in [
        ("ip link set cloudburst down\nip link set cloudburst up\n", ""),
        ("ip link set other down\nip link del other\n", ""),
        ("nft delete table inet other\nnft flush chain inet cloudburst decapsulate\n", ""),
        ("nft flush set ip cloudburst hosts\nnft delete table inet cloudburst\n", ""),
        ("nft flush chain ip cloudburst other\nnft delete chain ip cloudburst other\n", ""),
        ("nft flush chain cloudburst decapsulate\n", "from unintended senders"),
        ("nft delete rule ip cloudburst decapsulate handle 3\n", "from unintended senders"),
        ("nft destroy table cloudburst\n", "from unintended senders"),
        ("nft delete table handle 7\n", "from unintended senders"),
        ("nft flush ruleset\n", "from unintended senders"),
        ("nft flush ruleset inet\n", ""),
    ] {
        let rendered = Rendered::of(&parameters);
        let before = fs::read_to_string(rendered.path("paths.sh")).unwrap();
        fs::write(rendered.path("paths.sh"), before + text).unwrap();
        let ended = rendered.check();
        let output = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.code, Some(i32::from(!finding.is_empty())), "{text}: {output}");
        assert!(output.contains(finding), "{text}: {output}");
    }
}

#[test]
fn negations_of_unrelated_settings_are_ignored() {
    // Above the configuration, they remove what the switch had before.
    for (platform, file, before, after) in [
        (
            "eos",
            "qos.cfg",
            "interface Ethernet1-8\n   no uc-tx-queue 3\n   no qos trust\nno qos map dscp 43\n",
            "no ip domain-lookup\nno aaa root\ninterface Ethernet2\n   no shutdown\n   no switchport\n   no ip redirects\n   \
             uc-tx-queue 5\n      no bandwidth guaranteed\n      no shape rate\n   uc-tx-queue 3\n      no bandwidth percent\n\
             interface Management1\n   no service-policy output X\nno interface Vlan7\nno ip route 10.9.9.9/32\n\
             default logging event congestion-drops\nno ip routing vrf MGMT\nno qos map cos 3\nno ip decap-group OLD\n\
             no platform trident mmu queue profile OLD\nno platform trident mmu queue profile OLD apply\n\
             interface Ethernet9\n   qos trust cos\n   no qos trust\n",
        ),
        (
            "nxos",
            "qos.cfg",
            "interface Ethernet1/1-8\n  no service-policy type qos input OLD\npolicy-map type queuing CLOUDBURST-OUT\n  \
             no class type queuing c-out-8q-q7\n",
            "no ip domain-lookup\nno feature telnet\nno class-map type qos OLD\nno policy-map type qos OLD\n\
             interface Ethernet1/1\n  no ip redirects\n  no ipv6 redirects\n  no shutdown\n  no lldp transmit\n\
             policy-map type queuing CLOUDBURST-OUT\n  class type queuing c-out-8q-q5\n    no police\n\
             class-map type qos match-any CLOUDBURST\n  no match cos 3\nno policy-map type qos CLOUDBURST-OUT\n",
        ),
        (
            "iosxe",
            "qos.cfg",
            "interface GigabitEthernet1\n no service-policy output OLD\n",
            "no ip domain lookup\nno ip http server\nno service pad\nservice timestamps log\nno cdp run\n\
             interface GigabitEthernet1\n no ip address\n no negotiation auto\npolicy-map CLOUDBURST-OUT\n class CLOUDBURST\n  \
             no priority\nclass-map type inspect match-any CLOUDBURST\n match protocol http\nno class-map type inspect match-any OTHER\n\
             no class-map type inspect match-any CLOUDBURST\nclass-map type inspect match-any CLOUDBURST\n match protocol http\n",
        ),
        (
            "os10",
            "qos.cfg",
            "no policy-map type queuing OLD\n",
            "no dcbx enable\nno wred OLD\nno qos-map traffic-class OLD\ninterface ethernet1/1/1\n no switchport\n \
             no flowcontrol receive\n no trust-map dscp OLD\n no qos-map traffic-class OLD\n",
        ),
        (
            "picos",
            "qos.cli",
            "delete class-of-service\n",
            "delete vlans vlan-id 7\ndelete interface gigabit-ethernet ge-1/1/1 family\ndelete class-of-service scheduler OLD\n\
             delete class-of-service scheduler-profile OLD\ndelete class-of-service interface te-1/1/9 scheduler-profile\n\
             delete class-of-service pfc-profile OLD\n",
        ),
        (
            "cumulus4",
            "paths.frr",
            "no ip route 10.102.2.5/32 blackhole\n",
            "no ip route 10.9.9.9/32 blackhole\nno ip forwarding\nno ip route 10.102.2.5/32 10.3.0.9\n\
             no ip route 10.102.2.5/32 blackhole\n",
        ),
        (
            "cumulus5",
            "qos.nv",
            "nv unset qos mapping\nnv unset interface swp1 qos mapping\n",
            "nv unset system ntp\nnv unset interface swp1 link\nnv unset qos remark\nnv config diff\nnv config apply -y\n\
             nv unset qos mapping OTHER\nnv unset qos egress-scheduler OTHER traffic-class 5\nnv set interface swp9 qos mapping profile OTHER\n",
        ),
        (
            "linux",
            "qos.sh",
            "tc qdisc del dev h2 root || true\ntc filter del dev h2 parent 1: || true\n",
            "for port in h1 h2; do ip link set $port up; done\nip route del 10.9.9.9\nip -6 route flush table main\n\
             tc qdisc del dev eth9 root\ntc -s qdisc show dev h2 | grep pfifo\nip route flush cache\n\
             sysctl -w net.ipv4.ip_forward=1\n[ -e x ] && echo tc\ntc qdisc ls dev h2\ntc qdisc help\nip route help\n\
             ip route flush dev eth9\nip route flush proto static\nip route flush via 10.9.9.9\n\
             logger -t qos \"tc qdisc del dev h2 root\"\n[ -e x ] && ip route add 10.9.9.9 via 10.9.9.1\n\
             [ -e x ] && ip link set eth9 down\n[ -e x ] && ip link del eth9\nnft -f rules\nexit 0\n",
        ),
    ] {
        let rendered = Rendered::of(&find(platform).leaf(1));
        let text = fs::read_to_string(rendered.path(file)).unwrap();
        fs::write(rendered.path(file), format!("{before}{text}{after}")).unwrap();
        let ended = rendered.check();
        assert_eq!(ended.code, Some(0), "{platform}: {}", String::from_utf8_lossy(&ended.stdout));
    }
}
