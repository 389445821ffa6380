//! Workloads that the evaluation on real networks and the simulator have in common.
//!
//! | module | role |
//! |---|---|
//! | [`draw`] | random draws from a seed, the same on every machine |
//! | [`Sizes`] | distributions of flow sizes |
//! | [`requests`] | Poisson requests between hosts, each answered by a response |
//! | [`paper`] | section V of the Cloudburst paper: what its hosts send, and what it claims |

#![forbid(unsafe_code)]

pub mod draw;
pub mod paper;
mod requests;
mod sizes;

pub use requests::{Peers, Racks, Request, requests};
pub use sizes::Sizes;

/// An invalid workload: an error of the caller.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("workload: {field}: got {value}, expected {expected}")]
pub struct WorkloadError {
    /// The invalid field.
    pub field: &'static str,
    /// Its value.
    pub value: f64,
    /// The values that it may have.
    pub expected: &'static str,
}

impl WorkloadError {
    /// The error that `field` has this value, and not one of those expected.
    pub const fn new(field: &'static str, value: f64, expected: &'static str) -> Self {
        Self { field, value, expected }
    }
}
