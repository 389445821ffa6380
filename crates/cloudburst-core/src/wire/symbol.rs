//! SYMBOL: one encoded symbol of one block of one message (paper, Figure 4).

use super::{
    cursor::Cursor,
    error::WireError,
    keys::{HEADER_TAG_LEN, HeaderKey, HeaderTag},
    packet::{Kind, PREFIX_LEN, Prefix},
    seal::TAG_LEN,
};
use crate::id::{Digest, MessageId};
use bytes::BufMut;

/// Bytes of the fields between the prefix and the index set.
// Fixed widths: variable-length integers would give the packets of a block different lengths, where
// segmentation offload wants equal ones, and symbol sizes that depend on numbers that grow.
const FIELDS_LEN: usize = 26;

/// Bytes of a SYMBOL packet that are not index set or payload.
pub const SYMBOL_OVERHEAD: usize = PREFIX_LEN + FIELDS_LEN + TAG_LEN;

/// Bytes of the longest index set: a bit for each of 128 source symbols.
const MAX_INDEX_SET: usize = 16;

/// Additional bytes of a SYMBOL of a pulled message.
pub const UNSCHEDULED_LEN: usize = 2;

/// Bytes of the smallest symbol: a block ends in its digest, and the last symbol must hold all of it.
pub const MIN_SYMBOL_SIZE: usize = size_of::<Digest>();
/// Bytes of a probe, which carries no symbol, of a message that is not pulled.
pub const PROBE_LEN: usize = SYMBOL_OVERHEAD;
/// Bytes of the smallest SYMBOL packet that carries a symbol.
pub const MIN_SYMBOL_LEN: usize = SYMBOL_OVERHEAD + MIN_SYMBOL_SIZE;

/// Message ids are below this: they have 48 bits.
pub const MAX_MESSAGE_ID: u64 = 1 << 48;
/// The [`age`](SymbolHeader::age), of 24 bits, that gives no low watermark.
pub const NO_AGE: u32 = (1 << 24) - 1;

/// The fields of a SYMBOL packet between the prefix and the payload, except the index set.
///
/// All symbols of a message agree in `length`, `symbol_size` and `code`; the receiver holds
/// the message to the values in the first authentic one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolHeader {
    /// The sequence number of this symbol in its class and path, modulo 2^16, from any initial
    /// value. Where paths preserve the order, a gap is a loss.
    pub path_number: u16,
    /// The message.
    pub message: MessageId,
    /// The message's size in bytes.
    pub length: u32,
    /// `message - age` is the oldest message of this session that its sender has not finished
    /// with: the receiver may forget all older ones. [`NO_AGE`] gives no such bound.
    pub age: u32,
    /// The index of the block in the message, from 0; 24 bits.
    pub block: u32,
    /// The ESI of the symbol in the block, from 0. In a probe: the number of symbols sent.
    pub symbol: u32,
    /// Bytes in each symbol of the message; also the payload's length, except in a probe, which has
    /// none.
    pub symbol_size: u16,
    /// The code's number and parameter.
    pub code: [u8; 2],
    /// In a pulled message: the number of symbols of the block that are sent unscheduled, including those
    /// still to be sent; saturates. In others: absent, and 0.
    pub unscheduled: u16,
}

/// A SYMBOL packet whose format was checked and whose payload is still sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolView<'a> {
    /// Class, path, session and packet number.
    pub prefix: Prefix,
    /// The fields.
    pub header: SymbolHeader,
    /// The indices of the source symbols in this one, if the code sends them.
    pub index_set: &'a [u8],
    /// The offset of the payload in the packet; all bytes before it are authenticated in the clear.
    pub payload_at: usize,
}

/// A SYMBOL packet that a switch has trimmed: its header, authenticated by a tag. Any remaining bytes of
/// index set and payload are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimmedView<'a> {
    /// Class, path, session and packet number.
    pub prefix: Prefix,
    /// The fields.
    pub header: SymbolHeader,
    /// The bytes of prefix and fields.
    pub authenticated: &'a [u8],
    /// Their tag.
    pub tag: HeaderTag,
}

impl SymbolHeader {
    /// Returns the oldest message that the sender has not finished with, according to the header.
    pub fn low_watermark(&self) -> MessageId {
        let age = if self.age == NO_AGE { u64::MAX } else { self.age.into() };
        MessageId(self.message.0.saturating_sub(age))
    }

    /// Appends prefix, fields, header tag if there is a `header_key`, and index set; the payload follows.
    /// The header tag covers everything before it.
    pub fn write(
        &self,
        prefix: &Prefix,
        header_key: Option<&HeaderKey>,
        index_set: &[u8],
        out: &mut Vec<u8>,
    ) {
        debug_assert_eq!(prefix.kind, Kind::Symbol);
        let start = out.len();
        prefix.write(out);
        // Appended at once, because each append to a vector checks its capacity.
        let mut fields = [0; FIELDS_LEN];
        let mut rest = &mut fields[..];
        rest.put_u16(self.path_number);
        rest.put_uint(self.message.0, 6);
        rest.put_u32(self.length);
        rest.put_uint(self.age.into(), 3);
        rest.put_uint(self.block.into(), 3);
        rest.put_u32(self.symbol);
        rest.put_u16(self.symbol_size);
        rest.put_slice(&self.code);
        out.extend_from_slice(&fields);
        if prefix.pulled {
            out.extend_from_slice(&self.unscheduled.to_be_bytes());
        }
        // The tag precedes the index set and does not cover it, so that header and tag end at the
        // same byte with every code: 92 bytes of the frame over IPv4, within any trim size of 128.
        if let Some(key) = header_key {
            let tag = key.tag(&out[start..]);
            out.extend_from_slice(&tag);
        }
        out.extend_from_slice(index_set);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<(Prefix, Self), WireError> {
        let prefix = Prefix::read(cursor)?;
        if prefix.kind != Kind::Symbol {
            return Err(WireError::Undefined { field: "kind", got: prefix.kind as u8 });
        }
        // One length check for all fields.
        let mut fields = Cursor::new(cursor.take(FIELDS_LEN)?);
        let header = Self {
            path_number: fields.u16()?,
            message: MessageId(fields.u48()?),
            length: fields.u32()?,
            age: fields.u24()?,
            block: fields.u24()?,
            symbol: fields.u32()?,
            symbol_size: fields.u16()?,
            code: fields.array()?,
            unscheduled: if prefix.pulled { cursor.u16()? } else { 0 },
        };
        if usize::from(header.symbol_size) < MIN_SYMBOL_SIZE {
            let got = header.symbol_size as u8;
            return Err(WireError::Undefined { field: "symbol_size", got });
        }
        Ok((prefix, header))
    }
}

impl<'a> SymbolView<'a> {
    /// Checks the format of a SYMBOL packet without a header tag.
    ///
    /// # Errors
    ///
    /// [`WireError`] if the packet is not a SYMBOL, if its length does not match its fields, or if its
    /// symbols are too short for a digest.
    pub fn parse(packet: &'a [u8]) -> Result<Self, WireError> {
        Self::read::<0>(packet)
    }

    /// Checks the format of a SYMBOL packet with a header tag. The tag is not verified: the tag of the
    /// whole packet authenticates the header.
    ///
    /// # Errors
    ///
    /// As for [`parse`](Self::parse).
    pub fn parse_tagged(packet: &'a [u8]) -> Result<Self, WireError> {
        Self::read::<HEADER_TAG_LEN>(packet)
    }

    fn read<const HEADER_TAG: usize>(packet: &'a [u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new(packet);
        let (prefix, header) = SymbolHeader::read(&mut cursor)?;
        cursor.take(HEADER_TAG)?;
        let sealed = sealed_len(&prefix, &header);
        let Some(index_set_len) = cursor.remaining().checked_sub(sealed) else {
            let needed = cursor.position() + sealed;
            return Err(WireError::TooShort { needed, got: packet.len() });
        };
        let longest = if prefix.probe { 0 } else { MAX_INDEX_SET };
        if index_set_len > longest {
            let expected = cursor.position() + longest + sealed;
            return Err(WireError::TooLong { expected, got: packet.len() });
        }
        let index_set = cursor.take(index_set_len)?;
        let payload_at = cursor.position();
        Ok(Self { prefix, header, index_set, payload_at })
    }
}

impl<'a> TrimmedView<'a> {
    /// Checks the format of a SYMBOL packet that is cut off somewhere after its header tag. A probe,
    /// which has no payload, is never trimmed.
    ///
    /// # Errors
    ///
    /// [`WireError`] if the packet is not a SYMBOL, is cut off before the end of the tag, or is whole.
    pub fn parse(packet: &'a [u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new(packet);
        let (prefix, header) = SymbolHeader::read(&mut cursor)?;
        let authenticated = &packet[..cursor.position()];
        let tag = cursor.array()?;
        let whole = cursor.position() + sealed_len(&prefix, &header);
        if prefix.probe || packet.len() >= whole {
            return Err(WireError::TooLong { expected: whole - 1, got: packet.len() });
        }
        Ok(Self { prefix, header, authenticated, tag })
    }
}

/// Returns the bytes of the payload and the tag.
fn sealed_len(prefix: &Prefix, header: &SymbolHeader) -> usize {
    TAG_LEN + if prefix.probe { 0 } else { usize::from(header.symbol_size) }
}
