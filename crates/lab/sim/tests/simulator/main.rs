//! Transports over the queues that they are designed for, compared with theory and golden hashes; and the program.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod cli;
mod cloudburst;
mod common;
mod experiments;
mod golden;
mod queues;
mod rivals;
mod tcp;
