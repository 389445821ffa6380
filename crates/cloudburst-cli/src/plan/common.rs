//! The settings that several programs have in common.

use super::error::PlanError;
use super::key::Key;
use crate::args::CommonArgs;
use crate::protocol::MAX_FRAME;
use cloudburst_net::{
    Builder, Capacity, Classes, Code, Config, EcnMode, Endpoint, Fabric, Order, PathMap, Rate,
};
use core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The settings that `cbrst-send` and `cbrst-recv` share.
#[derive(Clone, Debug)]
pub(crate) struct CommonPlan {
    pub(crate) key: Key,
    pub(crate) deadline: Duration,
    pub(crate) rate: f64,
    pub(crate) capacity: Capacity,
    mtu: usize,
    paths: PathMap,
    /// In the order of `--dscp`; empty for the library's default.
    pub(crate) dscps: Vec<u8>,
    classes: Classes,
    aeolus: bool,
    pub(crate) resumes: bool,
    ecn: bool,
    adaptive_rate: bool,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// The directory of the qlog file.
    qlog: Option<PathBuf>,
}

impl CommonPlan {
    pub(super) fn new(args: CommonArgs, key: Key) -> Self {
        Self {
            key,
            deadline: args.deadline.0,
            rate: args.rate,
            capacity: args.capacity,
            mtu: args.mtu.into(),
            paths: args.paths,
            dscps: args.dscp,
            classes: args.classes,
            aeolus: args.aeolus,
            resumes: !args.no_resume,
            ecn: args.ecn,
            adaptive_rate: args.adaptive_rate,
            json: args.json,
            quiet: args.quiet,
            qlog: args.qlog,
        }
    }

    /// Returns the builder of an endpoint that is bound to `bind`. It has no security yet.
    pub(crate) fn builder(&self, bind: SocketAddr, code: Code, order: Order) -> Builder {
        let ecn = match (self.aeolus, self.ecn) {
            (true, _) => EcnMode::Aeolus,
            (false, true) => EcnMode::On,
            (false, false) => EcnMode::Off,
        };
        let mut fabric = Fabric { classes: self.classes, ecn, ..Fabric::default() };
        if !self.dscps.is_empty() {
            fabric.dscps.clone_from(&self.dscps);
        }
        let rate =
            if self.adaptive_rate { Rate::Adaptive(self.rate) } else { Rate::Fixed(self.rate) };
        let config = Config {
            mtu: self.mtu,
            capacity: self.capacity,
            rate,
            order,
            code,
            deadline: self.deadline,
            max_message: MAX_FRAME,
            fabric,
            ..Config::default()
        };
        let mut builder = Endpoint::builder().bind(bind).paths(self.paths.clone()).config(config);
        if let Some(dir) = &self.qlog {
            builder = builder.qlog(dir);
        }
        builder
    }
}

/// Checks that `addr` is a host and a port, without resolving the host.
pub(super) fn check_address(addr: String) -> Result<String, PlanError> {
    let port = addr.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if matches!(port, Some(Ok(1..))) { Ok(addr) } else { Err(PlanError::Address { addr }) }
}
