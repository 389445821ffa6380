//! Requests and responses: calls, and the functions and services that serve them. The core matches responses to
//! requests and keeps the deadlines.

mod call;
mod interest;
mod limit;
mod many;
mod request;
mod serve;

pub use many::{Calls, Response};
pub use request::{Request, RequestParts};

pub(crate) use limit::{CallLimit, Permit};
pub(crate) use serve::Handled;
