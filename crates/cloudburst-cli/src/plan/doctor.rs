//! The plan of a `cbrst-doctor`.

use super::common::check_address;
use super::error::PlanError;
use super::key::Key;
use crate::args::DoctorArgs;
use cloudburst_net::{Capacity, DEFAULT_DSCP};
use core::time::Duration;
use std::ffi::OsString;

#[derive(Debug)]
pub(crate) struct DoctorPlan {
    pub(crate) target: Target,
    pub(crate) key: Key,
    pub(crate) ports: u16,
    pub(crate) packets: u32,
    pub(crate) dscp: u8,
    pub(crate) capacity: Capacity,
    pub(crate) mtu: usize,
    pub(crate) deadline: Duration,
    pub(crate) json: bool,
}

/// The receivers to examine, as hosts and ports that are not resolved yet.
#[derive(Debug)]
pub(crate) enum Target {
    One(String),
    /// Several, reported in a line each.
    Mesh(Vec<String>),
}

impl DoctorPlan {
    /// # Errors
    ///
    /// The first thing that is wrong with the command line.
    pub(crate) fn new(args: DoctorArgs, environment: Option<OsString>) -> Result<Self, PlanError> {
        let target = match args.addr {
            Some(addr) => Target::One(check_address(addr)?),
            None => {
                let hosts: Result<_, _> = args.mesh.into_iter().map(check_address).collect();
                Target::Mesh(hosts?)
            }
        };
        let key = Key::given(args.key_file.as_deref(), args.insecure, environment)?;
        Ok(Self {
            target,
            key: key.ok_or(PlanError::NoKey)?,
            ports: args.ports,
            packets: args.packets,
            dscp: args.dscp.unwrap_or(DEFAULT_DSCP),
            capacity: args.capacity,
            mtu: args.mtu.into(),
            deadline: args.deadline.0,
            json: args.json,
        })
    }
}
