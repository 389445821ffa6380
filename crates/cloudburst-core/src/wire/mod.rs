//! Packets: encoding and decoding of fields, sealing and opening. It contains no policy.
//!
//! Every number on the wire is big-endian. `docs/spec.md` defines each packet byte by byte.
//!
//! ```text
//! handshake  HELLO RETRY OPEN ACCEPT VERSION: the handshake that makes a session's secrets
//! symbol     SYMBOL: one encoded symbol of one block of one message
//! answer     ANSWER: reports on messages: STOP NACK PULL BUSY REJECT FORGOTTEN ALIVE ENDED
//! packet     the 14-byte prefix of SYMBOL and ANSWER
//! capabilities  the protocol extensions that an end supports
//! keys       the secrets of a handshake -> the keys of both directions
//! seal       authenticates headers, encrypts payloads
//! window     the packet numbers seen so far
//! cursor     bounds-checked reading
//! error      why bytes are not a valid packet
//! ```
//!
//! There are two kinds of types: the packets of this module are *valid values* that `parse` makes
//! from checked bytes; raw bytes stay `&[u8]`. Parsing checks the format only: do not trust a
//! parsed packet until [`seal::Opener::open`] has accepted it or, for handshake packets, its MAC
//! has been verified.

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

pub use answer::{Answer, Arrivals, Certificate, RejectReason, Report, Verdict};
pub use capabilities::Capabilities;
pub use error::WireError;
pub use packet::{Kind, Prefix, Role};
pub use symbol::SymbolHeader;
