//! Makes validated plans of arguments: an invalid command line is rejected here, before anything is
//! sent, listened on or written.

mod doctor;
pub(crate) mod key;
mod receive;
mod send;
mod tree;

pub(crate) use doctor::{DoctorPlan, Target};
pub(crate) use key::Key;
pub(crate) use receive::{Destination, ReceivePlan};
pub(crate) use send::{Input, SendPlan, Source};
pub(crate) use tree::open_without_links;

use crate::protocol::NameError;
use cloudburst_net::{Classes, PathMap};
use core::time::Duration;
use std::io;
use std::path::PathBuf;

/// The settings that `cbrst-send` and `cbrst-recv` share.
#[derive(Clone, Debug)]
pub(crate) struct CommonPlan {
    pub(crate) key: Key,
    pub(crate) deadline: Duration,
    pub(crate) paths: PathMap,
    /// In the order of `--dscp`; empty for the library's default.
    pub(crate) dscps: Vec<u8>,
    pub(crate) classes: Classes,
    pub(crate) aeolus: bool,
    pub(crate) resumes: bool,
    pub(crate) ecn: bool,
    pub(crate) adaptive_rate: bool,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// The directory of the qlog file.
    pub(crate) qlog: Option<PathBuf>,
}

/// Checks that `addr` is a host and a port, without resolving the host.
fn check_address(addr: String) -> Result<String, PlanError> {
    let port = addr.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if matches!(port, Some(Ok(1..))) { Ok(addr) } else { Err(PlanError::Address { addr }) }
}

/// Why a command line is invalid. The user is to blame, and each text names the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error(
        "no key: run the command that cbrst-recv printed, which begins with CBRST_KEY=..., or \
         give --key-file FILE, or --insecure at both ends"
    )]
    NoKey,
    #[error("CBRST_KEY is set, but --insecure says to use no key: unset it, or drop --insecure")]
    KeyAndInsecure,
    #[error("CBRST_KEY is set, but --pair makes a new key: unset it, or drop --pair")]
    KeyAndPair,
    #[error("--pair - and FILE - would both read standard input: give the code as --pair CODE")]
    CodeAndData,
    #[error("no code on standard input for --pair -: {0}")]
    Code(io::Error),
    #[error("cannot read the key file {}: {source}", path.display())]
    KeyFile { path: PathBuf, source: io::Error },
    #[error("the key file {} does not hold a key: expected 64 hexadecimal digits", path.display())]
    KeyFileContent { path: PathBuf },
    #[error("CBRST_KEY does not hold a key: expected 64 hexadecimal digits")]
    KeyVariable,
    #[error("--rate {0}: expected a share of the capacity, above 0 and at most 1")]
    Rate(f64),
    #[error("{addr}: expected host:port, 192.0.2.1:port or [2001:db8::1]:port")]
    Address { addr: String },
    #[error("--listen {addr}: expected an address of this host and a port: {source}")]
    Listen { addr: String, source: io::Error },
    #[error("{}: {source}", path.display())]
    Input { path: PathBuf, source: io::Error },
    #[error(
        "{} is a directory: add --recursive to send it", path.display()
    )]
    Directory { path: PathBuf },
    #[error("{} cannot be stored under that name: {source}; choose another with --name", path.display())]
    Name { path: PathBuf, source: NameError },
    #[error("{} and {} would have the same name at the receiver: send them one by one, with --name", first.display(), second.display())]
    SameName { first: PathBuf, second: PathBuf },
    #[error("--name is for a single FILE, not for {0}")]
    NameOfMany(usize),
    #[error("--out {}: {source}{}", path.display(), after_out(source))]
    Out { path: PathBuf, source: io::Error },
    #[error("--out {} is not a directory", path.display())]
    OutNoDirectory { path: PathBuf },
}

/// Returns the remedy for an error of `--out`; empty if there is none.
fn after_out(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::NotFound { "; create it first, with mkdir -p" } else { "" }
}
