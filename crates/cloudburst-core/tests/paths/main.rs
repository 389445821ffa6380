//! Orders of paths, and their effects on queues.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod fabric;
mod order;
mod queues_of_orders;
