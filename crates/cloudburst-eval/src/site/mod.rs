//! Where an evaluation runs: hosts with agents, and what can be done to the network between them.

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

/// The DSCPs of the classes beyond the first, in namespaces; a cluster has at most as many.
pub(crate) const LOW_DSCPS: [u8; 3] = [45, 47, 49];

/// Hosts with agents.
pub(crate) struct Site {
    pub(crate) hosts: Vec<Peer>,
    /// The rack of each host: background flows go from the first rack to others.
    pub(crate) racks: Vec<u16>,
    /// Bits a second of a host's link.
    pub(crate) link_rate: u64,
    /// Of short messages.
    pub(crate) dscp: u8,
    /// The DSCPs of Cloudburst's later classes, the more urgent ones first; the last is that of all
    /// further classes. Empty if they have that of the first.
    pub(crate) low_dscps: Vec<u8>,
    pub(crate) network: Network,
}

/// Who reaches the agents, and the switches.
pub(crate) enum Network {
    /// Namespaces on this machine: everything can be changed and counted.
    Local(Local),
    /// A real one, which is as it is.
    Cluster(Cluster),
}

/// What is wrong with a network, on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Faults {
    /// Spines that swallow everything.
    pub(crate) dead: u16,
    /// Percent of the packets that each link between leaf and spine loses, each way.
    pub(crate) loss: f64,
}

/// What switches have counted: packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueCounters {
    pub(crate) tiny_sent: u64,
    pub(crate) tiny_dropped: u64,
    pub(crate) default_sent: u64,
    pub(crate) default_dropped: u64,
}

impl Site {
    /// Gives each agent a command at the same time; their answers, once all have answered. What an
    /// agent could not do is a failure.
    ///
    /// # Errors
    ///
    /// Names the first agent that failed, and what it says.
    pub(crate) fn tell(
        &self,
        commands: Vec<Command>,
        within: Duration,
    ) -> Result<Vec<Answer>, Failure> {
        let answers = match &self.network {
            Network::Local(local) => local.tell(commands),
            Network::Cluster(cluster) => cluster.tell(commands, within),
        };
        let sound = |(answer, host): (Result<Answer, Failure>, &Peer)| match answer? {
            Answer::Failed(reason) => {
                Err(Failure::Trial { host: host.address.to_string(), reason })
            }
            answer => Ok(answer),
        };
        answers.into_iter().zip(&self.hosts).map(sound).collect()
    }

    /// Changes the switches' queues; nothing on a network that is as it is.
    pub(crate) fn set_queues(&mut self, queues: Queues) -> Result<(), Failure> {
        match &mut self.network {
            Network::Local(local) => Ok(local.fabric.set_queues(queues)?),
            Network::Cluster(_) => Ok(()),
        }
    }

    /// Breaks what is to be broken, and heals everything else.
    pub(crate) fn set_faults(&self, faults: Faults) -> Result<(), Failure> {
        match &self.network {
            Network::Local(local) => local.set_faults(faults),
            Network::Cluster(_) if faults == Faults::default() => Ok(()),
            Network::Cluster(_) => {
                Err(Failure::Usage("a real network is not broken by this program".into()))
            }
        }
    }

    /// What the switches have counted by now; zeros where nobody can know.
    pub(crate) fn counters(&self) -> Result<QueueCounters, Failure> {
        match &self.network {
            Network::Local(local) => local.counters(),
            Network::Cluster(_) => Ok(QueueCounters::default()),
        }
    }

    /// From the last command until everybody begins.
    pub(crate) const fn lead(&self) -> Duration {
        match &self.network {
            Network::Local(_) => Duration::from_millis(300),
            Network::Cluster(_) => Duration::from_secs(2),
        }
    }

    /// Hosts of the first rack, and all others.
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
