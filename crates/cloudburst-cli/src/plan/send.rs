//! The plan of a `cbrst-send`.

use super::tree::{LeftOut, walk};
use super::{CommonPlan, Key, PlanError, check_address};
use crate::args::SendArgs;
use crate::pairing::{Code as PairingCode, CodeFrom};
use crate::protocol::{Attributes, Entry, FilePath};
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
    pub(crate) left_out: LeftOut,
    pub(crate) order: Order,
    pub(crate) pull: bool,
    /// The code that the key is derived from.
    pub(crate) pair: Option<PairingCode>,
    pub(crate) code: Option<Code>,
    pub(crate) common: CommonPlan,
}

/// A file to send.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Its path as the user wrote it.
    pub(crate) given: PathBuf,
    /// Its name at the receiver.
    pub(crate) name: FilePath,
    pub(crate) source: Source,
    /// The attributes to set at the receiver, if it was found in a directory.
    pub(crate) attributes: Option<Attributes>,
}

/// Where the bytes of a file come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    StandardInput,
    /// A file on the command line, or the target of a link there.
    Path(PathBuf),
    /// A file that was found in a directory: exactly this inode. The path is absolute and has no links.
    Found {
        path: PathBuf,
        device: u64,
        inode: u64,
    },
    /// A directory, which has no bytes.
    Directory,
    /// The target of a symbolic link.
    Link(Vec<u8>),
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
        let (mut inputs, mut left_out) = (Vec::new(), LeftOut::default());
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
                let (first, second) = (first.clone(), input.given.clone());
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
        // Last, so that the user is asked only if all else is valid.
        let pair = match args.pair {
            Some(CodeFrom::StandardInput) => Some(PairingCode::read().map_err(PlanError::Code)?),
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
            code: args.code,
            common: CommonPlan::new(args.common, key),
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
        let name = FilePath::from_bytes(name.unwrap_or(own_name).as_bytes())
            .map_err(|source| PlanError::Name { path: given.to_owned(), source })?;
        Ok(Self { given: given.to_owned(), name, source, attributes: None })
    }

    /// Returns the type of entry that the receiver creates.
    pub(crate) const fn entry(&self) -> Entry {
        match self.source {
            Source::StandardInput | Source::Path(_) | Source::Found { .. } => Entry::File,
            Source::Directory => Entry::Directory,
            Source::Link(_) => Entry::Link,
        }
    }
}

/// Checks that the file can be read. Does not open pipes, which would wait for a writer.
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
