//! Later lines of a configuration that take back earlier ones.

use crate::common::*;
use std::fs;

/// Lines that, appended to a leaf's file, undo part of it, and a part of the finding that the lint must report.
struct TakenBack {
    platform: &'static str,
    file: &'static str,
    text: &'static str,
    finding: &'static str,
}

const fn taken_back(
    (platform, file): (&'static str, &'static str),
    text: &'static str,
    finding: &'static str,
) -> TakenBack {
    TakenBack { platform, file, text, finding }
}

#[rustfmt::skip]
const TAKEN_BACK: &[TakenBack] = &[
    taken_back(("picos", "qos.cli"), "delete class-of-service interface ge-1/1/2 scheduler-profile\n",
        "ge-1/1/2 without a limit"),
    taken_back(("picos", "qos.cli"), "delete class-of-service scheduler cloudburst-wrr buffer\n", "queue 5 without limit"),
    taken_back(("picos", "qos.cli"), "delete class-of-service classifier cloudburst-in forwarding-class cloudburst code-point 43\n",
        "does not map DSCP 43"),
    taken_back(("picos", "ecmp.cli"), "delete interface ecmp hash-mapping field port-source\n", "lacks source port"),
    taken_back(("picos", "paths.cli"), "delete protocols static route 10.102.2.5/32\n", "no route to 10.102.2.5/32"),
    taken_back(("sonic", "zz.patch.json"), "[{\"op\": \"remove\", \"path\": \"/BUFFER_QUEUE/Ethernet4|5\"}]",
        "Ethernet4 without a limit"),
    taken_back(("sonic", "aa.patch.json"), "[{\"op\": \"remove\", \"path\": \"/SWITCH_HASH/GLOBAL\"}]", "no ECMP hash"),
    taken_back(("cumulus4", "paths.frr"), "no ip route 10.102.2.5/32 10.3.0.2 swp6\n", "no route to 10.102.2.5/32"),
    taken_back(("cumulus5", "qos.nv"), "nv unset qos egress-scheduler default-global traffic-class 5\n",
        "no share for the tiny queue"),
    taken_back(("cumulus5", "qos.nv"), "nv unset qos advance-buffer-config default-global egress-lossy-buffer traffic-class 3-6\n",
        "queue 5 without limit"),
    taken_back(("cumulus5", "qos.nv"), "nv unset qos mapping default-global dscp 43-44\n", "DSCP 44 goes to queue 5 too"),
    taken_back(("cumulus5", "qos.nv"), "nv set qos mapping default-global dscp 10-12 switch-priority 5\nnv unset qos mapping default-global dscp 11\n",
        "DSCP 10 goes to queue 5 too"),
    taken_back(("cumulus5", "ecmp.nv"), "nv unset system forwarding ecmp-hash source-port\n", "lacks source port"),
    taken_back(("cumulus5", "aeolus.nv"), "nv unset qos congestion-control\n", "without selective dropping"),
    taken_back(("os10", "qos.cfg"), "interface ethernet1/1/2\n no service-policy output type queuing CLOUDBURST-OUT\n",
        "ethernet1/1/2 without a limit"),
    taken_back(("os10", "qos.cfg"), "policy-map type queuing CLOUDBURST-OUT\n class CLOUDBURST\n  no queue-limit\n",
        "queue 5 without limit"),
    taken_back(("os10", "qos.cfg"), "policy-map type queuing CLOUDBURST-OUT\n class CLOUDBURST\n  no bandwidth percent 25\n",
        "no share for the tiny queue"),
    taken_back(("os10", "aeolus.cfg"), "wred CLOUDBURST\n no random-detect ecn\n", "selective dropping without ECN"),
    taken_back(("os10", "ecmp.cfg"), "no load-balancing ip-selection\n", "no ECMP hash"),
    taken_back(("eos", "qos.cfg"), "interface Ethernet2\n   uc-tx-queue 5\n      no random-detect drop\n",
        "Ethernet2 has a queue 5 without limit"),
    taken_back(("eos", "qos.cfg"), "interface Ethernet2\n   no uc-tx-queue 5\n", "Ethernet2 without a limit"),
    taken_back(("eos", "qos.cfg"), "no platform trident mmu queue profile CLOUDBURST apply\n", "no MMU profile applied"),
    taken_back(("eos", "qos.cfg"), "no qos map dscp 44\n", "DSCP 44 goes to queue 5 too"),
    taken_back(("eos", "qos.cfg"), "qos map dscp 10 11 to traffic-class 5\nno qos map dscp 11\n", "DSCP 10 goes to queue 5 too"),
    taken_back(("eos", "ecmp.cfg"), "no ip load-sharing trident fields ip\n", "no ECMP hash"),
    taken_back(("eos", "aeolus.cfg"), "default interface Ethernet3\n", "Ethernet3 without selective dropping"),
    taken_back(("nxos", "qos.cfg"), "system qos\n  no service-policy type queuing output CLOUDBURST-OUT\n",
        "Ethernet1/1 and 7 more ports without a limit"),
    taken_back(("nxos", "qos.cfg"), "interface ethernet1/2\n  no service-policy type qos input CLOUDBURST-IN\n",
        "Ethernet1/2 without a classifier by DSCP"),
    taken_back(("nxos", "qos.cfg"), "policy-map type queuing CLOUDBURST-OUT\n  class type queuing c-out-8q-q5\n    no queue-limit 1 mbytes\n",
        "queue 5 without limit"),
    taken_back(("nxos", "qos.cfg"), "no class-map type qos match-any CLOUDBURST\n", "does not map DSCP 43"),
    taken_back(("nxos", "aeolus.cfg"), "policy-map type queuing CLOUDBURST-OUT\n  class type queuing c-out-8q-q5\n    no random-detect\n",
        "has no selective dropping"),
    taken_back(("iosxe", "qos.cfg"), "interface GigabitEthernet2\n no service-policy output\n", "GigabitEthernet2 without a limit"),
    taken_back(("iosxe", "qos.cfg"), "policy-map CLOUDBURST-OUT\n class CLOUDBURST\n  no queue-limit\n", "queue 5 without limit"),
    taken_back(("iosxe", "qos.cfg"), "no class-map CLOUDBURST\n", "does not map DSCP 43"),
    taken_back(("iosxe", "paths.cfg"), "no ip route 10.102.2.5 255.255.255.255\n", "no route to 10.102.2.5/32"),
    taken_back(("openconfig", "zz.json"), "[{\"op\": \"remove\", \"path\": \"/openconfig-qos:qos/buffer-allocation-profiles\"}]",
        "refers to cloudburst, which is not there"),
    taken_back(("linux", "qos.sh"), "tc filter del dev h2 parent 1: prio 2\n", "h2, ipv6, does not map DSCP 43"),
    taken_back(("linux", "qos.sh"), "tc filter del dev h2\n", "h2, ip, does not map DSCP 43"),
    taken_back(("linux", "qos.sh"), "tc qdisc del dev h2 parent 1:10 handle 11:\n", "h2 has a queue 5 without limit"),
    taken_back(("linux", "qos.sh"), "tc class del dev h2 classid 1:10\n", "h2 has no share for the tiny queue"),
    taken_back(("linux", "paths.sh"), "ip route del 10.102.2.5\n", "no route to 10.102.2.5/32"),
    taken_back(("linux", "paths.sh"), "ip route delete 10.102.2.5/32 via 10.3.0.2\n", "no route to 10.102.2.5/32"),
    taken_back(("linux", "ecmp.sh"), "sysctl -w net.ipv4.fib_multipath_hash_policy=0\n", "lacks protocol, source port"),
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
fn what_is_taken_back_is_missed() {
    let mut missed = Vec::new();
    for TakenBack { platform, file, text, finding } in TAKEN_BACK {
        let (code, said) = with(platform, file, text);
        if code != Some(1) || !said.lines().any(|line| line.contains(finding)) {
            missed
                .push(format!("{platform} {file}: {text:?} should say {finding:?}, not:\n{said}"));
        }
    }
    let of = TAKEN_BACK.len();
    assert!(missed.is_empty(), "{} of {of} missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn what_is_taken_back_and_given_again_counts() {
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
            "linux",
            "qos.sh",
            "tc filter del dev h2 parent 1: prio 1\ntc filter add dev h2 parent 1: prio 1 protocol ip \
             u32 match ip dsfield 0xac 0xfc flowid 1:10\nip route del 10.9.9.9\n",
        ),
    ] {
        let (code, said) = with(platform, file, text);
        assert_eq!(code, Some(0), "{platform}: {said}");
    }
}
