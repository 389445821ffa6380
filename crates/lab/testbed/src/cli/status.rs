//! A fabric as tables and as JSON.

use crate::Error;
use crate::counters::{Port, Queue};
use crate::fabric::{Fabric, Faults};
use crate::state::Failure;
use crate::topology::{Node, Topology, Trim};
use core::fmt;
use serde::Serialize;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The output of `status --json`.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    name: String,
    topology: Topology,
    hosts: Vec<HostStatus>,
    switches: Vec<SwitchStatus>,
    /// Whether IP-in-IP is decapsulated, and emulated queues forward packets.
    forwarding: bool,
    #[serde(flatten)]
    faults: Faults,
    ports: Vec<Port>,
}

#[derive(Debug, Serialize)]
struct HostStatus {
    node: Node,
    leaf: Node,
    namespace: String,
    v4: Ipv4Addr,
    v6: Ipv6Addr,
    /// XPath: one address per path ID.
    paths: Vec<Ipv4Addr>,
    paths_v6: Vec<Ipv6Addr>,
}

#[derive(Debug, Serialize)]
struct SwitchStatus {
    node: Node,
    namespace: String,
    v4: Ipv4Addr,
    v6: Ipv6Addr,
}

impl Status {
    pub(super) fn of(fabric: &Fabric) -> Result<Self, Error> {
        let topology = fabric.topology();
        let host = |index| {
            let host = fabric.host(index)?;
            Ok(HostStatus {
                node: Node::Host(index),
                leaf: host.leaf(),
                namespace: host.namespace().name().into(),
                v4: host.v4(),
                v6: host.v6(),
                paths: host.path_addresses(),
                paths_v6: host.path_addresses_v6(),
            })
        };
        let switch = |node| {
            let (v4, v6) = fabric.addresses(node)?;
            Ok(SwitchStatus { node, namespace: fabric.namespace(node)?.name().into(), v4, v6 })
        };
        let switches = topology.nodes().filter(|node| !matches!(node, Node::Host(_)));
        Ok(Self {
            name: fabric.name().into(),
            topology: topology.clone(),
            hosts: (1..=topology.hosts).map(host).collect::<Result<_, Error>>()?,
            switches: switches.map(switch).collect::<Result<_, Error>>()?,
            forwarding: fabric.is_forwarding()?,
            faults: fabric.faults()?,
            ports: fabric.ports()?,
        })
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("all keys are strings, and no number is NaN")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = &self.topology;
        writeln!(
            f,
            "{}: {} hosts at {}, {} leaves, {} spines at {}; over-subscription {:.2}; DSCP {}; \
             weights {}:{}\n",
            self.name,
            topology.hosts,
            rate(topology.rate),
            topology.leaves,
            topology.spines,
            rate(topology.uplink_rate()),
            topology.over_subscription(),
            topology.dscp,
            topology.weights.tiny,
            topology.weights.default,
        )?;
        let mut hosts = Table::new(&["node", "leaf", "namespace", "IPv4", "IPv6", "XPath"]);
        for host in &self.hosts {
            let paths = match &host.paths[..] {
                [] => String::new(),
                [only] => only.to_string(),
                [first, .., last] => format!("{first} ... {last}"),
            };
            let leaf = host.leaf.to_string();
            let namespace = host.namespace.clone();
            let v4 = host.v4.to_string();
            let v6 = host.v6.to_string();
            hosts.row([host.node.to_string(), leaf, namespace, v4, v6, paths]);
        }
        for switch in &self.switches {
            let v4 = switch.v4.to_string();
            let v6 = switch.v6.to_string();
            let node = switch.node.to_string();
            hosts.row([node, "".into(), switch.namespace.clone(), v4, v6, "".into()]);
        }
        writeln!(f, "{hosts}")?;
        if let Some(Trim { bytes, dscp }) = topology.trim {
            writeln!(f, "tiny queues of switches trim to {bytes} bytes, with DSCP {dscp}\n")?;
        }
        if let Some(bytes) = topology.selective {
            writeln!(f, "tiny queues of switches drop Not-ECT packets at {bytes} bytes or more\n")?;
        }
        if !self.forwarding {
            let queues =
                if topology.is_emulated() { ", nor serves tiny queues of switches" } else { "" };
            writeln!(
                f,
                "nothing decapsulates IP-in-IP{queues}: its process is gone, and `up` starts \
                 another\n"
            )?;
        }
        for (target, how) in &self.faults.failed {
            let how = match how {
                Failure::Silent => "fails silently",
                Failure::Down => "is down",
            };
            writeln!(f, "{target} {how}")?;
        }
        for (link, percent) in &self.faults.loss {
            writeln!(f, "{link} loses {percent} %")?;
        }
        if !self.faults.failed.is_empty() || !self.faults.loss.is_empty() {
            writeln!(f)?;
        }
        let mut ports = Table::new(&[
            "port",
            "queue",
            "sent",
            "bytes",
            "dropped",
            "selective",
            "trimmed",
            "backlog",
            "limit",
            "lost in",
            "failed in",
        ]);
        for port in &self.ports {
            let mut row = |name: String, queue: &str, q: &Queue, lost: String, failed: String| {
                let numbers = [
                    q.sent,
                    q.bytes,
                    q.dropped,
                    q.dropped_selectively,
                    q.trimmed,
                    q.backlog,
                    q.limit,
                ];
                let [sent, bytes, dropped, selective, trimmed, backlog, limit] =
                    numbers.map(|n| n.to_string());
                ports.row([
                    name,
                    queue.to_string(),
                    sent,
                    bytes,
                    dropped,
                    selective,
                    trimmed,
                    backlog,
                    limit,
                    lost,
                    failed,
                ]);
            };
            let name = format!("{}>{}", port.node, port.neighbour);
            row(name, "tiny", &port.tiny, port.lost.to_string(), port.failed.to_string());
            for low in &port.low {
                row(String::new(), "low", low, String::new(), String::new());
            }
            row(String::new(), "default", &port.default, String::new(), String::new());
        }
        write!(f, "{ports}")
    }
}

fn rate(bits: u64) -> String {
    match bits {
        1_000_000_000.. => format!("{} Gb/s", bits as f64 / 1e9),
        _ => format!("{} Mb/s", bits as f64 / 1e6),
    }
}

/// Columns as wide as their contents; numbers are right-aligned.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|name| name.to_string()).collect()] }
    }

    fn row<const N: usize>(&mut self, row: [String; N]) {
        self.rows.push(row.into());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = 0..self.rows[0].len();
        let cells = |column: usize| self.rows.iter().map(move |row| row[column].as_str());
        let is_number = |cell: &str| cell.chars().all(|c| c.is_ascii_digit());
        let shapes: Vec<_> = columns
            .map(|column| {
                let width = cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
                (width, cells(column).skip(1).all(is_number))
            })
            .collect();
        for row in &self.rows {
            let cells = row.iter().zip(&shapes).map(|(cell, &(width, numbers))| {
                if numbers { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}
