//! Makes validated plans of arguments: an invalid command line is rejected here, before anything is
//! sent, listened on or written.

mod common;
mod doctor;
mod error;
mod input;
pub(crate) mod key;
mod receive;
mod send;
mod tree;

pub(crate) use doctor::{DoctorPlan, Target};
pub(crate) use error::PlanError;
pub(crate) use input::{Input, Source};
pub(crate) use key::Key;
pub(crate) use receive::{Destination, ReceivePlan};
pub(crate) use send::SendPlan;
pub(crate) use tree::open_without_links;
