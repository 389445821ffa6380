//! Hosts as network namespaces of this machine, with agents as threads of this process.

use super::{Faults, Network, QueueCounters, Site};
use crate::Failure;
use crate::agent::{Agent, Answer, Command};
use crate::transport::{Listening, Peer};
use cloudburst_testbed::{Error, Fabric, Link, Node, Target, Topology};
use core::fmt;
use core::time::Duration;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

pub(crate) struct Local {
    pub(super) fabric: Fabric,
    agents: Vec<Agent>,
    min_rto: Duration,
}

impl Local {
    /// Builds a fabric and configures its hosts as an operator would, with `min_rto` as the minimum
    /// retransmission timeout of TCP. Also returns the settings that could not be made.
    pub(crate) fn up(
        topology: &Topology,
        min_rto: Duration,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<(Site, Vec<String>), Failure> {
        let fabric = Fabric::up_unless(topology, interrupted)?;
        let mut lacks = Vec::new();
        let mut hosts = Vec::new();
        for index in 1..=topology.hosts {
            let host = fabric.host(index)?;
            let path_addresses = host.path_addresses().into_iter().map(Into::into).collect();
            let listening = Listening::default();
            hosts.push(Peer { address: host.v4().into(), path_addresses, listening });
            for lack in set_up(&fabric, index, min_rto)? {
                if !lacks.contains(&lack) {
                    lacks.push(lack);
                }
            }
        }
        let racks = (1..=topology.hosts).map(|host| topology.leaf_of(host)).collect();
        let agents = hosts.iter().map(|_| Agent::new(interrupted.clone())).collect();
        let link_rate = topology.rate;
        let dscp = topology.dscp;
        let low_dscps = topology.low_dscps.clone();
        let network = Network::Local(Box::new(Self { fabric, agents, min_rto }));
        Ok((Site { hosts, racks, link_rate, dscp, low_dscps, network }, lacks))
    }

    pub(super) fn send_commands(&self, commands: Vec<Command>) -> Vec<Result<Answer, Failure>> {
        thread::scope(|scope| {
            let tell = |((host, agent), command)| {
                scope.spawn(move || {
                    let host = self.fabric.host(host)?;
                    Ok(host.run(|| Agent::handle(agent, command))?)
                })
            };
            let running: Vec<_> = (1..).zip(&self.agents).zip(commands).map(tell).collect();
            let joined = running.into_iter().map(|thread| thread.join());
            joined
                .map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    pub(super) fn set_faults(&self, faults: Faults) -> Result<(), Failure> {
        let topology = self.fabric.topology();
        self.fabric.heal(None)?;
        for spine in 1..=faults.dead.min(topology.spines) {
            let how = cloudburst_testbed::Failure::Silent;
            self.fabric.fail(Target::Node(Node::Spine(spine)), how)?;
        }
        let loss = self.fabric.faults()?.loss;
        for link in topology.links().into_iter().filter(|link| matches!(link.upper, Node::Spine(_)))
        {
            let link: Link = link;
            if loss.get(&link).copied().unwrap_or(0.0) != faults.loss {
                self.fabric.loss(link, faults.loss)?;
            }
        }
        Ok(())
    }

    pub(super) fn counters(&self) -> Result<QueueCounters, Failure> {
        let mut sum = QueueCounters::default();
        for port in self.fabric.ports()? {
            if !matches!(port.node, Node::Host(_)) {
                for tiny in port.low.iter().chain([&port.tiny]) {
                    sum.tiny_sent += tiny.sent;
                    sum.tiny_dropped += tiny.dropped;
                }
                sum.default_sent += port.default.sent;
                sum.default_dropped += port.default.dropped;
            }
        }
        Ok(sum)
    }
}

/// Configures a host as an operator of TCP would: short timeouts, windows that stay open, no metrics
/// kept from trial to trial, and the addresses of MPTCP's further subflows.
fn set_up(fabric: &Fabric, index: u16, min_rto: Duration) -> Result<Vec<String>, Failure> {
    let host = fabric.host(index)?;
    let settings = [
        // The default of 200 ms would decide each tail.
        ("tcp_rto_min_us", min_rto.as_micros()),
        ("tcp_slow_start_after_idle", 0),
        ("tcp_no_metrics_save", 1),
    ];
    // quinn cannot set a DSCP. Cloudburst sets its own, and nothing else sends UDP.
    let dscp = fabric.topology().dscp;
    let rules = format!(
        "table ip eval {{ chain out {{ type filter hook output priority mangle; \
         ip protocol udp ip dscp cs0 ip dscp set {dscp}; }}; }}"
    );
    let port = host.leaf().to_string();
    let subflows = host.path_addresses();
    let mut mptcp = format!("mptcp limits set subflows {} add_addr_accepted 0\n", subflows.len());
    for path in subflows {
        mptcp += &format!("mptcp endpoint add {path} dev {port} subflow\n");
    }
    let mut lacks = Vec::new();
    for (key, value) in settings {
        let path = format!("/proc/sys/net/ipv4/{key}");
        if let Err(why) = host.run(|| fs::write(&path, value.to_string()))? {
            lacks.push(format!("net.ipv4.{key} could not be set to {value}: {why}."));
        }
    }
    // The same for all hosts, so without the place.
    let why = |error| match error {
        Error::Tool { said, .. } => said,
        other => other.to_string(),
    };
    if let Err(error) = host.namespace().run_tool("nft", &["-f", "-"], &rules) {
        let why = why(error);
        lacks.push(format!("Packets of QUIC have no DSCP, and use the default queue: {why}."));
    }
    if let Err(error) = host.namespace().run_tool("ip", &["-batch", "-"], &mptcp) {
        lacks.push(format!("MPTCP lacks subflows: {}.", why(error)));
    }
    Ok(lacks)
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = self.fabric.topology();
        write!(
            f,
            "{} hosts, {} leaves and {} spines as network namespaces; {} Mb/s to a host, {} Mb/s \
             between leaf and spine; {} packets in a tiny queue, {} in a default queue; minimum \
             TCP RTO {} ms",
            topology.hosts,
            topology.leaves,
            topology.spines,
            topology.rate as f64 / 1e6,
            topology.uplink_rate() as f64 / 1e6,
            topology.tiny_packets,
            topology.default_packets,
            self.min_rto.as_millis(),
        )
    }
}
