//! Errors, sorted by who is to blame.

mod build;
mod send;

pub use build::BuildError;
pub use send::{Closed, Overloaded, SendError};

/// Any error of a handler or of a service.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
