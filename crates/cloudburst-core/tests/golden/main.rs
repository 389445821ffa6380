//! Bytes that may never change: the contract on the wire.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod codes;
#[path = "../codes/common.rs"]
mod common;
mod wire;
