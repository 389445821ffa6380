//! Why a command line is invalid.

use crate::protocol::NameError;
use std::io;
use std::path::PathBuf;

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
