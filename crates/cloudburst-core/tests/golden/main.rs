//! Bytes on the wire that must never change.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod codes;
#[path = "../codes/common.rs"]
mod common;
mod wire;
