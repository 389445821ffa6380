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

use crate::args::CommonArgs;
use crate::protocol::{MAX_FRAME, NameError};
use cloudburst_net::{Builder, Capacity, Classes, Code, Config, Endpoint, PathMap};
use core::time::Duration;
use std::io;
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
    fn new(args: CommonArgs, key: Key) -> Self {
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
fn check_address(addr: String) -> Result<String, PlanError> {
    let port = addr.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if matches!(port, Some(Ok(1..))) { Ok(addr) } else { Err(PlanError::Address { addr }) }
}

/// Why a command line is invalid. The user is to blame, and each text names the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error(
        "no key: put the CBRST_KEY=... that cbrst-recv printed in front of this command, or give \
         --key-file FILE, or --insecure at both ends"
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
    #[error("{addr}: expected host:port, 192.0.2.1:port or [2001:db8::1]:port")]
    Address { addr: String },
    #[error(
        "--listen {addr}: expected an address of this host and a port, such as 0.0.0.0:7000 or \
         [::]:7000: {source}"
    )]
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
