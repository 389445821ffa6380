//! Cloudburst for C: `include/cloudburst.h` is generated from this crate's public items, comments included.
//!
//! | module | contents |
//! |---|---|
//! | `endpoint` | opening, sending, receiving, closing |
//! | `calls` | calls, one or many at a time |
//! | `counters` | the counters of an endpoint |
//! | `message` | received messages |
//! | `request` | received requests, and their responses |
//! | `status` | error codes, and the text of the last error |
//! | `arguments` | checks of arguments |
//!
//! Nullable references and boxes stand for pointers where Rust can check them. Bytes and strings are raw
//! pointers, because only the caller knows their lengths.

#![allow(unsafe_code, reason = "exported symbols, and pointers that a C program passes")]

mod arguments;
mod calls;
mod counters;
mod endpoint;
mod message;
mod request;
mod status;

pub use calls::*;
pub use counters::*;
pub use endpoint::*;
pub use message::*;
pub use request::*;
pub use status::*;
