//! Requests and responses, without clocks or threads: tokens, deadlines, and the matching of
//! responses to requests.
//!
//! A request and its response are ordinary messages with roles of their own. Each begins with a
//! token that only the two ends know. The token matches the response to its call.

mod counters;
mod frame;
mod requests;
mod table;

pub use counters::CallCounters;
pub use frame::{CallId, IncomingRequest, Prepared, RequestId, overload, response};
pub(super) use frame::{answered, refusal, with_timeout, withdrawal};
pub use requests::Served;
pub use table::CallTable;
