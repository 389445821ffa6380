//! Requests and responses: calls, and the functions and services that serve them. The core matches responses to
//! requests and keeps the deadlines.

mod call;
#[cfg(feature = "tower")]
mod client;
mod interest;
mod many;
mod request;
mod serve;

pub use call::Call;
#[cfg(feature = "tower")]
pub use client::Client;
pub use many::{CallMany, Calls, Response};
pub use request::{Reply, Request, RequestParts};

pub(crate) use serve::Handled;
