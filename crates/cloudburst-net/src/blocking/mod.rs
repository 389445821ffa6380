//! The endpoint with blocking methods. It needs no async runtime.
//!
//! | file | role |
//! |---|---|
//! | `endpoint` | the endpoint, and iterators of what arrives |
//! | `sending` | a send under way |
//! | `calls` | calls in flight, and requests that have arrived |

mod calls;
mod endpoint;
mod sending;

pub use calls::{Calls, Request};
pub use endpoint::{Endpoint, Incoming};
pub use sending::Sending;
