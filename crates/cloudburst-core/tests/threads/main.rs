//! The threads, over channels instead of sockets.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

#[path = "../proto/common/mod.rs"]
mod common;
mod engine;
mod reported_once;
mod suspended;
mod taking;
