//! Paths: their orders, the effects of these on queues, and the health of paths.

#![allow(clippy::unwrap_used, reason = "tests end where anything fails")]

mod fabric;
mod order;
mod queues_of_orders;
mod set;
