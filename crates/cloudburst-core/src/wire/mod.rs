//! Packets: fields to bytes and back, sealing and opening. No policy lives here.
//!
//! Every number on the wire is big-endian. `docs/spec.md` draws each packet byte by byte.
//!
//! ```text
//! handshake  HELLO RETRY OPEN ACCEPT VERSION: the handshake that makes a session's secrets
//! symbol     SYMBOL: one encoded symbol of one block of one message
//! answer     ANSWER: reports on messages: STOP STATUS PULL BUSY REJECT FORGOTTEN ALIVE
//! packet     the first 14 bytes that SYMBOL and ANSWER share
//! capabilities  what an end can do beyond the version
//! keys       the secrets of a handshake -> the keys of both directions
//! seal       authenticate headers, encrypt payloads
//! window     which packet numbers were seen
//! cursor     bounds-checked reading
//! error      why bytes are not a packet
//! ```
//!
//! There are two kinds of types: the packets of this module are *valid values*, made by `parse`
//! out of bytes that were checked; raw bytes stay `&[u8]`. Parsing proves shape only: nothing
//! parsed may be believed until [`seal::Opener::open`] has accepted the packet, or,
//! of a handshake, until its MAC holds.

/// Secrets are not printed.
macro_rules! opaque_debug {
    ($($name:ident),*) => {$(
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    )*};
}

pub mod answer;
mod capabilities;
mod cursor;
mod error;
pub mod handshake;
pub mod keys;
pub mod packet;
pub mod seal;
pub mod symbol;
pub mod window;

pub use answer::{Answer, Arrivals, RejectReason, Report, Verdict};
pub use capabilities::Capabilities;
pub use error::WireError;
pub use packet::{Kind, Prefix, Role};
pub use symbol::SymbolHeader;
