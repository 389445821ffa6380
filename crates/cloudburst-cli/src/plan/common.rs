//! The settings that several programs have in common.

use super::error::PlanError;
use super::key::Key;
use crate::args::CommonArgs;
use crate::protocol::MAX_FRAME;
use cloudburst_net::{Builder, Capacity, Classes, Code, Config, Endpoint, PathMap};
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
    pub(crate) fn builder(&self, bind: SocketAddr, code: Code) -> Builder {
        let config = Config {
            mtu: self.mtu,
            deadline: self.deadline,
            max_message: MAX_FRAME,
            code,
            classes: self.classes,
            ..Config::default()
        };
        let mut builder = Endpoint::builder()
            .bind(bind)
            .paths(self.paths.clone())
            .config(config)
            .capacity(self.capacity)
            .rate(self.rate)
            .aeolus(self.aeolus)
            .ecn(self.ecn)
            .adaptive_rate(self.adaptive_rate);
        if !self.dscps.is_empty() {
            builder = builder.dscps(self.dscps.iter().copied());
        }
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
