//! Cloudburst for C: `include/cloudburst.h` is generated from this crate's public items, comments included.
//!
//! | module | contents |
//! |---|---|
//! | `endpoint` | opening, sending, receiving, calling, closing |
//! | `message` | received messages |
//! | `request` | received requests, and their responses |
//! | `status` | error codes, and the text of the last error |
//! | `arguments` | checks of arguments |
//!
//! Nullable references and boxes stand for pointers where Rust can check them. Bytes and strings are raw
//! pointers, because only the caller knows their lengths.

#![allow(unsafe_code, reason = "exported symbols, and pointers that a C program passes")]

mod arguments;
mod endpoint;
mod message;
mod request;
mod status;

pub use endpoint::*;
pub use message::*;
pub use request::*;
pub use status::*;
