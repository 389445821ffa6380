//! The programs as users run them, on this host, and the protocol between them.

#![allow(clippy::unwrap_used, reason = "all of it is for tests, which may panic")]

#[path = "../common/mod.rs"]
mod common;
mod directories;
mod doctor;
mod hostile;
mod interruptions;
mod metrics;
mod output;
mod protocol;
mod refusals;
mod resume;
mod terminal;
mod transfers;
mod unknown_outcomes;
