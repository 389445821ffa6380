//! Common mistakes in a switch's configuration: each is reported with its location and its cause.

use crate::common::*;
use std::fs;

/// A mistake: in the file of a leaf, `from` became `to`, and a finding that contains `finding` is expected.
struct Mistake {
    platform: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    finding: &'static str,
}

const fn mistake(
    platform: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    finding: &'static str,
) -> Mistake {
    Mistake { platform, file, from, to, finding }
}

#[rustfmt::skip]
const MISTAKES: &[Mistake] = &[
    // PicOS
    mistake("picos", "qos.cli", "set class-of-service scheduler cloudburst-wrr buffer queue-limit 64\n", "",
        "queue 5 without limit"),
    mistake("picos", "qos.cli", "queue-limit 64", "queue-limit 640", "limit is 133120 bytes; expected 13312 bytes"),
    mistake("picos", "qos.cli", "cloudburst code-point 43", "cloudburst code-point 42", "does not map DSCP 43"),
    mistake("picos", "qos.cli", "scheduler cloudburst-wrr mode \"WRR\"", "scheduler cloudburst-wrr mode \"SP\"",
        "the tiny queue has strict priority"),
    mistake("picos", "qos.cli", "interface te-1/1/52 classifier \"cloudburst-in\"", "interface te-1/1/52 classifier \"cb\"",
        "te-1/1/52 refers to cb, which is not there"),
    mistake("picos", "qos.cli", "trust-mode \"dscp\"", "trust-mode \"ieee-802.1\"", "does not trust DSCPs"),
    mistake("picos", "qos.cli", "buffer queue-limit 64\n",
        "buffer queue-limit 64\nset class-of-service scheduler cloudburst-wrr buffer shared enable\n",
        "borrows: buffer shared enable"),
    mistake("picos", "ecmp.cli", "port-source disable false", "port-source disable true",
        "the ECMP hash lacks source port"),
    // SONiC
    mistake("sonic", "qos.json", "\"static_th\": \"13312\"", "\"static_th\": \"0\"", "no limit"),
    mistake("sonic", "qos.json", "\"static_th\": \"13312\"", "\"dynamic_th\": \"-6\"", "a share of the free buffer"),
    mistake("sonic", "qos.json", "\"static_th\": \"13312\"", "\"static_th\": \"13312\", \"dynamic_th\": 3", "a share of the free buffer, dynamic_th 3"),
    mistake("sonic", "qos.json", "\"pool\": \"egress_lossless_pool\"", "\"pool\": \"ingress_lossless_pool\"", "its pool ingress_lossless_pool is for ingress"),
    mistake("sonic", "qos.patch.json", "\"static_th\": \"13312\"", "\"static_th\": \"0\"", "no limit"),
    mistake("sonic", "qos.patch.json", "\"43\": \"5\"", "\"43\": \"4\"", "DSCP 43 goes to queue 4"),
    mistake("sonic", "qos.patch.json", "/BUFFER_QUEUE/Ethernet0|5\"", "/BUFFER_QUEUE/Ethernet0|4\"", "Ethernet0 without a limit"),
    mistake("sonic", "qos.json", "\"size\": \"0\"", "\"size\": \"1664\"", "limit is 14976 bytes"),
    mistake("sonic", "qos.json", "\"43\": \"5\"", "\"43\": \"4\"", "DSCP 43 goes to queue 4"),
    mistake("sonic", "qos.json", "\"44\": \"0\"", "\"44\": \"5\"", "DSCP 44 goes to queue 5 too"),
    mistake("sonic", "qos.json", "      \"62\": \"0\",\n", "", "1 DSCPs have no class"),
    mistake("sonic", "qos.json", "\"5\": \"5\"", "\"5\": \"3\"", "DSCP 43 goes to queue 3"),
    mistake("sonic", "qos.json", "{\"type\": \"DWRR\", \"weight\": \"1\"}", "{\"type\": \"STRICT\"}", "strict priority"),
    mistake("sonic", "qos.json", "\"Ethernet28|5\": {\"profile\"", "\"Ethernet28|4\": {\"profile\"",
        "Ethernet28 without a limit"),
    mistake("sonic", "qos.json", "\"Ethernet0\": {\"dscp_to_tc_map\"", "\"Ethernet0\": {\"pfc_enable\": \"3,5\", \"dscp_to_tc_map\"",
        "priority flow control for queue 5"),
    mistake("sonic", "qos.json", "\"Ethernet0\": {\"dscp_to_tc_map\": \"CLOUDBURST\"", "\"Ethernet0\": {\"dscp_to_tc_map\": \"AZURE\"",
        "AZURE, CLOUDBURST, which is not there"),
    mistake("sonic", "qos.json", "\"BUFFER_PROFILE\": {",
        "\"BUFFER_POOL\": {\"egress_lossless_pool\": {\"mode\": \"dynamic\", \"type\": \"egress\"}}, \"BUFFER_PROFILE\": {",
        "its pool egress_lossless_pool is dynamic"),
    mistake("sonic", "qos.json", "}\n}\n", "}\n", "it cannot be read"),
    mistake("sonic", "ecmp.json", ", \"L4_SRC_PORT\", \"L4_DST_PORT\"", "", "lacks source port, destination port"),
    mistake("sonic", "aeolus.json", "\"green_max_threshold\": \"6032\"", "\"green_max_threshold\": \"12480\"",
        "selective dropping from 6032 to 12480 bytes"),
    // Cumulus Linux 4
    mistake("cumulus4", "qos.datapath.conf", "unlimited_egress_buffer = false", "unlimited_egress_buffer = true",
        "limit is unlimited_egress_buffer = true"),
    mistake("cumulus4", "qos.datapath.conf", "priority_group.service.unlimited_egress_buffer = false\n", "", "without limit"),
    mistake("cumulus4", "qos.datapath.conf", "sp_percent = 0.0", "sp_percent = 45.0", "borrows: 45 % of the pool"),
    mistake("cumulus4", "qos.datapath.conf", "priority_group.service.egress_buffer.uc.sp_percent = 0.0\n", "",
        "borrows: sp_percent is not set"),
    mistake("cumulus4", "qos.datapath.conf", "min_percent = 0.3", "min_percent = 5.0", "limit is 200000 bytes"),
    mistake("cumulus4", "qos.traffic.conf", "[dscp]", "[802.1p]", "the priority comes from [802.1p]"),
    mistake("cumulus4", "qos.traffic.conf", "dscp = [43]", "dscp = [40,41,42,43]", "DSCP 40 goes to queue 5 too"),
    mistake("cumulus4", "qos.traffic.conf", "service.cos_list = [5]", "service.cos_list = [4,5]", "group service has queues [4,5]"),
    mistake("cumulus4", "qos.traffic.conf", "service.weight = 1", "service.weight = 0", "strict priority"),
    mistake("cumulus4", "qos.traffic.conf", "service.weight = 1", "service.weight = 1\npfc.pfc_port_group.cos_list = [5]",
        "priority flow control for queue 5"),
    mistake("cumulus4", "ecmp.traffic.conf", "ecmp_hash_seed = 1", "hash_config.sport = 0", "lacks source port"),
    // Cumulus Linux 5
    mistake("cumulus5", "qos.nv", "nv set qos mapping default-global dscp 44 switch-priority 0\n", "",
        "DSCP 44 goes to queue 5 too"),
    mistake("cumulus5", "qos.nv", "shared-bytes 13312", "shared-alpha alpha_1_4", "a share of the free buffer, alpha_1_4"),
    mistake("cumulus5", "qos.nv", "egress-service-pool 3 mode static", "egress-service-pool 3 mode dynamic",
        "a pool whose mode is not static"),
    mistake("cumulus5", "qos.nv", "trust l3", "trust l2", "DSCPs are not trusted"),
    mistake("cumulus5", "qos.nv", "bw-percent 25", "bw-percent 50", "share of the tiny queue is 50; expected 25"),
    mistake("cumulus5", "ecmp.nv", "nv set system forwarding hash-seed 1\n", "", "no seed"),
    // Dell OS10
    mistake("os10", "qos.cfg", "thresh-mode static 1", "thresh-mode dynamic 5", "a share of the free buffer"),
    mistake("os10", "qos.cfg", "qos-group 5 dscp 43", "qos-group 5 dscp 40-47", "DSCP 40 goes to queue 5 too"),
    mistake("os10", "qos.cfg", " queue 5 qos-group 5", " queue 4 qos-group 5", "DSCP 43 goes to queue 4"),
    mistake("os10", "ecmp.cfg", " l4-source-port l4-destination-port", "", "lacks source port, destination port"),
    mistake("os10", "paths.cfg", "ip route 10.103.2.5/32 10.3.0.3\n", "", "no route to 10.103.2.5/32"),
    mistake("os10", "paths.cfg", "10.103.2.5/32 10.3.0.3\n", "10.103.2.5/32 10.3.0.9 5\n", "10.103.2.5/32 is reached by way of 10.3.0.9"),
    // Arista EOS
    mistake("eos", "qos.cfg", "threshold 1/64", "threshold 8", "the tiny queue has a threshold of 8"),
    mistake("eos", "qos.cfg", "profile CLOUDBURST apply\n", "profile OTHER apply\n", "no MMU profile applied"),
    mistake("eos", "qos.cfg", "maximum-threshold 13312 bytes", "maximum-threshold 100000 bytes", "WRED from 13312 to 100000"),
    mistake("eos", "qos.cfg", "      no priority\n", "", "strict priority"),
    mistake("eos", "qos.cfg", "qos map dscp 43 to traffic-class 5\n", "qos map dscp 43 to traffic-class 4\n", "DSCP 43 goes to queue 4"),
    mistake("eos", "qos.cfg", "   qos trust dscp\n", "", "Ethernet1 without a classifier by DSCP"),
    mistake("eos", "ecmp.cfg", "fields ip source-ip source-port destination-ip destination-port\n",
        "fields ip source-ip destination-ip\n", "lacks source port, destination port"),
    // Cisco NX-OS
    mistake("nxos", "qos.cfg", "    queue-limit 13312 bytes\n", "", "without limit"),
    mistake("nxos", "qos.cfg", "queue-limit 13312 bytes", "queue-limit dynamic 3", "limit is dynamic 3"),
    mistake("nxos", "qos.cfg", "  class type queuing c-out-8q-q2\n    bandwidth remaining percent 0\n", "", "lacks c-out-8q-q2"),
    mistake("nxos", "qos.cfg", "    set qos-group 5", "    set qos-group 4", "DSCP 43 goes to queue 4"),
    mistake("nxos", "qos.cfg", "interface Ethernet1/8\n  service-policy type qos input CLOUDBURST-IN\n", "",
        "Ethernet1/8 without a classifier by DSCP"),
    mistake("nxos", "qos.cfg", "    bandwidth remaining percent 25\n", "    priority level 1\n", "strict priority"),
    mistake("nxos", "qos.cfg", "system qos\n",
        "policy-map type network-qos N\n  class type network-qos c-8q-nq5\n    pause pfc-cos 5\nsystem qos\n",
        "priority flow control for queue 5"),
    mistake("nxos", "ecmp.cfg", "universal-id 1", "universal-id 2", "seed is 2; expected 1"),
    mistake("nxos", "paths.cfg", "10.102.2.5/32 Ethernet1/6 10.3.0.2", "10.102.2.5/32 Ethernet1/5 10.3.0.1",
        "10.102.2.5/32 is reached by way of 10.3.0.1"),
    // Cisco IOS-XE
    mistake("iosxe", "qos.cfg", "  bandwidth percent 25\n", "", "queue-limit without bandwidth"),
    mistake("iosxe", "qos.cfg", "queue-limit 12112 bytes", "queue-limit 64 packets", "limit is 64 packets; expected 12112 bytes"),
    mistake("iosxe", "qos.cfg", " match dscp 43", " match dscp 43 ef", "DSCP 46 goes to queue 5 too"),
    mistake("iosxe", "qos.cfg", "  queue-limit 12112 bytes\n", "  queue-buffers ratio 10\n", "10 percent of the port's buffers"),
    mistake("iosxe", "qos.native.json", "\"queue-limit-value\": 12112", "\"queue-limit-value\": 121120", "limit is 121120 bytes"),
    mistake("iosxe", "ecmp.cfg", "ip cef load-sharing algorithm include-ports source destination", "ip cef load-sharing algorithm universal",
        "lacks source port, destination port"),
    // OpenConfig
    mistake("openconfig", "qos.json", "\"use-shared-buffer\": false", "\"use-shared-buffer\": true", "borrows: use-shared-buffer is true"),
    mistake("openconfig", "qos.json", ", \"use-shared-buffer\": false", "", "use-shared-buffer is not set"),
    mistake("openconfig", "qos.json", "\"dedicated-buffer\": \"13312\", ", "", "without limit"),
    mistake("openconfig", "qos.json", "\"ipv4\": {\"config\": {\"dscp\": 43}}", "\"ipv4\": {\"config\": {\"dscp\": 42}}", "does not map DSCP 43"),
    mistake("openconfig", "qos.json", "\"config\": {\"sequence\": 1}", "\"config\": {\"sequence\": 1, \"priority\": \"STRICT\"}", "strict priority"),
    mistake("openconfig", "qos.json", ",\n                {\"type\": \"IPV6\", \"config\": {\"type\": \"IPV6\", \"name\": \"cloudburst-ipv6\"}}", "",
        "no classifier for IPV6"),
    // Linux
    mistake("linux", "qos.sh", "tc qdisc add dev h1 parent 1:10 handle 11: pfifo limit 8\n", "", "without limit"),
    mistake("linux", "qos.sh", "handle 11: pfifo limit 8", "handle 11: fq_codel", "limit is fq_codel"),
    mistake("linux", "qos.sh", "match ip dsfield 0xac 0xfc flowid 1:10", "match ip dsfield 0xac 0xfc flowid 1:20", "DSCP 43 goes to queue 0"),
    mistake("linux", "qos.sh", "match ip dsfield 0xac 0xfc", "match ip dsfield 0xac 0xff", "mask 0xff"),
    mistake("linux", "qos.sh", "match ip dsfield 0xac 0xfc", "match ip dsfield 0xa0 0xe0", "DSCP 40 goes to queue 5 too"),
    mistake("linux", "qos.sh", "tc filter add dev h1 parent 1: prio 2 protocol ipv6 u32 match ip6 priority 0xac 0xfc flowid 1:10\n", "",
        "h1, ipv6, does not map DSCP 43"),
    mistake("linux", "qos.sh", "gro off ", "", "may join packets"),
    mistake("linux", "qos.sh", "quantum 4542", "quantum 1514", "quantum 1514; expected 4542"),
    mistake("linux", "qos.sh", "1:20 htb rate", "1:20 htb prio 1 rate", "strict priority"),
    mistake("linux", "ecmp.sh", "fib_multipath_hash_policy=1", "fib_multipath_hash_policy=0", "lacks protocol, source port"),
    mistake("linux", "paths.sh", "10.104.2.5/32 via 10.3.0.4", "10.104.2.5/32 via 10.3.0.1", "reached by way of 10.3.0.1"),
    // Additions and removals
    mistake("picos", "qos.cli", "set class-of-service scheduler cloudburst-wrr mode \"WRR\"\n", "",
        "scheduler cloudburst-wrr has no mode"),
    mistake("picos", "qos.cli", "set class-of-service classifier cloudburst-in trust-mode \"dscp\"\n", "",
        "does not trust DSCPs"),
    mistake("cumulus4", "qos.traffic.conf", "[dscp]", "[802.1p,dscp]",
        "the priority comes from [802.1p,dscp]"),
    mistake("cumulus5", "qos.nv", "egress-service-pool 3 memory-percent 1\n", "egress-service-pool 3 memory-percent 90\n",
        "pool has 90 percent"),
    mistake("cumulus5", "qos.nv", "trust l3\n", "trust l3\nnv unset qos mapping default-global trust\n",
        "DSCPs are not trusted"),
    mistake("cumulus5", "qos.nv", "trust l3\n", "trust l3\nnv set interface swp1 qos mapping profile mine\n",
        "swp1 has mapping mine"),
    mistake("eos", "qos.cfg", "reserved bytes 1664", "reserved bytes 4000000",
        "4000000 bytes are reserved"),
    mistake("eos", "qos.cfg", "   qos trust dscp\n", "   qos trust dscp\n   qos trust cos\n",
        "Ethernet1 trusts cos"),
    mistake("eos", "paths.cfg", "10.101.2.5/32 Ethernet5 10.3.0.1", "10.101.2.5/32 Ethernet5 10.3.0.2 name cloudburst",
        "10.101.2.5/32 is reached by way of 10.3.0.2"),
    mistake("nxos", "qos.cfg", "  match dscp 43\n", "  match dscp 43\n  match cos 0-7\n",
        "the tiny queue has match cos 0-7 too"),
    mistake("iosxe", "qos.cfg", " match dscp 43\n", " match dscp 43\n match access-group name MINE\n",
        "the tiny queue has match access-group name MINE too"),
    mistake("iosxe", "qos.cfg", " match dscp 43\n", " match dscp 43\n match any\n",
        "the tiny queue has match any too"),
    mistake("openconfig", "qos.json", "\"config\": {\"type\": \"IPV6\", \"name\": \"cloudburst-ipv6\"}", "\"config\": {\"type\": \"IPV6\", \"name\": \"cloudburst-ipv4\"}",
        "a classifier for IPV4, cloudburst-ipv4"),
    mistake("linux", "qos.sh", "tc qdisc add dev h2 root", "tc qdisc replace dev h1 root fq\ntc qdisc add dev h2 root",
        "the root of h1 is fq"),
    mistake("linux", "qos.sh", "match ip dsfield 0xac 0xfc flowid 1:10", "match u32 0 0 flowid 1:10",
        "does not match the DSCP alone"),
    mistake("linux", "qos.sh", "match ip dsfield 0xac 0xfc flowid 1:10", "match ip dsfield 0xac 0xfc match ip dport 53 0xffff flowid 1:10",
        "does not match the DSCP alone"),
    mistake("linux", "qos.sh", "rate 2500000000bit ceil 10000000000bit", "rate 2500000000bit ceil 2500000000bit",
        "ceil 2500000000; expected 10000000000"),
    mistake("linux", "qos.sh", "tso off", "tso on",
        "may join packets (tso)"),
    mistake("linux", "qos.sh", "gso off ", "",
        "may join packets (gso)"),
    mistake("linux", "ecmp.sh", "net.ipv6.fib_multipath_hash_policy=1", "net.ipv6.fib_multipath_hash_policy=0",
        "the ECMP hash of IPv6 has policy 0"),
    mistake("linux", "aeolus.sh", "red limit 12112", "red limit 1211200",
        "limit is 1211200 bytes"),
    // Selective dropping
    mistake("sonic", "aeolus.json", "\"ecn\": \"ecn_all\"", "\"ecn\": \"ecn_none\"",
        "selective dropping without ECN"),
    mistake("sonic", "aeolus.json", "\"green_drop_probability\": \"100\"", "\"green_drop_probability\": \"5\"",
        "selective dropping by chance"),
    mistake("sonic", "aeolus.json", "\"green_min_threshold\": \"6032\"", "\"green_min_threshold\": \"5200\"",
        "selective dropping from 5200"),
    mistake("sonic", "aeolus.json", "\"Ethernet4|5\": {\"scheduler\": \"cloudburst_tiny\", \"wred_profile\": \"CLOUDBURST\"}", "\"Ethernet4|5\": {\"scheduler\": \"cloudburst_tiny\"}",
        "Ethernet4 without selective dropping"),
    mistake("cumulus5", "aeolus.nv", "ecn enable", "ecn disable",
        "selective dropping without ECN"),
    mistake("os10", "aeolus.cfg", " random-detect ecn\n", "",
        "selective dropping without ECN"),
    mistake("os10", "aeolus.cfg", "  random-detect CLOUDBURST\n", "",
        "without selective dropping"),
    mistake("eos", "aeolus.cfg", "max-mark-probability 100", "max-mark-probability 10",
        "selective dropping by chance"),
    mistake("nxos", "aeolus.cfg", " weight 0 ecn", " weight 0",
        "selective dropping without ECN"),
    mistake("iosxe", "aeolus.cfg", "  random-detect ecn\n", "",
        "selective dropping without ECN"),
    mistake("iosxe", "aeolus.cfg", "random-detect dscp 43", "random-detect dscp 46",
        "CLOUDBURST-OUT has no selective dropping"),
    mistake("openconfig", "aeolus.json", "\"enable-ecn\": true", "\"enable-ecn\": false",
        "selective dropping without ECN"),
    mistake("linux", "aeolus.sh", " ecn\n", "\n",
        "selective dropping without ECN"),
    mistake("linux", "aeolus.sh", "min 6144 max 6145", "min 5500 max 6145",
        "selective dropping from 5500"),
];

/// The same for a spine with three DSCPs: 43, 45 and 47 in queues 5, 4 and 3.
#[rustfmt::skip]
const MISTAKES_OF_CLASSES: &[Mistake] = &[
    mistake("picos", "qos.cli", "set class-of-service scheduler cloudburst-wrr-2 buffer queue-limit 49\n", "",
        "queue 4 without limit"),
    mistake("picos", "qos.cli", "cloudburst-2 local-priority 4", "cloudburst-2 local-priority 5", "DSCP 45 goes to queue 5"),
    mistake("picos", "qos.cli", "cloudburst-wrr-3 weight 1", "cloudburst-wrr-3 weight 8", "share of the tiny queue is 8; expected 1"),
    mistake("picos", "qos.cli", "cloudburst-wrr mode \"WRR\"", "cloudburst-wrr mode \"SP\"", "strict priority"),
    mistake("picos", "qos.cli", "buffer queue-limit 49\n",
        "buffer queue-limit 49\nset class-of-service scheduler cloudburst-wrr-3 buffer shared enable\n", "borrows: buffer shared enable"),
    mistake("sonic", "qos.json", "\"45\": \"4\"", "\"45\": \"5\"", "DSCP 45 goes to queue 5 too"),
    mistake("sonic", "qos.json", "\"44\": \"0\"", "\"44\": \"3\"", "DSCP 44 goes to queue 3 too"),
    mistake("sonic", "qos.json", "\"Ethernet0|4\": {\"profile\"", "\"Ethernet0|6\": {\"profile\"", "Ethernet0 without a limit"),
    mistake("sonic", "qos.json", "\"cloudburst_tiny\": {\"type\": \"DWRR\", \"weight\": \"4\"}", "\"cloudburst_tiny\": {\"type\": \"STRICT\"}",
        "strict priority"),
    mistake("sonic", "qos.json", "\"Ethernet0\": {\"dscp_to_tc_map\"", "\"Ethernet0\": {\"pfc_enable\": \"3\", \"dscp_to_tc_map\"",
        "priority flow control for queue 3"),
    mistake("sonic", "aeolus.json", "\"Ethernet0|3\": {\"scheduler\": \"cloudburst_tiny-3\", \"wred_profile\": \"CLOUDBURST\"}",
        "\"Ethernet0|3\": {\"scheduler\": \"cloudburst_tiny-3\"}", "Ethernet0 without selective dropping"),
    mistake("cumulus4", "qos.traffic.conf", "dscp = [43,45,47]", "dscp = [43,45]", "does not map DSCP 47"),
    mistake("cumulus5", "qos.nv", "traffic-class 3 bw-percent 7", "traffic-class 3 bw-percent 30", "share of the tiny queue is 30; expected 7"),
    mistake("cumulus5", "qos.nv", "traffic-class 5 mode dwrr", "traffic-class 5 mode strict", "strict priority"),
    mistake("cumulus5", "qos.nv", "traffic-class 4 shared-bytes 10192", "traffic-class 4 shared-alpha alpha_1", "a share of the free buffer"),
    mistake("cumulus5", "aeolus.nv", "traffic-class 4 ecn enable", "traffic-class 4 ecn disable", "selective dropping without ECN"),
    mistake("os10", "qos.cfg", "  bandwidth percent 29\n", "  priority\n", "strict priority"),
    mistake("os10", "qos.cfg", " class CLOUDBURST-2\n", " class CLOUDBURST-9\n", "queue 4 without limit"),
    mistake("eos", "qos.cfg", "egress unicast queue 4 threshold 1/64", "egress unicast queue 4 threshold 8", "the tiny queue has a threshold of 8"),
    mistake("eos", "qos.cfg", "qos map dscp 47 to traffic-class 3\n", "", "DSCP 47 goes to queue"),
    mistake("nxos", "qos.cfg", "  class CLOUDBURST-2\n    set qos-group 4", "  class CLOUDBURST-2\n    set qos-group 5", "DSCP 45 goes to queue 5 too"),
    mistake("nxos", "qos.cfg", "    bandwidth remaining percent 29\n", "    priority level 1\n", "strict priority"),
    mistake("nxos", "qos.cfg", "    bandwidth remaining percent 50\n", "    bandwidth remaining percent 30\n",
        "share of the default queue is 30; expected 50"),
    mistake("iosxe", "qos.cfg", "class-map match-any CLOUDBURST-2\n match dscp 45", "class-map match-any CLOUDBURST-2\n match dscp 47",
        "does not map DSCP 45"),
    mistake("iosxe", "qos.cfg", "  bandwidth percent 14\n", "  priority level 2\n", "strict priority"),
    mistake("iosxe", "qos.native.json", "{\"percent\": 7}", "{\"percent\": 70}", "share of the tiny queue is 70; expected 7"),
    mistake("openconfig", "qos.json", "\"queue\": \"cloudburst-2\", \"weight\": \"2\"", "\"queue\": \"cloudburst-2\", \"weight\": \"20\"",
        "share of the tiny queue is 20; expected 2"),
    mistake("openconfig", "qos.json", "\"name\": \"cloudburst-3\", \"dedicated-buffer\": \"10192\", \"use-shared-buffer\": false",
        "\"name\": \"cloudburst-3\", \"dedicated-buffer\": \"10192\", \"use-shared-buffer\": true", "borrows: use-shared-buffer is true"),
    mistake("linux", "qos.sh", "1:12 htb prio 1", "1:12 htb prio 0", "two tiny queues have prio 0"),
    mistake("linux", "qos.sh", "1:11 htb prio 0", "1:11 htb prio 3", "DSCP 43 goes to queue 3"),
    mistake("linux", "qos.sh", "1:13 htb prio 2 rate 8000bit", "1:13 htb prio 2 rate 5000000000bit", "rate 5000000000; expected 8000"),
    mistake("linux", "qos.sh", "1:12 htb prio 1 rate 8000bit ceil 10000000000bit", "1:12 htb prio 1 rate 8000bit ceil 100000000bit",
        "ceil 100000000; expected 10000000000"),
    mistake("linux", "qos.sh", "1:10 htb rate 5000000000bit", "1:10 htb rate 9000000000bit", "rate 9000000000; expected 5000000000"),
    mistake("linux", "qos.sh", "parent 1:12 handle 12: bfifo limit 10192", "parent 1:12 handle 12: bfifo limit 101920", "limit is 101920 bytes"),
    mistake("linux", "qos.sh", "0xb4 0xfc flowid 1:12", "0xb4 0xfc flowid 1:11", "DSCP 45 goes to queue 5 too"),
    mistake("linux", "qos.sh", "parent 1:10 classid 1:13", "parent 1:1 classid 1:13", "2 classes in the share of the tiny queues; expected 3"),
    mistake("linux", "aeolus.sh", "parent 1:12 handle 32: red limit 10192 min 6144 max 6145",
        "parent 1:12 handle 32: red limit 10192 min 6144 max 9000", "selective dropping from 6144 to 9000"),
];

/// Checks a switch with one mistake, and returns the findings.
fn printed(mistake: &Mistake, parameters: &str) -> (Ended, String) {
    let rendered = Rendered::of(parameters);
    let platform = mistake.platform;
    let file = mistake.file;
    let text = fs::read_to_string(rendered.path(file)).unwrap();
    assert!(text.contains(mistake.from), "{platform} {file} has no {:?}:\n{text}", mistake.from);
    fs::write(rendered.path(file), text.replacen(mistake.from, mistake.to, 1)).unwrap();
    let files = rendered.files().into_iter().map(|(name, _)| name);
    let files: Vec<_> = files.map(|name| rendered.path(&name)).collect();
    let ended = rendered.check_files(&files);
    let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
    (ended, printed)
}

#[test]
fn every_mistake_is_reported() {
    assert_caught(MISTAKES, |platform| platform.leaf(1));
}

#[test]
fn every_mistake_with_several_classes_is_reported() {
    assert_caught(MISTAKES_OF_CLASSES, Platform::classes);
}

fn assert_caught(mistakes: &[Mistake], parameters: fn(&Platform) -> String) {
    let mut missed = Vec::new();
    for mistake in mistakes {
        let (ended, printed) = printed(mistake, &parameters(find(mistake.platform)));
        let is_caught = printed.lines().any(|line| line.contains(mistake.finding));
        if ended.code != Some(1) || !is_caught {
            missed.push(format!(
                "{} {}: {:?} for {:?} should say {:?}, not:\n{printed}{}",
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

#[test]
fn a_finding_has_the_line_the_cause_and_the_remedy() {
    let mistake = MISTAKES.iter().find(|mistake| mistake.finding.contains("dynamic 3")).unwrap();
    let (_, printed) = printed(mistake, &find(mistake.platform).leaf(1));
    let line = printed.lines().next().unwrap();
    assert!(
        line.contains(
            "qos.cfg:22: the tiny queue's limit is dynamic 3; expected 13312 bytes: set it"
        ),
        "{line}"
    );
}
