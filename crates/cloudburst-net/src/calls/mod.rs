//! Requests and responses: calls, and the functions and services that serve them. The core matches responses to
//! requests and keeps the deadlines.

mod call;
#[cfg(feature = "tower")]
mod client;
mod interest;
mod limit;
mod many;
mod request;
mod serve;

#[cfg(feature = "tower")]
pub use client::Client;
pub use many::{Calls, Response};
pub use request::{Request, RequestParts};

pub(crate) use limit::{CallLimit, Permit};
pub(crate) use serve::Handled;
