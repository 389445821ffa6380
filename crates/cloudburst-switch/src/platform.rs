//! The platforms, and their differences other than syntax.

use core::fmt;

/// The platform whose language a configuration is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    Picos,
    Sonic,
    Cumulus4,
    Cumulus5,
    Os10,
    Eos,
    Nxos,
    IosXe,
    OpenConfig,
    Linux,
}

/// How a platform expresses the shares of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shares {
    /// As weights, from 1 to this value.
    Weights(u32),
    /// As percent of the link, 1 to 99.
    Percent,
}

/// The unit of a queue's limit, which is also a number of whole cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Bytes(u64),
    /// A thousandth of the buffer.
    Permille,
}

/// The order among several classes of Cloudburst's packets, within the share that they have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Strict: a queue is served only when all before it are empty.
    Strict,
    /// Each queue has twice the weight of the next one: on these platforms a strict queue would also precede all
    /// other traffic, without any share.
    Weighted,
    /// All classes share one queue.
    OneQueue,
}

impl Platform {
    pub(crate) const ALL: [Self; 10] = [
        Self::Picos,
        Self::Sonic,
        Self::Cumulus4,
        Self::Cumulus5,
        Self::Os10,
        Self::Eos,
        Self::Nxos,
        Self::IosXe,
        Self::OpenConfig,
        Self::Linux,
    ];

    /// Returns the platform with this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|platform| platform.name() == name)
    }

    /// Returns its name in the parameters, which is also that of the directory of its templates.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Picos => "picos",
            Self::Sonic => "sonic",
            Self::Cumulus4 => "cumulus4",
            Self::Cumulus5 => "cumulus5",
            Self::Os10 => "os10",
            Self::Eos => "eos",
            Self::Nxos => "nxos",
            Self::IosXe => "iosxe",
            Self::OpenConfig => "openconfig",
            Self::Linux => "linux",
        }
    }

    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Picos => "PicOS on Broadcom switches, such as the paper's Pronto 3295",
            Self::Sonic => "SONiC on Broadcom switches: CONFIG_DB tables and JSON patches",
            Self::Cumulus4 => "Cumulus Linux 4 on Broadcom switches: traffic.conf, datapath.conf",
            Self::Cumulus5 => "Cumulus Linux 5: NVUE commands",
            Self::Os10 => "Dell SmartFabric OS10",
            Self::Eos => "Arista EOS on Trident switches",
            Self::Nxos => "Cisco NX-OS on Nexus 9000",
            Self::IosXe => "Cisco IOS-XE routers: CLI, and the same for NETCONF or RESTCONF",
            Self::OpenConfig => "OpenConfig models for gNMI",
            Self::Linux => "Linux as a router: tc, sysctl, ip",
        }
    }

    /// Returns the default number of bytes of a cell of the buffer.
    pub(crate) const fn cell(self) -> u64 {
        if self.has_chip() { 208 } else { 1 }
    }

    /// Whether its queues are in a switch chip.
    pub(crate) const fn has_chip(self) -> bool {
        !matches!(self, Self::IosXe | Self::Linux)
    }

    pub(crate) const fn step(self) -> Step {
        match self {
            Self::Cumulus4 => Step::Permille,
            Self::Os10 => Step::Bytes(1024),
            _ => Step::Bytes(1),
        }
    }

    /// Whether a limit that was requested in packets is written in packets.
    pub(crate) const fn counts_packets(self) -> bool {
        matches!(self, Self::IosXe | Self::Linux)
    }

    pub(crate) const fn shares(self) -> Shares {
        match self {
            Self::Picos => Shares::Weights(15),
            Self::Sonic | Self::OpenConfig | Self::Linux => Shares::Weights(100),
            Self::Cumulus4 => Shares::Weights(127),
            Self::Cumulus5 | Self::Os10 | Self::Eos | Self::Nxos | Self::IosXe => Shares::Percent,
        }
    }

    pub(crate) const fn order(self) -> Order {
        match self {
            // Strict order within a share takes two levels of scheduling, which other platforms'
            // templates do not have: a strict queue there is served before all weighted ones, and
            // one with a shaper leaves an idle link idle.
            Self::Linux => Order::Strict,
            // A priority group has one weight and one limit, and only one group is available.
            Self::Cumulus4 => Order::OneQueue,
            _ => Order::Weighted,
        }
    }

    /// Whether the switch prints a named DSCP by its name, so that the configuration it shows always differs
    /// from the one that was sent.
    pub(crate) const fn renames_dscps(self) -> bool {
        matches!(self, Self::Nxos | Self::IosXe)
    }

    /// Returns what a queue is reserved for, if it is.
    pub(crate) const fn reserves(self, queue: u8) -> Option<&'static str> {
        match (self, queue) {
            (_, 0) => Some("the default queue"),
            (Self::Eos, 1) => Some("the default queue, as EOS puts DSCP 0 into class 1"),
            (Self::Cumulus4, 3) => Some("Cumulus Linux 4's own, for packets of the switch's CPU"),
            (Self::Cumulus4, 7) => Some("that of Cumulus Linux 4's control group, which is strict"),
            _ => None,
        }
    }

    /// Returns the queue of packets without a class.
    pub(crate) const fn default_queue(self) -> u8 {
        match self {
            Self::Eos => 1,
            _ => 0,
        }
    }

    /// Returns the default class of a DSCP: on some platforms, the tiny queue's number is the class of eight
    /// DSCPs by default.
    pub(crate) const fn default_class(self, dscp: u8) -> u8 {
        match (self, dscp / 8) {
            (Self::Eos, 0) => 1,
            (Self::Eos, 1) => 0,
            (Self::Eos | Self::Cumulus5, class) => class,
            _ => 0,
        }
    }

    /// Whether the templates set the class of all 64 DSCPs, and not only of those that differ from the default.
    pub(crate) const fn maps_all(self) -> bool {
        matches!(self, Self::Sonic | Self::Cumulus4)
    }

    /// Whether the templates can set the classes of other DSCPs.
    pub(crate) const fn has_classes(self) -> bool {
        !matches!(self, Self::OpenConfig | Self::IosXe | Self::Linux)
    }

    /// Returns the normal form of a port's name: some platforms take both `ethernet1` and `Ethernet1`.
    pub(crate) fn same_port(self, name: &str) -> String {
        match self {
            Self::Os10 | Self::Eos | Self::Nxos | Self::IosXe => name.to_ascii_lowercase(),
            _ => name.to_owned(),
        }
    }

    /// Returns the largest seed of the ECMP hash; `None` if the configuration cannot set one.
    pub(crate) const fn largest_seed(self) -> Option<u32> {
        match self {
            Self::Picos | Self::Sonic | Self::OpenConfig => None,
            Self::Eos => Some(5),
            _ => Some(u32::MAX),
        }
    }

    /// Whether there is a template for selective dropping.
    pub(crate) const fn has_aeolus(self) -> bool {
        !matches!(self, Self::Picos | Self::Cumulus4)
    }

    /// Returns the fewest and the most bytes that may remain of a trimmed packet, if there is a template for
    /// trimming. With fewer than 112, a symbol over IPv6 would lose the tag of its header.
    pub(crate) const fn trims(self) -> Option<(u64, u64)> {
        match self {
            Self::Sonic => Some((112, 1_024)),
            Self::Cumulus5 => Some((256, 1_024)),
            _ => None,
        }
    }

    /// Whether there is a template for decapsulating IP-in-IP packets.
    pub(crate) const fn decapsulates(self) -> bool {
        matches!(self, Self::Sonic | Self::Eos | Self::Nxos | Self::Linux)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
