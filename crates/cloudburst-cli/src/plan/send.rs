//! The plan of a `cbrst-send`.

use super::common::{CommonPlan, check_address};
use super::error::PlanError;
use super::input::{Input, Source};
use super::key::Key;
use super::tree::{LeftOut, walk};
use crate::args::SendArgs;
use crate::pairing::{Code, CodeFrom};
use cloudburst_net::Order;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

#[derive(Debug)]
pub(crate) struct SendPlan {
    /// Host and port, not resolved yet.
    pub(crate) host: String,
    pub(crate) inputs: Vec<Input>,
    pub(crate) left_out: LeftOut,
    pub(crate) order: Order,
    pub(crate) pull: bool,
    /// The code that the key is derived from.
    pub(crate) pair: Option<Code>,
    pub(crate) common: CommonPlan,
}

impl SendPlan {
    /// # Errors
    ///
    /// The first thing that is wrong with the command line.
    pub(crate) fn new(args: SendArgs, environment: Option<OsString>) -> Result<Self, PlanError> {
        let host = check_address(args.addr)?;
        if args.name.is_some() && args.files.len() > 1 {
            return Err(PlanError::NameOfMany(args.files.len()));
        }
        let mut inputs = Vec::new();
        let mut left_out = LeftOut::default();
        for path in &args.files {
            if args.recursive && path != Path::new("-") && path.is_dir() {
                inputs.extend(walk(path, args.name.as_deref(), &mut left_out)?);
            } else {
                inputs.push(Input::new(path, args.name.as_deref())?);
            }
        }
        let mut names = HashMap::new();
        for input in &inputs {
            if let Some(first) = names.insert(&input.name, &input.given) {
                let first = first.clone();
                let second = input.given.clone();
                return Err(PlanError::SameName { first, second });
            }
        }
        let common = &args.common;
        if args.pair == Some(CodeFrom::StandardInput)
            && inputs.iter().any(|input| input.source == Source::StandardInput)
        {
            return Err(PlanError::CodeAndData);
        }
        let key = match args.pair {
            Some(_) => Key::to_agree_on(environment)?,
            None => Key::given(common.key_file.as_deref(), common.insecure, environment)?
                .ok_or(PlanError::NoKey)?,
        };
        // Last, so that the user is prompted only if all else is valid.
        let pair = match args.pair {
            Some(CodeFrom::StandardInput) => Some(Code::read().map_err(PlanError::Code)?),
            Some(CodeFrom::Argument(code)) => Some(code),
            None => None,
        };
        Ok(Self {
            host,
            inputs,
            left_out,
            order: args.order,
            pull: args.pull,
            pair,
            common: CommonPlan::new(args.common, key),
        })
    }
}
