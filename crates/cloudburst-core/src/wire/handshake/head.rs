//! The first 12 bytes of every handshake packet.

use super::super::{cursor::Cursor, error::WireError, packet::Kind};
use crate::id::PathId;
use bytes::BufMut;

/// Bytes of a [`Head`].
pub(super) const HEAD_LEN: usize = 12;

/// The fields common to all handshake packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The second byte, whose meaning depends on the kind.
    pub(super) second: u8,
    pub(super) path: PathId,
    pub(super) nonce: u64,
}

impl Head {
    /// Appends the head of a packet of this version.
    pub(super) fn write(&self, kind: Kind, out: &mut Vec<u8>) {
        self.write_after(kind.first_byte(), out);
    }

    /// Appends a head that begins with `first`.
    pub(super) fn write_after(&self, first: u8, out: &mut Vec<u8>) {
        out.put_u8(first);
        out.put_u8(self.second);
        out.put_u16(self.path.0);
        out.put_u64(self.nonce);
    }

    /// Reads the head of a packet that must be of this kind and have `len` bytes. Returns it with a
    /// cursor at the rest.
    pub(super) fn read(
        kind: Kind,
        len: usize,
        packet: &[u8],
    ) -> Result<(Self, Cursor<'_>), WireError> {
        let read = Self::read_padded(kind, len, packet)?;
        check_len(len, packet)?;
        Ok(read)
    }

    /// [`read`](Self::read) for a packet that may also be longer.
    pub(super) fn read_padded(
        kind: Kind,
        least: usize,
        packet: &[u8],
    ) -> Result<(Self, Cursor<'_>), WireError> {
        let mut cursor = Cursor::new(packet);
        let first = cursor.u8()?;
        if Kind::of(packet)? != kind {
            return Err(WireError::Undefined { field: "kind", got: first & 0x0f });
        }
        if packet.len() < least {
            return Err(WireError::TooShort { needed: least, got: packet.len() });
        }
        Ok((Self::read_after_first(&mut cursor)?, cursor))
    }

    /// Returns the nonce of a handshake packet, if that is long enough. Nothing else is checked.
    pub(super) fn nonce_of(packet: &[u8]) -> Option<u64> {
        Self::read_after_first(&mut Cursor::new(packet.get(1..)?)).ok().map(|head| head.nonce)
    }

    /// Reads all of a head except its first byte.
    pub(super) fn read_after_first(cursor: &mut Cursor<'_>) -> Result<Self, WireError> {
        Ok(Self { second: cursor.u8()?, path: PathId(cursor.u16()?), nonce: cursor.u64()? })
    }
}

/// Checks that `packet` has exactly `len` bytes.
pub(super) const fn check_len(len: usize, packet: &[u8]) -> Result<(), WireError> {
    let got = packet.len();
    if got < len {
        return Err(WireError::TooShort { needed: len, got });
    }
    if got > len {
        return Err(WireError::TooLong { expected: len, got });
    }
    Ok(())
}
