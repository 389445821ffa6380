//! Files over Cloudburst: what `cbrst-send`, `cbrst-recv` and `cbrst-doctor` are made of.
//!
//! ```text
//!   args  ->  plan  ->  sender    source, transfer      ui, progress, signals
//!   config          ->  receiver  store, transfer       courier, pairing
//!                   ->  doctor    trace, exam, report
//!                           \       /                      |
//!                           protocol (no I/O)        cloudburst-net
//! ```
//!
//! [`args`] has the command lines, and `config` their defaults. A plan is a command line that was checked, and
//! a run is one loop on the main thread that waits for the network, the disk and the user at once.
//! [`protocol`] specifies what the two programs say to each other.

pub mod args;
mod config;
mod courier;
mod doctor;
pub mod pairing;
mod plan;
mod prefix;
mod progress;
pub mod protocol;
mod receiver;
mod sender;
mod signals;
mod start;
mod ui;

use std::process::ExitCode;

/// How the programs end; each code is in their `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// All of `cbrst-send`.
pub fn send_main() -> ExitCode {
    start::run("cbrst-send", plan::SendPlan::new, |plan| sender::run(&plan)).into()
}

/// All of `cbrst-recv`.
pub fn recv_main() -> ExitCode {
    start::run("cbrst-recv", plan::ReceivePlan::new, receiver::run).into()
}

/// All of `cbrst-doctor`.
pub fn doctor_main() -> ExitCode {
    start::run("cbrst-doctor", plan::DoctorPlan::new, |plan| doctor::run(&plan)).into()
}
