//! Packets: fields to bytes and back, sealing and opening. No policy lives here.
//!
//! Every number on the wire is big-endian. `docs/spec.md` draws each packet byte by byte.
//!
//! ```text
//! hello   HELLO, HELLO_ACK     the handshake: who we are, under a keyed checksum
//! symbol  SYMBOL               one encoded symbol of one block of one message
//! answer  STOP STATUS BUSY REJECT FORGOTTEN   what the receiver says about a message
//! packet  the first 20 bytes that SYMBOL and the answers share
//! keys    pre-shared key and incarnations -> the keys of both directions
//! seal    authenticate headers, encrypt payloads
//! window  which packet numbers were seen
//! cursor  bounds-checked reading
//! ```
//!
//! There are two kinds of types: the packets of this module are *valid values*, made by `parse`
//! out of bytes that were checked; raw bytes stay `&[u8]`. Parsing proves shape only: nothing
//! parsed may be believed until [`seal::Opener::open`] has accepted the packet.

pub mod answer;
mod cursor;
pub mod hello;
pub mod keys;
pub mod packet;
pub mod seal;
pub mod symbol;
pub mod window;

pub use answer::{Answer, Arrivals, RejectReason, Verdict};
pub use hello::{Hello, HelloAck};
pub use packet::{Kind, Prefix, Role};
pub use symbol::SymbolHeader;

/// Why bytes are not a packet of ours. The blame is the peer's, or a stranger's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The packet ends before its fields do.
    #[error("packet is too short: its fields need {needed} bytes, {got} came")]
    TooShort {
        /// Bytes up to the end of the field that was cut.
        needed: usize,
        /// Bytes in the packet.
        got: usize,
    },
    /// The packet goes on after its last field.
    #[error("packet is too long: its fields end after {expected} bytes, {got} came")]
    TooLong {
        /// Bytes that the fields take.
        expected: usize,
        /// Bytes in the packet.
        got: usize,
    },
    /// The version nibble is not ours.
    #[error("packet has version {got}, this endpoint speaks version {}", packet::VERSION)]
    Version {
        /// The version that came.
        got: u8,
    },
    /// The kind nibble, or a number that stands for an enumerated value, is not defined.
    #[error("packet field `{field}` has the undefined value {got}")]
    Undefined {
        /// The field's name in the specification.
        field: &'static str,
        /// The value that came.
        got: u8,
    },
}
