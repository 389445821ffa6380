//! The codes: any n symbols or hardly more, of whatever kind, give the block back.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod allocations;
mod common;
mod hostile;
mod names;
mod overhead;
mod rank;
mod round_trip;
