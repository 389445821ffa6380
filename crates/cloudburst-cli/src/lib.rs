//! The implementation of `cbrst-send`, `cbrst-recv` and `cbrst-doctor`: file transfer over Cloudburst.
//!
//! ```text
//!   args  ->  plan  ->  sender    session, transfer     ui, text, progress, signals
//!   config          ->  receiver  transfer, store       courier, pairing
//!                   ->  doctor    trace, exam, report
//!                           \       /                      |
//!                           protocol (no I/O)        cloudburst-net
//! ```
//!
//! [`args`] defines the command lines, and `config` reads settings files, which override their defaults. A plan
//! is a validated command line. A run is one loop on the main thread, which waits for the network, the disk and
//! the user at once. [`protocol`] specifies the messages between the programs.

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
mod text;
mod ui;

use std::process::ExitCode;

/// The exit codes, which `--help` of each program documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// Runs `cbrst-send` from its command line to its exit code.
pub fn send_main() -> ExitCode {
    start::run("cbrst-send", no_file, plan::SendPlan::new, |plan| sender::run(&plan)).into()
}

/// Runs `cbrst-recv` from its command line to its exit code.
pub fn recv_main() -> ExitCode {
    start::run("cbrst-recv", no_file, plan::ReceivePlan::new, receiver::run).into()
}

/// Runs `cbrst-doctor` from its command line to its exit code.
pub fn doctor_main() -> ExitCode {
    let no_report = |error: &str| doctor::no_report(None, error);
    start::run("cbrst-doctor", no_report, plan::DoctorPlan::new, |plan| doctor::run(&plan)).into()
}

fn no_file(error: &str) -> String {
    ui::Report::of_no_file(error.to_owned()).to_json()
}
