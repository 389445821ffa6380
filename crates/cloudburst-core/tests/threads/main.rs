//! The threads, over channels instead of sockets.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

#[path = "../proto/common/mod.rs"]
mod common;
mod engine;
mod held_up;
mod same_as_endpoint;
mod taking;
mod told_once;
