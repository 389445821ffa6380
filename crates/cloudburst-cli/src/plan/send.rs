//! What a `cbrst-send` is going to do.

use super::{CommonPlan, Key, PlanError, check_address};
use crate::args::SendArgs;
use crate::protocol::FileName;
use cloudburst_net::{Code, Order};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

#[derive(Debug)]
pub(crate) struct SendPlan {
    /// Host and port, not resolved yet.
    pub(crate) host: String,
    pub(crate) inputs: Vec<Input>,
    pub(crate) order: Order,
    pub(crate) rate: f64,
    pub(crate) capacity: Option<u64>,
    pub(crate) pull: bool,
    pub(crate) code: Option<Code>,
    pub(crate) common: CommonPlan,
}

/// A file to send.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// As the user wrote it.
    pub(crate) given: PathBuf,
    /// What the receiver shall call it.
    pub(crate) name: FileName,
    pub(crate) source: Source,
}

/// Where the bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    StandardInput,
    Path(PathBuf),
}

impl SendPlan {
    /// # Errors
    ///
    /// The first thing that is wrong with the command line.
    pub(crate) fn new(args: SendArgs, environment: Option<OsString>) -> Result<Self, PlanError> {
        if !(args.rate > 0.0 && args.rate <= 1.0) {
            return Err(PlanError::Rate(args.rate));
        }
        let host = check_address(args.addr)?;
        if args.name.is_some() && args.files.len() > 1 {
            return Err(PlanError::NameOfMany(args.files.len()));
        }
        let given = |path: &PathBuf| Input::new(path, args.name.as_deref());
        let inputs = args.files.iter().map(given).collect::<Result<Vec<_>, _>>()?;
        let mut names = HashMap::new();
        for input in &inputs {
            if let Some(first) = names.insert(&input.name, &input.given) {
                let (first, second) = (first.clone(), input.given.clone());
                return Err(PlanError::SameName { first, second });
            }
        }
        let common = &args.common;
        let key = Key::given(common.key_file.as_deref(), common.insecure, environment)?;
        let key = key.ok_or(PlanError::NoKey)?;
        Ok(Self {
            host,
            inputs,
            order: args.order,
            rate: args.rate,
            capacity: args.capacity.map(|bits| bits.0),
            pull: args.pull,
            code: args.code,
            common: CommonPlan {
                key,
                deadline: args.common.deadline.0,
                paths: args.common.paths,
                dscps: args.common.dscp,
                classes: args.common.classes,
                aeolus: args.common.aeolus,
                ecn: args.common.ecn,
                adaptive_rate: args.common.adaptive_rate,
                json: args.common.json,
                quiet: args.common.quiet,
            },
        })
    }
}

impl Input {
    fn new(given: &Path, name: Option<&OsStr>) -> Result<Self, PlanError> {
        let (source, own_name) = if given == Path::new("-") {
            (Source::StandardInput, OsStr::new("stdin"))
        } else {
            check_readable(given)?;
            (Source::Path(given.to_owned()), given.file_name().unwrap_or_default())
        };
        let name = FileName::from_bytes(name.unwrap_or(own_name).as_bytes())
            .map_err(|source| PlanError::Name { path: given.to_owned(), source })?;
        Ok(Self { given: given.to_owned(), name, source })
    }
}

/// Finds out what opening a pipe would have to wait for.
fn check_readable(path: &Path) -> Result<(), PlanError> {
    let failed = |source: io::Error| PlanError::Input { path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(PlanError::Directory { path: path.to_owned() });
    }
    if metadata.is_file() {
        fs::File::open(path).map_err(failed)?;
    }
    Ok(())
}
