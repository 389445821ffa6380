//! What a `cbrst-doctor` is going to do.

use super::{Key, PlanError, check_address};
use crate::args::DoctorArgs;
use cloudburst_net::{Capacity, DEFAULT_DSCP};
use core::time::Duration;
use std::ffi::OsString;

#[derive(Debug)]
pub(crate) struct DoctorPlan {
    /// Host and port, not resolved yet.
    pub(crate) host: String,
    pub(crate) key: Key,
    pub(crate) ports: u16,
    pub(crate) packets: u32,
    pub(crate) dscp: u8,
    pub(crate) capacity: Capacity,
    pub(crate) deadline: Duration,
    pub(crate) json: bool,
}

impl DoctorPlan {
    /// # Errors
    ///
    /// The first thing that is wrong with the command line.
    pub(crate) fn new(args: DoctorArgs, environment: Option<OsString>) -> Result<Self, PlanError> {
        let host = check_address(args.addr)?;
        let key = Key::given(args.key_file.as_deref(), args.insecure, environment)?;
        Ok(Self {
            host,
            key: key.ok_or(PlanError::NoKey)?,
            ports: args.ports,
            packets: args.packets,
            dscp: args.dscp.unwrap_or(DEFAULT_DSCP),
            capacity: args.capacity,
            deadline: args.deadline.0,
            json: args.json,
        })
    }
}
