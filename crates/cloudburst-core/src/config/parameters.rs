//! The validated settings that an endpoint works with.

use super::{
    BurstPolicy, Classes, Config, ConfigError, EcnMode, Limits, ListenPorts, PullOrder, USUAL_MTU,
    max_symbol,
};
use crate::code::Code;
use crate::path::Order;
use crate::rate::Downlink;
use crate::wire::Capabilities;
use core::time::Duration;

/// A [`Config`] that was checked, with all that follows from it computed: each field is explained there, or at
/// the type that it came from.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    /// An upper bound.
    pub(crate) mtu: usize,
    /// Bits per second.
    pub(crate) capacity: u64,
    /// The share of `capacity`.
    pub(crate) rate: f64,
    pub(crate) adaptive_rate: bool,
    pub(crate) order: Order,
    pub(crate) code: Code,
    pub(crate) policy: BurstPolicy,
    pub(crate) pull_above: usize,
    pub(crate) pull_order: PullOrder,
    pub(crate) downlink: Option<Downlink>,
    pub(crate) probe: bool,
    pub(crate) train: usize,
    pub(crate) max_redundancy: u32,
    pub(crate) blocks_in_flight: usize,
    pub(crate) deadline: Duration,
    pub(crate) decode_timeout: Duration,
    pub(crate) busy_poll: Duration,
    pub(crate) max_message: usize,
    pub(crate) limits: Limits,
    pub(crate) classes: Classes,
    pub(crate) ecn: EcnMode,
    pub(crate) trimmable: bool,
    pub(crate) ports: ListenPorts,
}

impl Parameters {
    /// # Errors
    ///
    /// Names the first setting that is out of range.
    pub(crate) fn new(config: Config, ports: ListenPorts) -> Result<Self, ConfigError> {
        config.check()?;
        ports.check()?;
        let limits = config.limits();
        let rate = config.rate.or_adaptive(config.fabric.shared);
        let Config { fabric, tuning, .. } = config;
        Ok(Self {
            mtu: config.mtu,
            capacity: config.capacity.bits_per_second(),
            rate: rate.share(),
            adaptive_rate: rate.is_adaptive(),
            order: config.order,
            code: config.code,
            policy: config.policy,
            pull_above: fabric.pull_above,
            pull_order: tuning.pull_order,
            downlink: fabric.downlink,
            probe: tuning.probe,
            train: tuning.train,
            max_redundancy: tuning.max_redundancy,
            blocks_in_flight: tuning.blocks_in_flight,
            deadline: config.deadline,
            decode_timeout: tuning.decode_timeout,
            busy_poll: config.busy_poll,
            max_message: config.max_message,
            limits,
            classes: fabric.classes,
            ecn: fabric.ecn,
            trimmable: fabric.trim_dscp.is_some(),
            ports,
        })
    }

    /// Returns the largest symbol under `code` in packets of `mtu` bytes, `headers` of them of IP, UDP
    /// and outer headers.
    pub(crate) fn max_symbol(&self, mtu: usize, code: Code, headers: usize) -> usize {
        max_symbol(mtu, self.trimmable, code, headers)
    }

    /// Returns the bytes of a packet as long as nothing is known of its path.
    pub(crate) fn usual_mtu(&self) -> usize {
        self.mtu.min(USUAL_MTU)
    }

    /// Returns the capabilities that this endpoint declares.
    pub(crate) const fn capabilities(&self) -> Capabilities {
        if self.trimmable { Capabilities::TRIM } else { Capabilities(0) }
    }

    /// Returns the capabilities of a session with a peer that declares `theirs`: without header tags
    /// unless both ends want them.
    pub(crate) const fn capabilities_with(&self, theirs: Capabilities) -> Capabilities {
        if self.trimmable { theirs } else { theirs.without(Capabilities::TRIM) }
    }
}

#[cfg(test)]
impl Default for Parameters {
    fn default() -> Self {
        Self::new(Config::default(), ListenPorts::one(0)).expect("the default is in its ranges")
    }
}
