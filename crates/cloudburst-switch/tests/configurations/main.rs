//! Configurations of switches: rendering, refusals of parameters, and findings of the lint.

#![allow(clippy::unwrap_used, reason = "all of it is for tests, which may panic")]

#[path = "../common/mod.rs"]
mod common;
mod goldens;
mod lint;
mod mistakes;
mod negations;
mod refusals;
