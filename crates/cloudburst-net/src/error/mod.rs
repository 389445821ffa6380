//! Errors, sorted by who is to blame.

mod build;
mod send;

pub use build::BuildError;
pub use send::{Closed, SendError};
