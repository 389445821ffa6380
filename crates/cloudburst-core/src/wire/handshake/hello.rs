//! HELLO and RETRY: the first round trip, after which the responder knows that the initiator
//! receives at its address.
//!
//! Both have the same length, so that an answer is never larger than what caused it.

use super::{
    super::{
        error::WireError,
        packet::Kind,
        seal::{OpenError, Opener, Sealer, TAG_LEN},
    },
    address,
    head::{HEAD_LEN, Head},
    mac::{HelloKey, MAC_LEN, holder},
    token::Token,
};
use crate::id::{PathId, SessionId};
use bytes::BufMut;
use std::net::SocketAddr;

/// Bytes of a HELLO.
pub const HELLO_LEN: usize = SEALED_LEN + HELLO_PADDING + MAC_LEN;
/// Bytes of a RETRY.
pub const RETRY_LEN: usize = HEAD_LEN + 16 + 18 + 2 + MAC_LEN;

/// Bytes of a HELLO that the session in use authenticates, and the same with their tag.
const CLEAR_LEN: usize = HEAD_LEN + 4 + 6;
const SEALED_LEN: usize = CLEAR_LEN + TAG_LEN;
/// Zeros that make a HELLO as long as its answer.
const HELLO_PADDING: usize = 10;

/// Asks whether a session is still held, or for a token to open one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The path that the packet was sent on.
    pub path: PathId,
    /// How many HELLOs and OPENs of this handshake were sent before; stays at 255.
    pub count: u8,
    /// Drawn anew for each handshake. Answers bring it back.
    pub nonce: u64,
    /// The session id that the initiator's symbols have carried so far; 0 for none.
    pub current: SessionId,
    /// The number of this packet among the symbols of that session.
    pub number: u64,
}

/// Hands out a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The path of the packet that this answers.
    pub path: PathId,
    /// It answers an OPEN whose token was no good, not a HELLO.
    pub token_refused: bool,
    /// The nonce of the packet that this answers.
    pub nonce: u64,
    /// Which way back this takes, as the responder counts them.
    pub turn: u8,
    /// What OPEN has to bring.
    pub token: Token,
    /// Where the packet that this answers came from, as the responder saw it.
    pub observed: SocketAddr,
}

impl Hello {
    /// Appends the packet. With the sealer of the session in use, whose next number it takes, it
    /// asks whether that session is still held; without, it wants another.
    pub fn write(
        path: PathId,
        count: u8,
        nonce: u64,
        current: Option<&mut Sealer>,
        key: &HelloKey,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        Head { second: count, path, nonce }.write(Kind::Hello, out);
        if let Some(sealer) = current {
            out.put_u32(sealer.session().0);
            out.extend_from_slice(&sealer.next_number().to_be_bytes()[2..]);
            sealer.seal(out, start, CLEAR_LEN);
        } else {
            out.put_bytes(0, SEALED_LEN - HEAD_LEN);
        }
        out.put_bytes(0, HELLO_PADDING);
        key.0.append(start, out);
    }

    /// Authenticates the HELLO as a packet of `opener`'s session. Succeeds once; a replay is refused.
    ///
    /// # Errors
    ///
    /// A replay, or a packet that another session's end made.
    pub fn open(&self, packet: &[u8], opener: &mut Opener) -> Result<(), OpenError> {
        let mut sealed = [0; SEALED_LEN];
        sealed.copy_from_slice(&packet[..SEALED_LEN]);
        opener.open(self.number, &mut sealed, CLEAR_LEN).map(drop)
    }

    /// Reads a HELLO, and says which of `keys` authenticates it; `None` where none does.
    ///
    /// # Errors
    ///
    /// Another version, kind or length.
    pub fn parse(keys: &[HelloKey], packet: &[u8]) -> Result<Option<(usize, Self)>, WireError> {
        let (head, mut rest) = Head::read(Kind::Hello, HELLO_LEN, packet)?;
        let (current, number) = (SessionId(rest.u32()?), rest.u48()?);
        let Head { path, second: count, nonce } = head;
        let hello = Self { path, count, nonce, current, number };
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
        out.put_u8(self.turn);
        out.put_u8(0);
        key.0.append(start, out);
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
        let (token, observed) = (Token(rest.array()?), address::read(&mut rest)?);
        let Head { path, nonce, .. } = head;
        let turn = rest.u8()?;
        let retry = Self { path, token_refused, nonce, turn, token, observed };
        Ok(key.0.holds(packet).then_some(retry))
    }
}
