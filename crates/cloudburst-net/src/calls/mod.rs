//! Requests and responses: calls, and the functions and services that serve them. The core matches responses to
//! requests and keeps the deadlines.
//!
//! | file | role |
//! |---|---|
//! | `call`, `many`, `client` | the caller: one call; many with one deadline; a `tower` service |
//! | `request`, `serve` | the callee: a request and its reply; handlers and services |
//! | `cancellation` | whether a response is still awaited |

mod call;
mod cancellation;
#[cfg(feature = "tower")]
mod client;
mod many;
mod request;
mod serve;

pub use call::Call;
#[cfg(feature = "tower")]
pub use client::Client;
pub use many::{CallMany, Calls, Response};
pub use request::{Reply, Request, RequestParts};
