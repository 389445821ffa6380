//! OPEN and ACCEPT: the second round trip, which carries the two messages of the Noise handshake.

use super::{
    super::{error::WireError, packet::Kind},
    fields::{AcceptFields, OpenFields},
    head::{HEAD_LEN, Head},
    mac::{HelloKey, MAC_LEN, holder},
    primitives::sealed_len,
    token::Token,
};
use crate::id::PathId;

/// Bytes of the Noise message in an OPEN.
pub const OPEN_MESSAGE_LEN: usize = sealed_len(OpenFields::LEN);
/// Bytes of the Noise message in an ACCEPT.
pub const ACCEPT_MESSAGE_LEN: usize = sealed_len(AcceptFields::LEN);
/// Bytes of an OPEN.
pub const OPEN_LEN: usize = HEAD_LEN + 16 + OPEN_MESSAGE_LEN + MAC_LEN;
/// Bytes of an ACCEPT.
pub const ACCEPT_LEN: usize = HEAD_LEN + ACCEPT_MESSAGE_LEN + MAC_LEN;

/// The return path of an [`Open`] that leaves the choice to the responder.
pub const ANY_RETURN_PATH: u8 = 255;

/// OPEN: returns the token, with Noise message 1.
///
/// The initiator makes it with [`Initiation::open`](super::Initiation::open). The responder checks
/// the token and continues with [`read`](Self::read).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The path that the packet was sent on.
    pub path: PathId,
    /// The return path of the RETRY that this answers, so that the ACCEPT takes the same path, which
    /// is known to work; [`ANY_RETURN_PATH`] in a copy that does not answer a RETRY.
    pub return_path: u8,
    /// The nonce of the handshake.
    pub nonce: u64,
    /// The token from the responder's RETRY.
    pub token: Token,
    /// Noise message 1.
    pub message: [u8; OPEN_MESSAGE_LEN],
}

/// ACCEPT: carries Noise message 2.
///
/// The responder makes the message with [`Response::accept`](super::Response::accept), and sends it
/// again in answer to each copy of the OPEN. The initiator continues with
/// [`Initiation::accept`](super::Initiation::accept).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The path of the OPEN that this answers.
    pub path: PathId,
    /// The nonce of the handshake.
    pub nonce: u64,
    /// Noise message 2.
    pub message: [u8; ACCEPT_MESSAGE_LEN],
}

impl Open {
    /// Appends the packet.
    pub fn write(&self, key: &HelloKey, out: &mut Vec<u8>) {
        let start = out.len();
        let head = Head { second: self.return_path, path: self.path, nonce: self.nonce };
        head.write(Kind::Open, out);
        out.extend_from_slice(&self.token.0);
        out.extend_from_slice(&self.message);
        key.append(start, out);
    }

    /// Reads an OPEN and returns which of `keys` authenticates it; `None` if none does.
    ///
    /// Its message stays sealed. It may be a replay by a stranger: check the token before
    /// [reading](Self::read) it.
    ///
    /// # Errors
    ///
    /// [`WireError`] for another version, kind or length.
    pub fn parse(keys: &[HelloKey], packet: &[u8]) -> Result<Option<(usize, Self)>, WireError> {
        let (head, mut rest) = Head::read(Kind::Open, OPEN_LEN, packet)?;
        let open = Self {
            path: head.path,
            return_path: head.second,
            nonce: head.nonce,
            token: Token(rest.array()?),
            message: rest.array()?,
        };
        Ok(holder(keys, packet).map(|key| (key, open)))
    }
}

impl Accept {
    /// Appends the packet.
    pub fn write(&self, key: &HelloKey, out: &mut Vec<u8>) {
        let start = out.len();
        Head { second: 0, path: self.path, nonce: self.nonce }.write(Kind::Accept, out);
        out.extend_from_slice(&self.message);
        key.append(start, out);
    }

    /// Reads an ACCEPT; returns `None` if it is not authentic. Its message stays sealed.
    ///
    /// # Errors
    ///
    /// [`WireError`] for another version, kind or length.
    pub fn parse(key: &HelloKey, packet: &[u8]) -> Result<Option<Self>, WireError> {
        let (head, mut rest) = Head::read(Kind::Accept, ACCEPT_LEN, packet)?;
        let accept = Self { path: head.path, nonce: head.nonce, message: rest.array()? };
        Ok(key.holds(packet).then_some(accept))
    }
}
