//! The counters of ports, parsed from `tc -j` and `nft -j`.

use crate::Error;
use crate::emulated::Counts;
use crate::plan;
use crate::topology::Node;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A port: the end at `node` of its link to `neighbour`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    /// The node that has the port.
    pub node: Node,
    /// The node at the other end of the link.
    pub neighbour: Node,
    /// The egress queue of packets with the fabric's DSCP.
    pub tiny: Queue,
    /// The egress queues of packets with [`Topology::low_dscps`](crate::Topology::low_dscps), in
    /// that order.
    pub low: Vec<Queue>,
    /// The egress queue of all other packets.
    pub default: Queue,
    /// Ingress packets that the link has lost at random.
    pub lost: u64,
    /// Ingress packets dropped by a black hole.
    pub failed: u64,
}

/// A queue's counters since the fabric was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Capacity in packets.
    pub limit: u64,
    /// Packets that have left it.
    pub sent: u64,
    /// Their bytes, Ethernet headers included.
    pub bytes: u64,
    /// Packets dropped because it was full.
    pub dropped: u64,
    /// Packets dropped because they are not ECN-capable ([`Topology::selective`](crate::Topology::selective)).
    pub dropped_selectively: u64,
    /// Packets trimmed because it was full ([`Topology::trim`](crate::Topology::trim)).
    pub trimmed: u64,
    /// Packets in it now.
    pub backlog: u64,
    /// Their bytes; for an emulated queue, only those that wait in the kernel.
    pub backlog_bytes: u64,
}

impl Queue {
    /// Adds the counters of the emulated queue in front of it, whose limit is that of both.
    pub(crate) const fn emulated(&mut self, limit: u64, counts: Counts) {
        self.limit = limit;
        self.dropped += counts.dropped;
        self.dropped_selectively = counts.dropped_selectively;
        self.trimmed = counts.trimmed;
        self.backlog += counts.backlog;
    }
}

#[derive(Deserialize)]
struct Qdisc {
    handle: String,
    dev: String,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    packets: u64,
    #[serde(default)]
    drops: u64,
    #[serde(default)]
    qlen: u64,
    #[serde(default)]
    backlog: u64,
}

#[derive(Default, Deserialize)]
struct Options {
    #[serde(default)]
    limit: u64,
}

/// Returns the ports of `node`, in the order of `neighbours`, with `low` further tiny queues, from
/// the output of `tc -j -s qdisc show` and `nft -j list counters`.
pub(crate) fn parse(
    node: Node,
    neighbours: &[Node],
    low: usize,
    qdiscs: &str,
    counters: &str,
    place: &str,
) -> Result<Vec<Port>, Error> {
    let wrong = |tool, said: String| Error::Output { tool, place: place.into(), said };
    let qdiscs: Vec<Value> =
        serde_json::from_str(qdiscs).map_err(|error| wrong("tc", error.to_string()))?;
    // The qdiscs of `lo` have another format.
    let qdiscs: Vec<Qdisc> =
        qdiscs.into_iter().filter_map(|qdisc| serde_json::from_value(qdisc).ok()).collect();
    let counters: Value =
        serde_json::from_str(counters).map_err(|error| wrong("nft", error.to_string()))?;
    let port = |&neighbour: &Node| {
        let name = neighbour.to_string();
        let queue = |handle: &str| {
            let found = qdiscs.iter().find(|qdisc| qdisc.dev == name && qdisc.handle == handle);
            let qdisc = found.ok_or_else(|| wrong("tc", format!("no queue {handle} on {name}")))?;
            Ok(Queue {
                limit: qdisc.options.limit,
                sent: qdisc.packets,
                bytes: qdisc.bytes,
                dropped: qdisc.drops,
                dropped_selectively: 0,
                trimmed: 0,
                backlog: qdisc.qlen,
                backlog_bytes: qdisc.backlog,
            })
        };
        let counter = |kind: &str| {
            let name = format!("{kind}_{name}");
            let all = counters["nftables"].as_array().into_iter().flatten();
            let mut packets = all
                .filter(|entry| entry["counter"]["name"] == *name)
                .filter_map(|entry| entry["counter"]["packets"].as_u64());
            packets.next().ok_or_else(|| wrong("nft", format!("no counter {name}")))
        };
        Ok(Port {
            node,
            neighbour,
            tiny: queue(plan::TINY)?,
            low: (0..low).map(|place| queue(&plan::low(place))).collect::<Result<_, _>>()?,
            default: queue(plan::DEFAULT)?,
            lost: counter("lost")?,
            failed: counter("failed")?,
        })
    };
    neighbours.iter().map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QDISCS: &str = r#"[
      {"kind":"noqueue","handle":"0:","dev":"lo","root":true,"options":{}},
      {"kind":"htb","handle":"1:","dev":"s1","root":true,"options":{"default":"0x20"},"packets":7},
      {"kind":"pfifo","handle":"11:","dev":"s1","parent":"1:10","options":{"limit":8},
       "bytes":3028,"packets":2,"drops":5,"overlimits":0,"requeues":0,"backlog":1514,"qlen":1},
      {"kind":"pfifo","handle":"21:","dev":"s1","parent":"1:20","options":{"limit":256}}]"#;
    const COUNTERS: &str = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}},
      {"counter": {"family":"netdev","name":"lost_s1","table":"cbrst","packets":3,"bytes":9}},
      {"counter": {"family":"netdev","name":"failed_s1","table":"cbrst","packets":4,"bytes":9}}]}"#;

    #[test]
    fn the_output_of_tc_and_nft_is_parsed() {
        let leaf = Node::Leaf(1);
        let spine = Node::Spine(1);
        let ports = parse(leaf, &[spine], 0, QDISCS, COUNTERS, "x-l1").unwrap();
        let tiny = Queue {
            limit: 8,
            sent: 2,
            bytes: 3028,
            dropped: 5,
            backlog: 1,
            backlog_bytes: 1514,
            ..Queue::default()
        };
        assert_eq!((ports[0].tiny, ports[0].default.limit), (tiny, 256));
        assert_eq!((ports[0].lost, ports[0].failed), (3, 4));
    }

    #[test]
    fn the_error_names_a_missing_port() {
        let error =
            parse(Node::Leaf(1), &[Node::Spine(2)], 0, QDISCS, COUNTERS, "x-l1").unwrap_err();
        assert_eq!(error.to_string(), "unexpected output of tc in x-l1: no queue 11: on s2");
    }
}
