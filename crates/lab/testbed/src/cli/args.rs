//! The command line.

use crate::topology::{Link, Node, Target, Topology, Trim, Weights};
use clap::{Args, Parser, Subcommand};
use core::str::FromStr;
use std::ffi::OsString;

const HELP: &str = "\
Hosts are h1, h2, ...; leaves l1, l2, ...; spines s1, s2, ... Each is a network namespace, NAME-h1
and so on, which `ip netns` lists. A link is named by its ends: h1-l1, l1-s3.

Everything except --help needs root, iproute2, nftables, ethtool and nsenter.

Exit codes:
  0    success; for exec, the exit code of the command
  1    failure, reported on standard error; `up` has taken down what it had built
  2    the command line is invalid, or names something that does not exist
  130  stopped by Ctrl-C, SIGTERM or SIGHUP; `up` has taken down what it had built

Examples:
  cbrst-testbed up
  mkdir inbox
  cbrst-testbed exec h5 -- cbrst-recv --out inbox
  cbrst-testbed fail s2
  cbrst-testbed status
  cbrst-testbed down";

/// A leaf-spine fabric of network namespaces: hosts, leaves, spines, and small queues between them
#[derive(Debug, Parser)]
#[command(name = "cbrst-testbed", version, after_help = HELP)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Build a fabric that stays until `down`. Does nothing if it is already up with the same
    /// parameters
    Up(Box<Up>),

    /// Take a fabric down. Does nothing if there is none
    Down {
        #[command(flatten)]
        fabric: Name,
    },

    /// Show hosts, addresses, faults, and the queue counters of each port
    Status {
        /// Print one JSON object instead of tables
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        fabric: Name,
    },

    /// Make a node or a link drop every packet silently
    Fail {
        /// s2, spine:2, l1-s3, link:leaf1-spine3, ...
        #[arg(value_name = "WHAT")]
        target: Target,

        /// Take its links down instead, so that both ends notice
        #[arg(long)]
        down: bool,

        #[command(flatten)]
        fabric: Name,
    },

    /// End a failure
    Heal {
        /// The target of `fail` [default: everything that has failed]
        #[arg(value_name = "WHAT")]
        target: Option<Target>,

        #[command(flatten)]
        fabric: Name,
    },

    /// Make a link lose packets at random, in each direction
    Loss {
        /// h1-l1, l1-s3, ...
        #[arg(value_name = "LINK")]
        link: Link,

        /// 0 to 100, in steps of 0.001
        #[arg(value_name = "PERCENT")]
        percent: Percent,

        #[command(flatten)]
        fabric: Name,
    },

    /// Run a command in the namespace of a host or switch, replacing this process
    Exec {
        #[command(flatten)]
        fabric: Name,

        /// h1, l1, s1, ...
        #[arg(value_name = "NODE")]
        node: Node,

        /// The command and its arguments, after --
        #[arg(value_name = "COMMAND", required = true, last = true)]
        command: Vec<OsString>,
    },

    /// Forward the packets that the kernel does not, until the fabric is down; `up` starts it
    #[command(hide = true)]
    Forward {
        #[command(flatten)]
        fabric: Name,
    },
}

/// The fabric.
#[derive(Args, Debug)]
pub(super) struct Name {
    /// Name of the fabric, and prefix of its namespaces: lower-case letters and digits
    #[arg(long, value_name = "NAME", default_value = "cbrst")]
    pub(super) name: String,
}

#[derive(Args, Debug)]
pub(super) struct Up {
    /// Hosts, spread over the leaves
    #[arg(long, value_name = "N", default_value_t = Topology::default().hosts)]
    hosts: u16,

    /// Leaf switches
    #[arg(long, value_name = "N", default_value_t = Topology::default().leaves)]
    leaves: u16,

    /// Spine switches, each linked to every leaf
    #[arg(long, value_name = "N", default_value_t = Topology::default().spines)]
    spines: u16,

    /// Bits per second between host and leaf: 100mbit, 100M, 1gbit, ...
    #[arg(long, value_name = "BITS", default_value = "100mbit")]
    rate: Rate,

    /// Bits per second between leaf and spine: a lower rate oversubscribes [default: as --rate]
    #[arg(long, value_name = "BITS")]
    uplink_rate: Option<Rate>,

    /// DSCP of the packets that go into the tiny queue
    #[arg(long, value_name = "N", default_value_t = Topology::default().dscp)]
    dscp: u8,

    /// DSCPs of further tiny queues, which switches serve after the first one, in this order
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    low_dscps: Vec<u8>,

    /// Capacity in packets of each tiny queue of a switch's port
    #[arg(long, value_name = "N", default_value_t = Topology::default().tiny_packets)]
    tiny_packets: u32,

    /// Trim packets that find a tiny queue of a switch full to this many bytes of their frame, and mark
    /// them with this DSCP [default: drop them]
    #[arg(long, value_name = "BYTES:DSCP")]
    trim: Option<Trim>,

    /// Bytes in a tiny queue of a switch from which packets that are not ECN-capable are dropped
    /// [default: treat all alike]
    #[arg(long, value_name = "BYTES")]
    selective: Option<u32>,

    /// Capacity in packets of the tiny queue of a host's port
    #[arg(long, value_name = "N", default_value_t = Topology::default().host_tiny_packets)]
    host_tiny_packets: u32,

    /// Capacity in packets of each port's other queue
    #[arg(long, value_name = "N", default_value_t = Topology::default().default_packets)]
    default_packets: u32,

    /// Shares of a busy link: of all tiny queues together, and of the other queue
    #[arg(long, value_name = "TINY:OTHER", default_value = "1:1")]
    weights: Weights,

    /// Percent of the packets that each link between leaf and spine loses, in each direction
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    loss: Percent,

    /// Bytes of the largest IP packet
    #[arg(long, value_name = "BYTES", default_value_t = Topology::default().mtu)]
    mtu: u32,

    /// Let hosts decapsulate IP-in-IP too, as spines do
    #[arg(long)]
    hosts_decapsulate: bool,

    /// XPath path IDs, that is, addresses of each host, per spine
    #[arg(long, value_name = "N", default_value_t = Topology::default().path_ids)]
    path_ids: u16,

    /// Seed of the switches' ECMP hash seeds
    #[arg(long, value_name = "N", default_value_t = Topology::default().seed)]
    seed: u32,

    #[command(flatten)]
    pub(super) fabric: Name,
}

impl Up {
    pub(super) fn topology(&self) -> Topology {
        Topology {
            hosts: self.hosts,
            leaves: self.leaves,
            spines: self.spines,
            rate: self.rate.0,
            uplink_rate: self.uplink_rate.map(|rate| rate.0),
            dscp: self.dscp,
            low_dscps: self.low_dscps.clone(),
            tiny_packets: self.tiny_packets,
            trim: self.trim,
            selective: self.selective,
            host_tiny_packets: self.host_tiny_packets,
            default_packets: self.default_packets,
            weights: self.weights,
            loss: self.loss.0,
            mtu: self.mtu,
            hosts_decapsulate: self.hosts_decapsulate,
            path_ids: self.path_ids,
            seed: self.seed,
        }
    }
}

/// Bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate(u64);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "expected bits per second, such as 100mbit, 100M, 1.5gbit or 10G".to_string();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let factor = match unit.to_ascii_lowercase().as_str() {
            "" | "bit" => 1.0,
            "k" | "kbit" => 1e3,
            "m" | "mbit" => 1e6,
            "g" | "gbit" => 1e9,
            _ => return Err(wrong()),
        };
        Ok(Self((number * factor).round() as u64))
    }
}

/// A percentage, with or without the sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Percent(pub(super) f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
        let number = number.filter(|number| (0.0..=100.0).contains(number));
        number.map(Self).ok_or_else(|| "expected a percentage, 0 to 100".into())
    }
}

impl FromStr for Weights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let weights = text
            .split_once(':')
            .and_then(|(tiny, other)| Some((tiny.parse().ok()?, other.parse().ok()?)));
        let (tiny, default) = weights.ok_or("expected two numbers from 1 to 100, such as 1:3")?;
        Ok(Self { tiny, default })
    }
}

impl FromStr for Trim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trim = text
            .split_once(':')
            .and_then(|(bytes, dscp)| Some((bytes.parse().ok()?, dscp.parse().ok()?)));
        let (bytes, dscp) = trim.ok_or("expected bytes and a DSCP, such as 128:44")?;
        Ok(Self { bytes, dscp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_options_give_the_default_topology() {
        let arguments = Arguments::parse_from(["cbrst-testbed", "up"]);
        let Command::Up(up) = arguments.command else { panic!("up is {arguments:?}") };
        assert_eq!(up.topology(), Topology::default());
    }

    #[test]
    fn rates_are_parsed_as_tc_writes_them() {
        for (text, bits) in
            [("100mbit", 100_000_000), ("100M", 100_000_000), ("1.5gbit", 1_500_000_000), ("9", 9)]
        {
            assert_eq!(text.parse(), Ok(Rate(bits)), "{text}");
        }
        for text in ["", "mbit", "-1", "1mb", "1.2.3G"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
