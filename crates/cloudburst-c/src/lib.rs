//! Cloudburst for C: `include/cloudburst.h` is made of this crate's public items, comments included.
//!
//! | module | contents |
//! |---|---|
//! | `endpoint` | opening, sending, receiving, calling, closing |
//! | `message` | received messages |
//! | `request` | received requests, and their responses |
//! | `status` | codes of errors, and the text of the last one |
//! | `arguments` | what a caller passes, checked |
//!
//! Nullable references and boxes stand for pointers where Rust can check them. Bytes and strings are raw
//! pointers, as their lengths are the caller's word.

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
