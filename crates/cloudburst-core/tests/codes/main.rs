//! The codes: any n symbols, or hardly more, restore the block.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod allocations;
mod common;
mod hostile;
mod names;
mod overhead;
mod rank;
mod round_trip;
