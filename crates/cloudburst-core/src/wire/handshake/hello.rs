//! HELLO and RETRY: the first round trip, after which the responder knows that the initiator
//! receives at its address.
//!
//! A HELLO is at least as long as a RETRY, so that an answer is never larger than its cause.

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

/// Bytes of the shortest HELLO.
pub const HELLO_LEN: usize = SEALED_LEN + HELLO_PADDING + MAC_LEN;
/// Bytes of a RETRY.
pub const RETRY_LEN: usize = HEAD_LEN + 16 + 18 + 2 + MAC_LEN;

/// Bytes of a HELLO that the current session authenticates, without and with their tag.
const CLEAR_LEN: usize = HEAD_LEN + 4 + 6;
const SEALED_LEN: usize = CLEAR_LEN + TAG_LEN;
/// Zeros that make the shortest HELLO as long as its answer.
const HELLO_PADDING: usize = 10;

/// HELLO: requests confirmation that a session is still held, or a token to open one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The path that the packet was sent on.
    pub path: PathId,
    /// How many HELLOs and OPENs of this handshake were sent before; saturates at 255.
    pub count: u8,
    /// Drawn anew for each handshake. Answers return it.
    pub nonce: u64,
    /// The session id that the initiator's symbols carry at present; 0 for none.
    pub current: SessionId,
    /// The packet number of this packet among the symbols of that session.
    pub number: u64,
}

/// RETRY: issues a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The path of the packet that this answers.
    pub path: PathId,
    /// Whether it answers an OPEN with an invalid token, not a HELLO.
    pub token_refused: bool,
    /// The nonce of the packet that this answers.
    pub nonce: u64,
    /// The reverse path of this packet, as the responder counts them.
    pub return_path: u8,
    /// The token that OPEN must return.
    pub token: Token,
    /// The source address of the packet that this answers, as the responder observed it.
    pub observed: SocketAddr,
}

impl Hello {
    /// Appends the packet. With the sealer of the current session, whose next number it takes, it
    /// requests confirmation that this session is still held; without, it requests a new one.
    pub fn write(
        path: PathId,
        count: u8,
        nonce: u64,
        current: Option<&mut Sealer>,
        key: &HelloKey,
        out: &mut Vec<u8>,
    ) {
        Self::write_padded(HELLO_LEN, path, count, nonce, current, key, out);
    }

    /// [`write`](Self::write) for a packet of `len` bytes, at least [`HELLO_LEN`].
    pub fn write_padded(
        len: usize,
        path: PathId,
        count: u8,
        nonce: u64,
        current: Option<&mut Sealer>,
        key: &HelloKey,
        out: &mut Vec<u8>,
    ) {
        debug_assert!(len >= HELLO_LEN, "{len} bytes are too few");
        let start = out.len();
        Head { second: count, path, nonce }.write(Kind::Hello, out);
        // Sealed like a symbol of the session, and accepted once: knowledge of the pre-shared key
        // alone, or a replay, cannot keep a session alive.
        if let Some(sealer) = current {
            out.put_u32(sealer.session().0);
            out.extend_from_slice(&sealer.next_number().to_be_bytes()[2..]);
            sealer.seal(out, start, CLEAR_LEN);
        } else {
            out.put_bytes(0, SEALED_LEN - HEAD_LEN);
        }
        out.put_bytes(0, len.saturating_sub(SEALED_LEN + MAC_LEN));
        key.append(start, out);
    }

    /// Authenticates the HELLO as a packet of `opener`'s session. Succeeds once; a replay is refused.
    ///
    /// # Errors
    ///
    /// [`OpenError`] for a replay, or for a packet that was not made in this session.
    pub fn open(&self, packet: &[u8], opener: &mut Opener) -> Result<(), OpenError> {
        let mut sealed = [0; SEALED_LEN];
        sealed.copy_from_slice(&packet[..SEALED_LEN]);
        opener.open(self.number, &mut sealed, CLEAR_LEN).map(drop)
    }

    /// Reads a HELLO and returns which of `keys` authenticates it; `None` if none does.
    ///
    /// # Errors
    ///
    /// [`WireError`] for another version or kind, or too few bytes.
    pub fn parse(keys: &[HelloKey], packet: &[u8]) -> Result<Option<(usize, Self)>, WireError> {
        let (head, mut rest) = Head::read_padded(Kind::Hello, HELLO_LEN, packet)?;
        let current = SessionId(rest.u32()?);
        let number = rest.u48()?;
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
        out.put_u8(self.return_path);
        out.put_u8(0);
        key.append(start, out);
    }

    /// Reads a RETRY; returns `None` if it is not authentic.
    ///
    /// # Errors
    ///
    /// [`WireError`] for another version, kind or length, or an undefined number.
    pub fn parse(key: &HelloKey, packet: &[u8]) -> Result<Option<Self>, WireError> {
        let (head, mut rest) = Head::read(Kind::Retry, RETRY_LEN, packet)?;
        let token_refused = match head.second {
            0 => false,
            1 => true,
            got => return Err(WireError::Undefined { field: "answers", got }),
        };
        let token = Token(rest.array()?);
        let observed = address::read(&mut rest)?;
        let Head { path, nonce, .. } = head;
        let return_path = rest.u8()?;
        let retry = Self { path, token_refused, nonce, return_path, token, observed };
        Ok(key.holds(packet).then_some(retry))
    }
}
