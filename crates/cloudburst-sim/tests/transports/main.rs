//! The transports over the queues that they are made for.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod cloudburst;
mod common;
mod rivals;
mod tcp;
