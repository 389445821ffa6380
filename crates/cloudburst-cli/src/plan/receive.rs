//! The plan of a `cbrst-recv`.

use super::common::CommonPlan;
use super::error::PlanError;
use super::key::Key;
use crate::args::RecvArgs;
use std::ffi::OsString;
use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct ReceivePlan {
    pub(crate) listen: SocketAddr,
    pub(crate) known_as: Vec<SocketAddr>,
    /// Further keys that senders may use.
    pub(crate) also_accept: Vec<Key>,
    pub(crate) destination: Destination,
    /// Whether one sender gets the key by a code: `--pair`.
    pub(crate) pair: bool,
    /// Whether to exit after one sender.
    pub(crate) once: bool,
    /// The most bytes in a file.
    pub(crate) max_size: u64,
    /// The address at which metrics are served.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) common: CommonPlan,
}

/// Where files go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Directory { dir: PathBuf, overwrite: bool },
    StandardOutput,
}

impl ReceivePlan {
    /// # Errors
    ///
    /// The first thing that is wrong with the command line.
    pub(crate) fn new(args: RecvArgs, environment: Option<OsString>) -> Result<Self, PlanError> {
        let listen = resolve(args.listen)?;
        let destination = if args.stdout {
            Destination::StandardOutput
        } else {
            let out = |source| PlanError::Out { path: args.out.clone(), source };
            // Resolved now, so that links in the path cannot be changed later.
            let dir = fs::canonicalize(&args.out).map_err(out)?;
            if !dir.is_dir() {
                return Err(PlanError::OutNoDirectory { path: args.out });
            }
            Destination::Directory { dir, overwrite: args.overwrite }
        };
        let common = &args.common;
        let key = if args.pair {
            Key::to_agree_on(environment)?
        } else {
            Key::given(common.key_file.as_deref(), common.insecure, environment)?
                .unwrap_or_else(Key::make)
        };
        // A settings file may name further keys even where this run uses none.
        let no_further = args.pair || matches!(key, Key::Insecure);
        let further = args.also_accept.iter().filter(|_| !no_further);
        let also_accept: Result<_, _> = further.map(|path| Key::in_file(path)).collect();
        Ok(Self {
            listen,
            known_as: args.known_as,
            also_accept: also_accept?,
            destination,
            pair: args.pair,
            // Standard output takes the files of one sender, and a code pairs one sender.
            once: args.once || args.stdout || args.pair,
            max_size: args.max_size.map_or(u64::MAX, |bytes| bytes.0),
            metrics: args.metrics,
            common: CommonPlan::new(args.common, key),
        })
    }
}

fn resolve(addr: String) -> Result<SocketAddr, PlanError> {
    let resolved = addr.to_socket_addrs().map(|mut all| all.next());
    match resolved {
        Ok(Some(listen)) => Ok(listen),
        Ok(None) => Err(PlanError::Listen { addr, source: std::io::ErrorKind::NotFound.into() }),
        Err(source) => Err(PlanError::Listen { addr, source }),
    }
}
