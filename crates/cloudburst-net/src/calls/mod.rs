//! Requests and responses: calls, and what serves them. Which response belongs to which request,
//! and until when it is waited for, is the core's business.

mod call;
mod limit;
mod many;
mod request;
mod serve;

pub use many::{Calls, Response};
pub use request::Request;

pub(crate) use limit::CallLimit;
