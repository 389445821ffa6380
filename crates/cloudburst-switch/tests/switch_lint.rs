//! Mistakes that people make in a switch's configuration: each is caught, where it is, by what it is.
#![allow(clippy::unwrap_used, reason = "all of it is for tests, which may panic")]

mod common;

use common::*;
use std::fs;

/// What is wrong: in the file of a leaf, `from` became `to`, and a line that has `finding` is said.
struct Mistake {
    platform: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    finding: &'static str,
}

const fn mistake(
    (platform, file): (&'static str, &'static str),
    from: &'static str,
    to: &'static str,
    finding: &'static str,
) -> Mistake {
    Mistake { platform, file, from, to, finding }
}

#[rustfmt::skip]
const MISTAKES: &[Mistake] = &[
    // PicOS
    mistake(("picos", "qos.cli"), "set class-of-service scheduler cloudburst-wrr buffer queue-limit 64\n", "",
        "queue 5 without limit"),
    mistake(("picos", "qos.cli"), "queue-limit 64", "queue-limit 640", "limit is 133120 bytes; expected 13312 bytes"),
    mistake(("picos", "qos.cli"), "cloudburst code-point 43", "cloudburst code-point 42", "says nothing of DSCP 43"),
    mistake(("picos", "qos.cli"), "scheduler cloudburst-wrr mode \"WRR\"", "scheduler cloudburst-wrr mode \"SP\"",
        "the tiny queue has strict priority"),
    mistake(("picos", "qos.cli"), "interface te-1/1/52 classifier \"cloudburst-in\"", "interface te-1/1/52 classifier \"cb\"",
        "te-1/1/52 refers to cb, which is not there"),
    mistake(("picos", "qos.cli"), "trust-mode \"dscp\"", "trust-mode \"ieee-802.1\"", "does not trust DSCPs"),
    mistake(("picos", "qos.cli"), "buffer queue-limit 64\n",
        "buffer queue-limit 64\nset class-of-service scheduler cloudburst-wrr buffer shared enable\n",
        "borrows: buffer shared enable"),
    mistake(("picos", "ecmp.cli"), "port-source disable false", "port-source disable true",
        "the ECMP hash lacks source port"),
    // SONiC
    mistake(("sonic", "qos.json"), "\"static_th\": \"13312\"", "\"static_th\": \"0\"", "no limit"),
    mistake(("sonic", "qos.json"), "\"static_th\": \"13312\"", "\"dynamic_th\": \"-6\"", "a share of the free buffer"),
    mistake(("sonic", "qos.json"), "\"static_th\": \"13312\"", "\"static_th\": \"13312\", \"dynamic_th\": 3", "a share of the free buffer, dynamic_th 3"),
    mistake(("sonic", "qos.json"), "\"pool\": \"egress_lossless_pool\"", "\"pool\": \"ingress_lossless_pool\"", "its pool ingress_lossless_pool is for ingress"),
    mistake(("sonic", "qos.patch.json"), "\"static_th\": \"13312\"", "\"static_th\": \"0\"", "no limit"),
    mistake(("sonic", "qos.patch.json"), "\"43\": \"5\"", "\"43\": \"4\"", "DSCP 43 goes to queue 4"),
    mistake(("sonic", "qos.patch.json"), "/BUFFER_QUEUE/Ethernet0|5\"", "/BUFFER_QUEUE/Ethernet0|4\"", "Ethernet0 without a limit"),
    mistake(("sonic", "qos.json"), "\"size\": \"0\"", "\"size\": \"1664\"", "limit is 14976 bytes"),
    mistake(("sonic", "qos.json"), "\"43\": \"5\"", "\"43\": \"4\"", "DSCP 43 goes to queue 4"),
    mistake(("sonic", "qos.json"), "\"44\": \"0\"", "\"44\": \"5\"", "DSCP 44 goes to queue 5 too"),
    mistake(("sonic", "qos.json"), "      \"62\": \"0\",\n", "", "1 DSCPs have no class"),
    mistake(("sonic", "qos.json"), "\"5\": \"5\"", "\"5\": \"3\"", "DSCP 43 goes to queue 3"),
    mistake(("sonic", "qos.json"), "{\"type\": \"DWRR\", \"weight\": \"1\"}", "{\"type\": \"STRICT\"}", "strict priority"),
    mistake(("sonic", "qos.json"), "\"Ethernet28|5\": {\"profile\"", "\"Ethernet28|4\": {\"profile\"",
        "Ethernet28 without a limit"),
    mistake(("sonic", "qos.json"), "\"Ethernet0\": {\"dscp_to_tc_map\"", "\"Ethernet0\": {\"pfc_enable\": \"3,5\", \"dscp_to_tc_map\"",
        "priority flow control for queue 5"),
    mistake(("sonic", "qos.json"), "\"Ethernet0\": {\"dscp_to_tc_map\": \"CLOUDBURST\"", "\"Ethernet0\": {\"dscp_to_tc_map\": \"AZURE\"",
        "AZURE, CLOUDBURST, which is not there"),
    mistake(("sonic", "qos.json"), "\"BUFFER_PROFILE\": {",
        "\"BUFFER_POOL\": {\"egress_lossless_pool\": {\"mode\": \"dynamic\", \"type\": \"egress\"}}, \"BUFFER_PROFILE\": {",
        "its pool egress_lossless_pool is dynamic"),
    mistake(("sonic", "qos.json"), "}\n}\n", "}\n", "it cannot be read"),
    mistake(("sonic", "ecmp.json"), ", \"L4_SRC_PORT\", \"L4_DST_PORT\"", "", "lacks source port, destination port"),
    mistake(("sonic", "aeolus.json"), "\"green_max_threshold\": \"6032\"", "\"green_max_threshold\": \"12480\"",
        "selective dropping from 6032 to 12480 bytes"),
    // Cumulus Linux 4
    mistake(("cumulus4", "qos.datapath.conf"), "unlimited_egress_buffer = false", "unlimited_egress_buffer = true",
        "limit is unlimited_egress_buffer = true"),
    mistake(("cumulus4", "qos.datapath.conf"), "priority_group.service.unlimited_egress_buffer = false\n", "", "without limit"),
    mistake(("cumulus4", "qos.datapath.conf"), "sp_percent = 0.0", "sp_percent = 45.0", "borrows: 45 % of the pool"),
    mistake(("cumulus4", "qos.datapath.conf"), "min_percent = 0.3", "min_percent = 5.0", "limit is 200000 bytes"),
    mistake(("cumulus4", "qos.traffic.conf"), "[dscp]", "[802.1p]", "the priority comes from [802.1p]"),
    mistake(("cumulus4", "qos.traffic.conf"), "dscp = [43]", "dscp = [40,41,42,43]", "DSCP 40 goes to queue 5 too"),
    mistake(("cumulus4", "qos.traffic.conf"), "service.cos_list = [5]", "service.cos_list = [4,5]", "group service has queues [4,5]"),
    mistake(("cumulus4", "qos.traffic.conf"), "service.weight = 1", "service.weight = 0", "strict priority"),
    mistake(("cumulus4", "qos.traffic.conf"), "service.weight = 1", "service.weight = 1\npfc.pfc_port_group.cos_list = [5]",
        "priority flow control for queue 5"),
    mistake(("cumulus4", "ecmp.traffic.conf"), "ecmp_hash_seed = 1", "hash_config.sport = 0", "lacks source port"),
    // Cumulus Linux 5
    mistake(("cumulus5", "qos.nv"), "nv set qos mapping default-global dscp 44 switch-priority 0\n", "",
        "DSCP 44 goes to queue 5 too"),
    mistake(("cumulus5", "qos.nv"), "shared-bytes 13312", "shared-alpha alpha_1_4", "a share of the free buffer, alpha_1_4"),
    mistake(("cumulus5", "qos.nv"), "egress-service-pool 3 mode static", "egress-service-pool 3 mode dynamic",
        "a pool whose mode is not static"),
    mistake(("cumulus5", "qos.nv"), "trust l3", "trust l2", "DSCPs are not trusted"),
    mistake(("cumulus5", "qos.nv"), "bw-percent 25", "bw-percent 50", "share of the tiny queue is 50; expected 25"),
    mistake(("cumulus5", "ecmp.nv"), "nv set system forwarding hash-seed 1\n", "", "no seed"),
    // Dell OS10
    mistake(("os10", "qos.cfg"), "thresh-mode static 1", "thresh-mode dynamic 5", "a share of the free buffer"),
    mistake(("os10", "qos.cfg"), "qos-group 5 dscp 43", "qos-group 5 dscp 40-47", "DSCP 40 goes to queue 5 too"),
    mistake(("os10", "qos.cfg"), " queue 5 qos-group 5", " queue 4 qos-group 5", "DSCP 43 goes to queue 4"),
    mistake(("os10", "ecmp.cfg"), " l4-source-port l4-destination-port", "", "lacks source port, destination port"),
    mistake(("os10", "paths.cfg"), "ip route 10.103.2.5/32 10.3.0.3\n", "", "no route to 10.103.2.5/32"),
    // Arista EOS
    mistake(("eos", "qos.cfg"), "threshold 1/64", "threshold 8", "the tiny queue has a threshold of 8"),
    mistake(("eos", "qos.cfg"), "profile CLOUDBURST apply\n", "profile OTHER apply\n", "no MMU profile applied"),
    mistake(("eos", "qos.cfg"), "maximum-threshold 13312 bytes", "maximum-threshold 100000 bytes", "WRED from 13312 to 100000"),
    mistake(("eos", "qos.cfg"), "      no priority\n", "", "strict priority"),
    mistake(("eos", "qos.cfg"), "qos map dscp 43 to traffic-class 5\n", "qos map dscp 43 to traffic-class 4\n", "DSCP 43 goes to queue 4"),
    mistake(("eos", "qos.cfg"), "   qos trust dscp\n", "", "Ethernet1 without what tells packets apart"),
    mistake(("eos", "ecmp.cfg"), "fields ip source-ip source-port destination-ip destination-port\n",
        "fields ip source-ip destination-ip\n", "lacks source port, destination port"),
    // Cisco NX-OS
    mistake(("nxos", "qos.cfg"), "    queue-limit 13312 bytes\n", "", "without limit"),
    mistake(("nxos", "qos.cfg"), "queue-limit 13312 bytes", "queue-limit dynamic 3", "limit is dynamic 3"),
    mistake(("nxos", "qos.cfg"), "  class type queuing c-out-8q-q2\n    bandwidth remaining percent 0\n", "", "lacks c-out-8q-q2"),
    mistake(("nxos", "qos.cfg"), "    set qos-group 5", "    set qos-group 4", "DSCP 43 goes to queue 4"),
    mistake(("nxos", "qos.cfg"), "interface Ethernet1/8\n  service-policy type qos input CLOUDBURST-IN\n", "",
        "Ethernet1/8 without what tells packets apart"),
    mistake(("nxos", "qos.cfg"), "    bandwidth remaining percent 25\n", "    priority level 1\n", "strict priority"),
    mistake(("nxos", "qos.cfg"), "system qos\n",
        "policy-map type network-qos N\n  class type network-qos c-8q-nq5\n    pause pfc-cos 5\nsystem qos\n",
        "priority flow control for queue 5"),
    mistake(("nxos", "ecmp.cfg"), "universal-id 1", "universal-id 2", "seed is 2; expected 1"),
    mistake(("nxos", "paths.cfg"), "10.102.2.5/32 Ethernet1/6 10.3.0.2", "10.102.2.5/32 Ethernet1/5 10.3.0.1",
        "10.102.2.5/32 is reached by way of 10.3.0.1"),
    // Cisco IOS-XE
    mistake(("iosxe", "qos.cfg"), "  bandwidth percent 25\n", "", "queue-limit without bandwidth"),
    mistake(("iosxe", "qos.cfg"), "queue-limit 12112 bytes", "queue-limit 64 packets", "limit is 64 packets; expected 12112 bytes"),
    mistake(("iosxe", "qos.cfg"), " match dscp 43", " match dscp 43 ef", "DSCP 46 goes to queue 5 too"),
    mistake(("iosxe", "qos.cfg"), "  queue-limit 12112 bytes\n", "  queue-buffers ratio 10\n", "10 percent of the port's buffers"),
    mistake(("iosxe", "qos.native.json"), "\"queue-limit-value\": 12112", "\"queue-limit-value\": 121120", "limit is 121120 bytes"),
    mistake(("iosxe", "ecmp.cfg"), "ip cef load-sharing algorithm include-ports source destination", "ip cef load-sharing algorithm universal",
        "lacks source port, destination port"),
    // OpenConfig
    mistake(("openconfig", "qos.json"), "\"use-shared-buffer\": false", "\"use-shared-buffer\": true", "borrows: use-shared-buffer is true"),
    mistake(("openconfig", "qos.json"), ", \"use-shared-buffer\": false", "", "use-shared-buffer is not set"),
    mistake(("openconfig", "qos.json"), "\"dedicated-buffer\": \"13312\", ", "", "without limit"),
    mistake(("openconfig", "qos.json"), "\"ipv4\": {\"config\": {\"dscp\": 43}}", "\"ipv4\": {\"config\": {\"dscp\": 42}}", "says nothing of DSCP 43"),
    mistake(("openconfig", "qos.json"), "\"config\": {\"sequence\": 1}", "\"config\": {\"sequence\": 1, \"priority\": \"STRICT\"}", "strict priority"),
    mistake(("openconfig", "qos.json"), ",\n                {\"type\": \"IPV6\", \"config\": {\"type\": \"IPV6\", \"name\": \"cloudburst-ipv6\"}}", "",
        "no classifier for IPV6"),
    // Linux
    mistake(("linux", "qos.sh"), "tc qdisc add dev h1 parent 1:10 handle 11: pfifo limit 8\n", "", "without limit"),
    mistake(("linux", "qos.sh"), "handle 11: pfifo limit 8", "handle 11: fq_codel", "limit is fq_codel"),
    mistake(("linux", "qos.sh"), "match ip dsfield 0xac 0xfc flowid 1:10", "match ip dsfield 0xac 0xfc flowid 1:20", "DSCP 43 goes to queue 0"),
    mistake(("linux", "qos.sh"), "match ip dsfield 0xac 0xfc", "match ip dsfield 0xac 0xff", "mask 0xff"),
    mistake(("linux", "qos.sh"), "match ip dsfield 0xac 0xfc", "match ip dsfield 0xa0 0xe0", "DSCP 40 goes to queue 5 too"),
    mistake(("linux", "qos.sh"), "tc filter add dev h1 parent 1: prio 2 protocol ipv6 u32 match ip6 priority 0xac 0xfc flowid 1:10\n", "",
        "h1, ipv6, says nothing of DSCP 43"),
    mistake(("linux", "qos.sh"), "gro off ", "", "may join packets"),
    mistake(("linux", "qos.sh"), "quantum 4542", "quantum 1514", "quantum 1514; expected 4542"),
    mistake(("linux", "qos.sh"), "1:20 htb rate", "1:20 htb prio 1 rate", "strict priority"),
    mistake(("linux", "ecmp.sh"), "fib_multipath_hash_policy=1", "fib_multipath_hash_policy=0", "lacks protocol, source port"),
    mistake(("linux", "paths.sh"), "10.104.2.5/32 via 10.3.0.4", "10.104.2.5/32 via 10.3.0.1", "reached by way of 10.3.0.1"),
    // What is taken besides, or back
    mistake(("picos", "qos.cli"), "set class-of-service scheduler cloudburst-wrr mode \"WRR\"\n", "",
        "scheduler cloudburst-wrr has no mode"),
    mistake(("picos", "qos.cli"), "set class-of-service classifier cloudburst-in trust-mode \"dscp\"\n", "",
        "does not trust DSCPs"),
    mistake(("cumulus4", "qos.traffic.conf"), "[dscp]", "[802.1p,dscp]",
        "the priority comes from [802.1p,dscp]"),
    mistake(("cumulus5", "qos.nv"), "egress-service-pool 3 memory-percent 1\n", "egress-service-pool 3 memory-percent 90\n",
        "pool has 90 percent"),
    mistake(("cumulus5", "qos.nv"), "trust l3\n", "trust l3\nnv unset qos mapping default-global trust\n",
        "DSCPs are not trusted"),
    mistake(("cumulus5", "qos.nv"), "trust l3\n", "trust l3\nnv set interface swp1 qos mapping profile mine\n",
        "swp1 has mapping mine"),
    mistake(("eos", "qos.cfg"), "reserved bytes 1664", "reserved bytes 4000000",
        "4000000 bytes are reserved"),
    mistake(("eos", "qos.cfg"), "   qos trust dscp\n", "   qos trust dscp\n   qos trust cos\n",
        "Ethernet1 trusts cos"),
    mistake(("eos", "paths.cfg"), "10.101.2.5/32 Ethernet5 10.3.0.1", "10.101.2.5/32 Ethernet5 10.3.0.2 name cloudburst",
        "10.101.2.5/32 is reached by way of 10.3.0.2"),
    mistake(("nxos", "qos.cfg"), "  match dscp 43\n", "  match dscp 43\n  match cos 0-7\n",
        "the tiny queue has match cos 0-7 too"),
    mistake(("iosxe", "qos.cfg"), " match dscp 43\n", " match dscp 43\n match access-group name MINE\n",
        "the tiny queue has match access-group name MINE too"),
    mistake(("iosxe", "qos.cfg"), " match dscp 43\n", " match dscp 43\n match any\n",
        "the tiny queue has match any too"),
    mistake(("openconfig", "qos.json"), "\"config\": {\"type\": \"IPV6\", \"name\": \"cloudburst-ipv6\"}", "\"config\": {\"type\": \"IPV6\", \"name\": \"cloudburst-ipv4\"}",
        "a classifier for IPV4, cloudburst-ipv4"),
    mistake(("linux", "qos.sh"), "tc qdisc add dev h2 root", "tc qdisc replace dev h1 root fq\ntc qdisc add dev h2 root",
        "the root of h1 is fq"),
    mistake(("linux", "qos.sh"), "match ip dsfield 0xac 0xfc flowid 1:10", "match u32 0 0 flowid 1:10",
        "does not go by the DSCP alone"),
    mistake(("linux", "qos.sh"), "match ip dsfield 0xac 0xfc flowid 1:10", "match ip dsfield 0xac 0xfc match ip dport 53 0xffff flowid 1:10",
        "does not go by the DSCP alone"),
    mistake(("linux", "qos.sh"), "rate 2500000000bit ceil 10000000000bit", "rate 2500000000bit ceil 2500000000bit",
        "ceil 2500000000; expected 10000000000"),
    mistake(("linux", "qos.sh"), "tso off", "tso on",
        "may join packets (tso)"),
    mistake(("linux", "qos.sh"), "gso off ", "",
        "may join packets (gso)"),
    mistake(("linux", "ecmp.sh"), "net.ipv6.fib_multipath_hash_policy=1", "net.ipv6.fib_multipath_hash_policy=0",
        "the ECMP hash of IPv6 has policy 0"),
    mistake(("linux", "aeolus.sh"), "red limit 12112", "red limit 1211200",
        "limit is 1211200 bytes"),
    // Selective dropping
    mistake(("sonic", "aeolus.json"), "\"ecn\": \"ecn_all\"", "\"ecn\": \"ecn_none\"",
        "selective dropping without ECN"),
    mistake(("sonic", "aeolus.json"), "\"green_drop_probability\": \"100\"", "\"green_drop_probability\": \"5\"",
        "selective dropping by chance"),
    mistake(("sonic", "aeolus.json"), "\"green_min_threshold\": \"6032\"", "\"green_min_threshold\": \"5200\"",
        "selective dropping from 5200"),
    mistake(("sonic", "aeolus.json"), "\"Ethernet4|5\": {\"scheduler\": \"cloudburst_tiny\", \"wred_profile\": \"CLOUDBURST\"}", "\"Ethernet4|5\": {\"scheduler\": \"cloudburst_tiny\"}",
        "Ethernet4 without selective dropping"),
    mistake(("cumulus5", "aeolus.nv"), "ecn enable", "ecn disable",
        "selective dropping without ECN"),
    mistake(("os10", "aeolus.cfg"), " random-detect ecn\n", "",
        "selective dropping without ECN"),
    mistake(("os10", "aeolus.cfg"), "  random-detect CLOUDBURST\n", "",
        "without selective dropping"),
    mistake(("eos", "aeolus.cfg"), "max-mark-probability 100", "max-mark-probability 10",
        "selective dropping by chance"),
    mistake(("nxos", "aeolus.cfg"), " weight 0 ecn", " weight 0",
        "selective dropping without ECN"),
    mistake(("iosxe", "aeolus.cfg"), "  random-detect ecn\n", "",
        "selective dropping without ECN"),
    mistake(("iosxe", "aeolus.cfg"), "random-detect dscp 43", "random-detect dscp 46",
        "CLOUDBURST-OUT has no selective dropping"),
    mistake(("openconfig", "aeolus.json"), "\"enable-ecn\": true", "\"enable-ecn\": false",
        "selective dropping without ECN"),
    mistake(("linux", "aeolus.sh"), " ecn\n", "\n",
        "selective dropping without ECN"),
    mistake(("linux", "aeolus.sh"), "min 6144 max 6145", "min 5500 max 6145",
        "selective dropping from 5500"),
];

/// The same of a spine with three DSCPs: 43, 45 and 47 in queues 5, 4 and 3.
#[rustfmt::skip]
const MISTAKES_OF_CLASSES: &[Mistake] = &[
    mistake(("picos", "qos.cli"), "set class-of-service scheduler cloudburst-wrr-2 buffer queue-limit 49\n", "",
        "queue 4 without limit"),
    mistake(("picos", "qos.cli"), "cloudburst-2 local-priority 4", "cloudburst-2 local-priority 5", "DSCP 45 goes to queue 5"),
    mistake(("picos", "qos.cli"), "cloudburst-wrr-3 weight 1", "cloudburst-wrr-3 weight 8", "share of the tiny queue is 8; expected 1"),
    mistake(("picos", "qos.cli"), "cloudburst-wrr mode \"WRR\"", "cloudburst-wrr mode \"SP\"", "strict priority"),
    mistake(("picos", "qos.cli"), "buffer queue-limit 49\n",
        "buffer queue-limit 49\nset class-of-service scheduler cloudburst-wrr-3 buffer shared enable\n", "borrows: buffer shared enable"),
    mistake(("sonic", "qos.json"), "\"45\": \"4\"", "\"45\": \"5\"", "DSCP 45 goes to queue 5 too"),
    mistake(("sonic", "qos.json"), "\"44\": \"0\"", "\"44\": \"3\"", "DSCP 44 goes to queue 3 too"),
    mistake(("sonic", "qos.json"), "\"Ethernet0|4\": {\"profile\"", "\"Ethernet0|6\": {\"profile\"", "Ethernet0 without a limit"),
    mistake(("sonic", "qos.json"), "\"cloudburst_tiny\": {\"type\": \"DWRR\", \"weight\": \"4\"}", "\"cloudburst_tiny\": {\"type\": \"STRICT\"}",
        "strict priority"),
    mistake(("sonic", "qos.json"), "\"Ethernet0\": {\"dscp_to_tc_map\"", "\"Ethernet0\": {\"pfc_enable\": \"3\", \"dscp_to_tc_map\"",
        "priority flow control for queue 3"),
    mistake(("sonic", "aeolus.json"), "\"Ethernet0|3\": {\"scheduler\": \"cloudburst_tiny-3\", \"wred_profile\": \"CLOUDBURST\"}",
        "\"Ethernet0|3\": {\"scheduler\": \"cloudburst_tiny-3\"}", "Ethernet0 without selective dropping"),
    mistake(("cumulus4", "qos.traffic.conf"), "dscp = [43,45,47]", "dscp = [43,45]", "says nothing of DSCP 47"),
    mistake(("cumulus5", "qos.nv"), "traffic-class 3 bw-percent 7", "traffic-class 3 bw-percent 30", "share of the tiny queue is 30; expected 7"),
    mistake(("cumulus5", "qos.nv"), "traffic-class 5 mode dwrr", "traffic-class 5 mode strict", "strict priority"),
    mistake(("cumulus5", "qos.nv"), "traffic-class 4 shared-bytes 10192", "traffic-class 4 shared-alpha alpha_1", "a share of the free buffer"),
    mistake(("cumulus5", "aeolus.nv"), "traffic-class 4 ecn enable", "traffic-class 4 ecn disable", "selective dropping without ECN"),
    mistake(("os10", "qos.cfg"), "  bandwidth percent 29\n", "  priority\n", "strict priority"),
    mistake(("os10", "qos.cfg"), " class CLOUDBURST-2\n", " class CLOUDBURST-9\n", "queue 4 without limit"),
    mistake(("eos", "qos.cfg"), "egress unicast queue 4 threshold 1/64", "egress unicast queue 4 threshold 8", "the tiny queue has a threshold of 8"),
    mistake(("eos", "qos.cfg"), "qos map dscp 47 to traffic-class 3\n", "", "DSCP 47 goes to queue"),
    mistake(("nxos", "qos.cfg"), "  class CLOUDBURST-2\n    set qos-group 4", "  class CLOUDBURST-2\n    set qos-group 5", "DSCP 45 goes to queue 5 too"),
    mistake(("nxos", "qos.cfg"), "    bandwidth remaining percent 29\n", "    priority level 1\n", "strict priority"),
    mistake(("nxos", "qos.cfg"), "    bandwidth remaining percent 50\n", "    bandwidth remaining percent 30\n",
        "share of the default queue is 30; expected 50"),
    mistake(("iosxe", "qos.cfg"), "class-map match-any CLOUDBURST-2\n match dscp 45", "class-map match-any CLOUDBURST-2\n match dscp 47",
        "says nothing of DSCP 45"),
    mistake(("iosxe", "qos.cfg"), "  bandwidth percent 14\n", "  priority level 2\n", "strict priority"),
    mistake(("iosxe", "qos.native.json"), "{\"percent\": 7}", "{\"percent\": 70}", "share of the tiny queue is 70; expected 7"),
    mistake(("openconfig", "qos.json"), "\"queue\": \"cloudburst-2\", \"weight\": \"2\"", "\"queue\": \"cloudburst-2\", \"weight\": \"20\"",
        "share of the tiny queue is 20; expected 2"),
    mistake(("openconfig", "qos.json"), "\"name\": \"cloudburst-3\", \"dedicated-buffer\": \"10192\", \"use-shared-buffer\": false",
        "\"name\": \"cloudburst-3\", \"dedicated-buffer\": \"10192\", \"use-shared-buffer\": true", "borrows: use-shared-buffer is true"),
    mistake(("linux", "qos.sh"), "1:12 htb prio 1", "1:12 htb prio 0", "two tiny queues have prio 0"),
    mistake(("linux", "qos.sh"), "1:11 htb prio 0", "1:11 htb prio 3", "DSCP 43 goes to queue 3"),
    mistake(("linux", "qos.sh"), "1:13 htb prio 2 rate 8000bit", "1:13 htb prio 2 rate 5000000000bit", "rate 5000000000; expected 8000"),
    mistake(("linux", "qos.sh"), "1:12 htb prio 1 rate 8000bit ceil 10000000000bit", "1:12 htb prio 1 rate 8000bit ceil 100000000bit",
        "ceil 100000000; expected 10000000000"),
    mistake(("linux", "qos.sh"), "1:10 htb rate 5000000000bit", "1:10 htb rate 9000000000bit", "rate 9000000000; expected 5000000000"),
    mistake(("linux", "qos.sh"), "parent 1:12 handle 12: bfifo limit 10192", "parent 1:12 handle 12: bfifo limit 101920", "limit is 101920 bytes"),
    mistake(("linux", "qos.sh"), "0xb4 0xfc flowid 1:12", "0xb4 0xfc flowid 1:11", "DSCP 45 goes to queue 5 too"),
    mistake(("linux", "qos.sh"), "parent 1:10 classid 1:13", "parent 1:1 classid 1:13", "2 classes in the share of the tiny queues; expected 3"),
    mistake(("linux", "aeolus.sh"), "parent 1:12 handle 32: red limit 10192 min 6144 max 6145",
        "parent 1:12 handle 32: red limit 10192 min 6144 max 9000", "selective dropping from 6144 to 9000"),
];

/// What takes something back, at the end of a file of a leaf, and what is said of that.
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
        "says nothing of DSCP 43"),
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
        "Ethernet1/2 without what tells packets apart"),
    taken_back(("nxos", "qos.cfg"), "policy-map type queuing CLOUDBURST-OUT\n  class type queuing c-out-8q-q5\n    no queue-limit 1 mbytes\n",
        "queue 5 without limit"),
    taken_back(("nxos", "qos.cfg"), "no class-map type qos match-any CLOUDBURST\n", "says nothing of DSCP 43"),
    taken_back(("nxos", "aeolus.cfg"), "policy-map type queuing CLOUDBURST-OUT\n  class type queuing c-out-8q-q5\n    no random-detect\n",
        "has no selective dropping"),
    taken_back(("iosxe", "qos.cfg"), "interface GigabitEthernet2\n no service-policy output\n", "GigabitEthernet2 without a limit"),
    taken_back(("iosxe", "qos.cfg"), "policy-map CLOUDBURST-OUT\n class CLOUDBURST\n  no queue-limit\n", "queue 5 without limit"),
    taken_back(("iosxe", "qos.cfg"), "no class-map CLOUDBURST\n", "says nothing of DSCP 43"),
    taken_back(("iosxe", "paths.cfg"), "no ip route 10.102.2.5 255.255.255.255\n", "no route to 10.102.2.5/32"),
    taken_back(("openconfig", "zz.json"), "[{\"op\": \"remove\", \"path\": \"/openconfig-qos:qos/buffer-allocation-profiles\"}]",
        "refers to cloudburst, which is not there"),
    taken_back(("linux", "qos.sh"), "tc filter del dev h2 parent 1: prio 2\n", "h2, ipv6, says nothing of DSCP 43"),
    taken_back(("linux", "qos.sh"), "tc filter del dev h2\n", "h2, ip, says nothing of DSCP 43"),
    taken_back(("linux", "qos.sh"), "tc qdisc del dev h2 parent 1:10 handle 11:\n", "h2 has a queue 5 without limit"),
    taken_back(("linux", "qos.sh"), "tc class del dev h2 classid 1:10\n", "h2 has no share for the tiny queue"),
    taken_back(("linux", "paths.sh"), "ip route del 10.102.2.5\n", "no route to 10.102.2.5/32"),
    taken_back(("linux", "paths.sh"), "ip route delete 10.102.2.5/32 via 10.3.0.2\n", "no route to 10.102.2.5/32"),
    taken_back(("linux", "ecmp.sh"), "sysctl -w net.ipv4.fib_multipath_hash_policy=0\n", "lacks protocol, source port"),
];

/// A switch with one mistake in it, and what is said of that.
fn said(mistake: &Mistake, parameters: &str) -> (Ended, String) {
    let rendered = Rendered::of(parameters);
    let (platform, file) = (mistake.platform, mistake.file);
    let text = fs::read_to_string(rendered.path(file)).unwrap();
    assert!(text.contains(mistake.from), "{platform} {file} has no {:?}:\n{text}", mistake.from);
    fs::write(rendered.path(file), text.replacen(mistake.from, mistake.to, 1)).unwrap();
    let files = rendered.files().into_iter().map(|(name, _)| name);
    let files: Vec<_> = files.map(|name| rendered.path(&name)).collect();
    let ended = rendered.check_files(&files);
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    (ended, said)
}

#[test]
fn every_mistake_is_caught_and_named() {
    assert_caught(MISTAKES, |platform| platform.leaf(1));
}

#[test]
fn every_mistake_of_several_classes_is_caught_and_named() {
    assert_caught(MISTAKES_OF_CLASSES, Platform::classes);
}

fn assert_caught(mistakes: &[Mistake], parameters: fn(&Platform) -> String) {
    let mut missed = Vec::new();
    for mistake in mistakes {
        let (ended, said) = said(mistake, &parameters(find(mistake.platform)));
        let is_caught = said.lines().any(|line| line.contains(mistake.finding));
        if ended.code != Some(1) || !is_caught {
            missed.push(format!(
                "{} {}: {:?} for {:?} should say {:?}, not:\n{said}{}",
                mistake.platform,
                mistake.file,
                mistake.to,
                mistake.from,
                mistake.finding,
                ended.stderr
            ));
        }
    }
    assert!(
        missed.is_empty(),
        "{} of {} missed:\n{}",
        missed.len(),
        mistakes.len(),
        missed.join("\n")
    );
}

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

#[test]
fn one_form_of_a_configuration_does_not_hide_the_mistakes_of_the_other() {
    for (file, from, to) in [
        ("qos.cfg", " service-policy output CLOUDBURST-OUT\n", ""),
        ("qos.cfg", "  queue-limit 12112 bytes\n", ""),
        (
            "qos.native.json",
            ", \"Cisco-IOS-XE-policy:service-policy\": {\"output\": \"CLOUDBURST-OUT\"}",
            "",
        ),
        ("qos.native.json", "\"dscp\": [43]", "\"dscp\": [42]"),
    ] {
        let rendered = Rendered::of(&find("iosxe").leaf(1));
        let text = fs::read_to_string(rendered.path(file)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(rendered.path(file), text.replace(from, to)).unwrap();
        assert_eq!(rendered.check().code, Some(1), "{file}: {from:?}");
    }
    // What a switch has now is one text, with what has one form only; the model is judged beside it.
    let rendered = Rendered::of(&find("iosxe").leaf(1));
    let running = ["qos.cfg", "aeolus.cfg", "ecmp.cfg", "paths.cfg"]
        .map(|name| fs::read_to_string(rendered.path(name)).unwrap());
    fs::write(rendered.path("running"), running.concat()).unwrap();
    let both = ["running", "qos.native.json"].map(|name| rendered.path(name));
    let ended = rendered.check_files(&both);
    assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    // Either form alone is complete; the hash is commands in both.
    let rendered = Rendered::of(&find("iosxe").many());
    for form in ["qos.cfg", "qos.native.json"] {
        let ended = rendered.check_files(&[form, "ecmp.cfg"].map(|name| rendered.path(name)));
        assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}

#[test]
fn a_finding_has_the_line_the_cause_and_the_remedy() {
    let mistake = MISTAKES.iter().find(|mistake| mistake.finding.contains("dynamic 3")).unwrap();
    let (_, said) = said(mistake, &find(mistake.platform).leaf(1));
    let line = said.lines().next().unwrap();
    assert!(
        line.contains(
            "qos.cfg:22: the tiny queue's limit is dynamic 3; expected 13312 bytes: set it"
        ),
        "{line}"
    );
}

#[test]
fn a_configuration_without_its_hash_is_not_complete() {
    for platform in &common::PLATFORMS {
        let rendered = Rendered::of(&platform.leaf(1));
        let files = rendered.files().into_iter().map(|(name, _)| name);
        let files: Vec<_> = files
            .filter(|name| !name.starts_with("ecmp."))
            .map(|name| rendered.path(&name))
            .collect();
        let ended = rendered.check_files(&files);
        let said = String::from_utf8_lossy(&ended.stdout);
        // Its models have no place for one.
        if platform.name == "openconfig" {
            assert_eq!(ended.code, Some(0), "{said}");
        } else {
            assert_eq!(ended.code, Some(1), "{}", platform.name);
            assert!(said.contains("ECMP hash"), "{}: {said}", platform.name);
        }
    }
}

#[test]
fn a_patch_is_read_as_what_it_adds() {
    let rendered = Rendered::of(&find("sonic").leaf(1));
    let patch = rendered.path("qos.patch.json");
    let files = ["qos.patch.json", "ecmp.json", "paths.json", "aeolus.json"];
    let files = files.map(|name| rendered.path(name));
    assert_eq!(rendered.check_files(&files).code, Some(0));
    let text = fs::read_to_string(&patch).unwrap();
    fs::write(&patch, text.replace("\"static_th\": \"13312\"", "\"static_th\": \"0\"")).unwrap();
    let ended = rendered.check_files(&files);
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("qos.patch.json:4: the tiny queue's limit is static_th 0"), "{said}");
}

#[test]
fn a_path_without_end_is_found_and_never_followed() {
    let rendered = Rendered::of(&find("sonic").leaf(1));
    let path = "/a".repeat(200_000);
    let patch = format!("[{{\"op\": \"add\", \"path\": \"{path}\", \"value\": 1}}]");
    fs::write(rendered.path("qos.patch.json"), patch).unwrap();
    let ended = rendered.check();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(said.contains("qos.patch.json: a path of more than 16 parts"), "{said}");
}

#[test]
fn one_file_can_be_given_by_a_flag() {
    let rendered = Rendered::of(&find("nxos").many());
    let all: String = ["qos.cfg", "ecmp.cfg"]
        .map(|name| fs::read_to_string(rendered.path(name)).unwrap())
        .concat();
    let running = rendered.dir().join("running-config");
    fs::write(&running, all).unwrap();
    let mut check = command(&["--check"]);
    check.arg(&running).arg("--params").arg(rendered.dir().join("params.toml"));
    let ended = run(&mut check);
    assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn a_route_may_have_a_name_and_a_port_any_case() {
    for (platform, file, from, to) in [
        ("nxos", "paths.cfg", " 10.3.0.1\n", " 10.3.0.1 name cloudburst\n"),
        ("eos", "paths.cfg", " 10.3.0.1\n", " 10.3.0.1 name cloudburst\n"),
        ("iosxe", "paths.cfg", " 10.3.0.1\n", " 10.3.0.1 permanent\n"),
        ("os10", "qos.cfg", "interface ethernet", "interface Ethernet"),
    ] {
        let rendered = Rendered::of(&find(platform).leaf(1));
        let text = fs::read_to_string(rendered.path(file)).unwrap();
        assert!(text.contains(from), "{platform}");
        fs::write(rendered.path(file), text.replace(from, to)).unwrap();
        let ended = rendered.check();
        assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}

#[test]
fn the_class_that_linux_shares_a_link_by_may_have_any_number() {
    for parameters in [find("linux").many(), find("linux").classes()] {
        let rendered = Rendered::of(&parameters);
        let text = fs::read_to_string(rendered.path("qos.sh")).unwrap();
        let other =
            text.replace("classid 1:1 ", "classid 1:ff ").replace("parent 1:1 ", "parent 1:ff ");
        assert_ne!(text, other);
        fs::write(rendered.path("qos.sh"), other).unwrap();
        let ended = rendered.check();
        assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}

#[test]
fn other_classes_may_have_what_the_default_queue_had() {
    let rendered = Rendered::of(&find("nxos").leaf(1));
    let text = fs::read_to_string(rendered.path("qos.cfg")).unwrap();
    let share = |queue: &str| {
        let class = format!("  class type queuing {queue}\n    bandwidth remaining percent ");
        let at = text.find(&class).unwrap() + class.len();
        let percent: u64 = text[at..].lines().next().unwrap().parse().unwrap();
        (class, percent)
    };
    let ((six, old), (default, all)) = (share("c-out-8q-q6"), share("c-out-8q-q-default"));
    let more = text.replace(&format!("{six}{old}\n"), &format!("{six}{}\n", old + 10));
    fs::write(
        rendered.path("qos.cfg"),
        more.replace(&format!("{default}{all}\n"), &format!("{default}{}\n", all - 10)),
    )
    .unwrap();
    let ended = rendered.check();
    assert_eq!(ended.code, Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn selective_dropping_that_nobody_asked_for_is_found() {
    for platform in common::PLATFORMS.iter().filter(|each| each.leaf(1).contains("aeolus")) {
        let rendered = Rendered::of(&platform.leaf(1));
        let parameters = platform.leaf(1);
        let without = parameters.lines().filter(|line| !line.starts_with("aeolus"));
        let without: Vec<&str> = without.collect();
        fs::write(rendered.dir().join("params.toml"), without.join("\n")).unwrap();
        let said = String::from_utf8_lossy(&rendered.check().stdout).into_owned();
        let is_found =
            |line: &str| line.contains("selective dropping from") && line.contains("expected none");
        assert!(said.lines().any(is_found), "{}: {said}", platform.name);
    }
}

#[test]
fn what_a_switch_has_besides_is_passed_over() {
    let rendered = Rendered::of(&find("iosxe").many());
    let running = rendered.path("qos.cfg");
    let text = fs::read_to_string(&running).unwrap();
    let more =
        "hostname r1\nrouter bgp 65000\n neighbor 10.0.0.1 remote-as 65001\n!\nline vty 0 4\n";
    fs::write(&running, format!("{more}{text}end\n")).unwrap();
    assert_eq!(rendered.check().code, Some(0));
}

#[test]
fn what_is_torn_off_is_missed_and_never_a_panic() {
    for platform in &common::PLATFORMS {
        let rendered = Rendered::of(&platform.leaf(1));
        let is_queue = |name: &String| name.starts_with("qos.") && !name.contains("traffic");
        let names: Vec<_> = rendered.files().into_iter().map(|(name, _)| name).collect();
        let name = names.iter().find(|name| is_queue(name)).unwrap();
        let text = fs::read_to_string(rendered.path(name)).unwrap();
        for tenth in 0..9 {
            fs::write(rendered.path("torn"), &text[..text.len() * tenth / 10]).unwrap();
            let ended = rendered.check_files(&[rendered.path("torn")]);
            assert_eq!(ended.code, Some(1), "{} {tenth}: {}", platform.name, ended.stderr);
        }
    }
}

#[test]
fn who_may_have_packets_unwrapped_is_rendered_and_a_rule_that_is_wider_is_found() {
    let from = "decapsulate_from = [\"10.1.0.0/16\", \"10.2.0.0/16\"]\n";
    let parameters = format!("{from}{}", find("linux").spine(1));
    let rendered = Rendered::of(&parameters);
    assert!(!rendered.said.contains("whoever sends them"), "{}", rendered.said);
    assert_eq!(rendered.check().code, Some(0));
    let right = fs::read_to_string(rendered.path("paths.sh")).unwrap();
    for (from, to) in [
        ("10.1.0.0/16, ", ""),
        ("10.1.0.0/16", "0.0.0.0/0"),
        ("daddr 10.3.0.1", "daddr 10.3.0.2"),
        ("ip link set cloudburst up", "nft delete table ip cloudburst"),
        (" drop\n", " accept\n"),
    ] {
        assert!(right.contains(from), "{from}");
        fs::write(rendered.path("paths.sh"), right.replace(from, to)).unwrap();
        let ended = rendered.check();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.code, Some(1), "{from}: {said}");
        assert!(said.contains("are unwrapped from others than was meant"), "{from}: {said}");
    }
    let open = Rendered::of(&find("linux").spine(1));
    assert!(open.said.contains("are unwrapped whoever sends them"), "{}", open.said);
}
