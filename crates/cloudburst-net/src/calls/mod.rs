//! Requests and responses: calls, and what serves them.
//!
//! A request and its response are messages like any other, of roles of their own. Each begins with
//! a token that only the two ends know, by which the response finds its call.

mod call;
mod counters;
mod frame;
mod many;
mod request;
mod serve;
mod table;

pub use counters::CallCounters;
pub use many::{Calls, Response};
pub use request::Request;

pub(crate) use counters::Counts;
pub(crate) use table::CallTable;
