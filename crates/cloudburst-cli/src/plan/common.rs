//! The settings that several programs have in common.

use super::error::PlanError;
use super::key::Key;
use crate::args::CommonArgs;
use crate::protocol::MAX_FRAME;
use cloudburst_net::{
    Builder, Capacity, Classes, Config, EcnMode, Endpoint, Fabric, Order, PathMap, Rate,
};
use core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The settings that `cbrst-send` and `cbrst-recv` share.
#[derive(Clone, Debug)]
pub(crate) struct CommonPlan {
    pub(crate) key: Key,
    pub(crate) deadline: Duration,
    pub(crate) rate: Rate,
    pub(crate) capacity: Capacity,
    fabric: Fabric,
    mtu: usize,
    paths: PathMap,
    /// In the order of `--dscp`; empty for those of the fabric.
    pub(crate) dscps: Vec<u8>,
    classes: Classes,
    pub(crate) resumes: bool,
    ecn: EcnMode,
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
            fabric: args.fabric,
            mtu: args.mtu.into(),
            paths: args.paths,
            dscps: args.dscp,
            classes: args.classes,
            resumes: !args.no_resume,
            ecn: args.ecn,
            json: args.json,
            quiet: args.quiet,
            qlog: args.qlog,
        }
    }

    /// Returns the builder of an endpoint that is bound to `bind`. It has no security yet.
    pub(crate) fn builder(&self, bind: SocketAddr, order: Order) -> Builder {
        let mut fabric = Fabric { classes: self.classes, ecn: self.ecn, ..self.fabric.clone() };
        if !self.dscps.is_empty() {
            fabric.dscps.clone_from(&self.dscps);
        }
        let config = Config {
            mtu: self.mtu,
            capacity: self.capacity,
            rate: self.rate,
            order,
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
