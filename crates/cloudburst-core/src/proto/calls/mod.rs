//! Requests and responses, without clocks or threads: tokens, deadlines, and the matching of
//! responses to requests.
//!
//! A request and its response are ordinary messages with roles of their own. Each begins with a
//! token that only the two ends know. The token matches the response to its call.

mod frame;
mod table;

pub use frame::{CallId, IncomingRequest, Prepared, RequestId, overload, response};
pub(super) use frame::{answered, refusal, with_timeout, withdrawal};
pub use table::{CallCounters, CallTable, Served};
