//! SYMBOL: one encoded symbol of one block of one message (paper, Figure 4).

use super::{
    cursor::Cursor,
    error::WireError,
    packet::{Kind, PREFIX_LEN, Prefix},
    seal::TAG_LEN,
};
use crate::id::{Digest, MessageId};

/// Bytes of the fields between the prefix and the index set.
const FIELDS_LEN: usize = 49;

/// Bytes of a SYMBOL packet that are not index set or payload.
pub const SYMBOL_OVERHEAD: usize = PREFIX_LEN + FIELDS_LEN + TAG_LEN;

/// Everything in a SYMBOL packet before the payload, the index set apart.
///
/// All symbols of a message agree in `length`, `symbol_size` and `code`; the receiver holds
/// the message to what the first authentic one said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolHeader {
    /// The message.
    pub message: MessageId,
    /// The message's size in bytes.
    pub length: u64,
    /// `message - age` is the oldest message of this session that its sender has not finished
    /// with: the receiver may forget all that are older. Saturates.
    pub age: u32,
    /// Which block of the message, from 0.
    pub block: u32,
    /// Which symbol of the block, from 0.
    pub symbol: u32,
    /// Bytes in each symbol of the message; also the payload's length.
    pub symbol_size: u16,
    /// The code's number and parameter.
    pub code: [u8; 2],
    /// The block's digest.
    pub digest: Digest,
}

/// A SYMBOL packet whose shape was checked, its payload still sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolView<'a> {
    /// Path, session and packet number.
    pub prefix: Prefix,
    /// The fields.
    pub header: SymbolHeader,
    /// The indices of the source symbols in this one, where the code sends them.
    pub index_set: &'a [u8],
    /// Where in the packet the payload begins; all before it is authenticated in the clear.
    pub payload_at: usize,
}

impl SymbolHeader {
    /// Appends prefix, fields and index set; the payload and the tag come after.
    ///
    /// # Panics
    ///
    /// When the index set is longer than 255 bytes, which no block of 128 symbols needs.
    pub fn write(&self, prefix: &Prefix, index_set: &[u8], out: &mut Vec<u8>) {
        debug_assert_eq!(prefix.kind, Kind::Symbol);
        prefix.write(out);
        out.extend_from_slice(&self.message.0.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
        out.extend_from_slice(&self.age.to_be_bytes());
        out.extend_from_slice(&self.block.to_be_bytes());
        out.extend_from_slice(&self.symbol.to_be_bytes());
        out.extend_from_slice(&self.symbol_size.to_be_bytes());
        out.extend_from_slice(&self.code);
        out.extend_from_slice(&self.digest.0);
        out.push(u8::try_from(index_set.len()).expect("a block's index set has at most 16 bytes"));
        out.extend_from_slice(index_set);
    }
}

impl<'a> SymbolView<'a> {
    /// Checks the shape of a SYMBOL packet.
    ///
    /// # Errors
    ///
    /// Any packet whose length is not what its fields say, or that is no SYMBOL.
    pub fn parse(packet: &'a [u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new(packet);
        let prefix = Prefix::read(&mut cursor)?;
        if prefix.kind != Kind::Symbol {
            return Err(WireError::Undefined { field: "kind", got: prefix.kind as u8 });
        }
        let header = SymbolHeader {
            message: MessageId(cursor.u64()?),
            length: cursor.u64()?,
            age: cursor.u32()?,
            block: cursor.u32()?,
            symbol: cursor.u32()?,
            symbol_size: cursor.u16()?,
            code: cursor.array()?,
            digest: Digest(cursor.array()?),
        };
        let index_set_len = cursor.u8()?;
        let index_set = cursor.take(usize::from(index_set_len))?;
        let payload_at = cursor.position();
        let (expected, got) =
            (payload_at + usize::from(header.symbol_size) + TAG_LEN, packet.len());
        if got < expected {
            return Err(WireError::TooShort { needed: expected, got });
        }
        if got > expected {
            return Err(WireError::TooLong { expected, got });
        }
        Ok(Self { prefix, header, index_set, payload_at })
    }
}
