//! HELLO and RETRY: the first round trip, after which the responder knows that the initiator
//! receives at its address.
//!
//! Both have the same length, so that an answer is never larger than what caused it.

use super::{
    super::error::WireError,
    address,
    head::{HEAD_LEN, Head, Kind},
    mac::{HelloKey, MAC_LEN, holder},
    token::Token,
};
use crate::id::PathId;
use bytes::BufMut;
use std::net::SocketAddr;

/// Bytes of a HELLO.
pub const HELLO_LEN: usize = HEAD_LEN + 4 + HELLO_PADDING + MAC_LEN;
/// Bytes of a RETRY.
pub const RETRY_LEN: usize = HEAD_LEN + 16 + 18 + 2 + MAC_LEN;

/// Zeros that make a HELLO as long as its answer.
const HELLO_PADDING: usize = 32;

/// "Is this session still held; and if not, may I open another?"
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The path that the packet was sent on.
    pub path: PathId,
    /// How many HELLOs and OPENs of this handshake were sent before; stays at 255.
    pub count: u8,
    /// Drawn anew for each handshake. Answers bring it back.
    pub nonce: u64,
    /// The session id that the initiator's symbols have carried so far; 0 for none.
    pub current: u32,
}

/// "Come again, with this token."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The path of the packet that this answers.
    pub path: PathId,
    /// It answers an OPEN whose token was no good, not a HELLO.
    pub token_refused: bool,
    /// The nonce of the packet that this answers.
    pub nonce: u64,
    /// What OPEN has to bring.
    pub token: Token,
    /// Where the packet that this answers came from, as the responder saw it.
    pub observed: SocketAddr,
}

impl Hello {
    /// Appends the packet.
    pub fn write(&self, key: &HelloKey, out: &mut Vec<u8>) {
        let start = out.len();
        let head = Head { second: self.count, path: self.path, nonce: self.nonce };
        head.write(Kind::Hello, out);
        out.put_u32(self.current);
        out.put_bytes(0, HELLO_PADDING);
        key.packets.append(start, out);
    }

    /// Reads a HELLO, and says which of `keys` authenticates it; `None` where none does.
    ///
    /// # Errors
    ///
    /// Another version, kind or length.
    pub fn parse(keys: &[HelloKey], packet: &[u8]) -> Result<Option<(usize, Self)>, WireError> {
        let (head, mut rest) = Head::read(Kind::Hello, HELLO_LEN, packet)?;
        let hello =
            Self { path: head.path, count: head.second, nonce: head.nonce, current: rest.u32()? };
        Ok(holder(keys, packet).map(|key| (key, hello)))
    }
}

impl Retry {
    /// Appends the packet.
    pub fn write(&self, key: &HelloKey, out: &mut Vec<u8>) {
        let start = out.len();
        let second = u8::from(self.token_refused);
        Head { second, path: self.path, nonce: self.nonce }.write(Kind::Retry, out);
        out.put_slice(&self.token.0);
        address::write(self.observed, out);
        out.put_u16(0);
        key.packets.append(start, out);
    }

    /// Reads a RETRY; `None` where it is not authentic.
    ///
    /// # Errors
    ///
    /// Another version, kind or length, or an undefined number.
    pub fn parse(key: &HelloKey, packet: &[u8]) -> Result<Option<Self>, WireError> {
        let (head, mut rest) = Head::read(Kind::Retry, RETRY_LEN, packet)?;
        let token_refused = match head.second {
            0 => false,
            1 => true,
            got => return Err(WireError::Undefined { field: "answers", got }),
        };
        let retry = Self {
            path: head.path,
            token_refused,
            nonce: head.nonce,
            token: Token(rest.array()?),
            observed: address::read(&mut rest)?,
        };
        Ok(key.packets.holds(packet).then_some(retry))
    }
}
