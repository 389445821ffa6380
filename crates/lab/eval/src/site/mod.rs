//! Sites of an evaluation: hosts with agents, and the network between them.

mod cluster;
mod local;

pub(crate) use cluster::{Cluster, serve};
pub(crate) use local::Local;

use crate::Failure;
use crate::agent::{Answer, Command};
use crate::transport::Peer;
use cloudburst_testbed::Queues;
use core::fmt;
use core::time::Duration;

/// The DSCPs of the classes after the first, in namespaces. A cluster has at most as many.
pub(crate) const LOW_DSCPS: [u8; 3] = [45, 47, 49];

/// Hosts with agents.
pub(crate) struct Site {
    pub(crate) hosts: Vec<Peer>,
    /// The rack of each host: background flows go from the first rack to others.
    pub(crate) racks: Vec<u16>,
    /// The rate of a host's link, in bits per second.
    pub(crate) link_rate: u64,
    /// The DSCP of short messages.
    pub(crate) dscp: u8,
    /// The DSCPs of Cloudburst's classes after the first, the most urgent one first. The last DSCP is
    /// that of all further classes. If empty, all classes have the DSCP of the first.
    pub(crate) low_dscps: Vec<u8>,
    pub(crate) network: Network,
}

/// The network, by which agents and switches are reached.
pub(crate) enum Network {
    /// Namespaces on this machine. Switches can be changed, and their counters read.
    Local(Box<Local>),
    /// A real network, which is left as it is.
    Cluster(Cluster),
}

/// Injected faults of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Faults {
    /// The number of spines that silently drop all packets.
    pub(crate) dead: u16,
    /// The percentage of packets that each link between leaf and spine loses, in each direction.
    pub(crate) loss: f64,
}

/// The packet counters of the switches' queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueCounters {
    pub(crate) tiny_sent: u64,
    pub(crate) tiny_dropped: u64,
    pub(crate) default_sent: u64,
    pub(crate) default_dropped: u64,
}

impl Site {
    /// Sends each agent a command at the same time. Returns their answers once all have answered.
    ///
    /// # Errors
    ///
    /// The first agent that failed, and its error.
    pub(crate) fn send_commands(
        &self,
        commands: Vec<Command>,
        within: Duration,
    ) -> Result<Vec<Answer>, Failure> {
        let answers = match &self.network {
            Network::Local(local) => local.send_commands(commands),
            Network::Cluster(cluster) => cluster.send_commands(commands, within),
        };
        let sound = |(answer, host): (Result<Answer, Failure>, &Peer)| match answer? {
            Answer::Failed(reason) => {
                Err(Failure::Trial { host: host.address.to_string(), reason })
            }
            answer => Ok(answer),
        };
        answers.into_iter().zip(&self.hosts).map(sound).collect()
    }

    /// Changes the switches' queues in namespaces. Does nothing on a real network.
    pub(crate) fn set_queues(&mut self, queues: Queues) -> Result<(), Failure> {
        match &mut self.network {
            Network::Local(local) => Ok(local.fabric.set_queues(queues)?),
            Network::Cluster(_) => Ok(()),
        }
    }

    /// Injects these faults, and heals all others.
    pub(crate) fn set_faults(&self, faults: Faults) -> Result<(), Failure> {
        match &self.network {
            Network::Local(local) => local.set_faults(faults),
            Network::Cluster(_) if faults == Faults::default() => Ok(()),
            Network::Cluster(_) => {
                Err(Failure::Usage("faults can be injected only in namespaces".into()))
            }
        }
    }

    /// The counters of the switches so far; zeros on a real network.
    pub(crate) fn counters(&self) -> Result<QueueCounters, Failure> {
        match &self.network {
            Network::Local(local) => local.counters(),
            Network::Cluster(_) => Ok(QueueCounters::default()),
        }
    }

    /// How far ahead a workload must begin for all agents to receive it in time.
    pub(crate) const fn lead(&self) -> Duration {
        match &self.network {
            Network::Local(_) => Duration::from_millis(300),
            Network::Cluster(_) => Duration::from_secs(2),
        }
    }

    /// The hosts of the first host's rack, and all others.
    pub(crate) fn sides(&self) -> (Vec<u16>, Vec<u16>) {
        let first = self.racks.first().copied().unwrap_or_default();
        let hosts = (1..).zip(&self.racks);
        let (one, other): (Vec<_>, Vec<_>) = hosts.partition(|(_, rack)| **rack == first);
        let numbers = |side: Vec<(u16, &u16)>| side.into_iter().map(|(host, _)| host).collect();
        (numbers(one), numbers(other))
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.network {
            Network::Local(local) => local.fmt(f),
            Network::Cluster(_) => {
                let addresses: Vec<_> =
                    self.hosts.iter().map(|host| host.address.to_string()).collect();
                let megabits = self.link_rate as f64 / 1e6;
                write!(f, "agents at {}, {megabits} Mb/s each", addresses.join(", "))
            }
        }
    }
}

impl core::ops::Sub for QueueCounters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            tiny_sent: self.tiny_sent.saturating_sub(before.tiny_sent),
            tiny_dropped: self.tiny_dropped.saturating_sub(before.tiny_dropped),
            default_sent: self.default_sent.saturating_sub(before.default_sent),
            default_dropped: self.default_dropped.saturating_sub(before.default_dropped),
        }
    }
}
