//! Requests and responses, without clocks and threads: tokens, deadlines, and which response
//! belongs to which request.
//!
//! A request and its response are messages like any other, of roles of their own. Each begins with
//! a token that only the two ends know, by which the response finds its call.

mod frame;
mod table;

pub use frame::{CallId, Prepared, Request, response};
pub use table::{CallCounters, CallFailure, Calls};
