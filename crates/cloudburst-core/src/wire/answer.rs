//! STOP, STATUS, BUSY, REJECT, FORGOTTEN: what a receiver says about a message.

use super::{
    cursor::Cursor,
    error::WireError,
    packet::{Kind, PREFIX_LEN, Prefix},
    seal::TAG_LEN,
};
use crate::id::{Digest, MessageId, PathId};

/// The `acknowledged` of an answer that no symbol caused.
pub const NONE_ACKNOWLEDGED: u64 = u64::MAX;

const FIELDS_LEN: usize = 20;
/// Bytes of one [`Arrivals`].
const ARRIVAL_LEN: usize = 4;

/// Why a message will never be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RejectReason {
    /// It is longer than the receiver accepts.
    #[error("the message is longer than the receiver accepts")]
    TooLarge = 1,
    /// Its code, its symbol size or its numbers make no sense to the receiver.
    #[error("the receiver does not know the message's code or shape")]
    Unsupported = 2,
    /// Its blocks did not match their digests when they were decoded, twice.
    #[error("blocks of the message did not match their digests, twice")]
    Corrupt = 3,
    /// The receiver is closing and takes no new messages.
    #[error("the receiver is closing")]
    Closing = 4,
}

/// How many symbols of a message arrived on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// The path, in the sender's numbering.
    pub path: PathId,
    /// Symbols that arrived on it; saturates.
    pub count: u16,
}

/// The receiver's word on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The block is decoded and verified: send no more of it.
    BlockDone {
        /// The digest of what was decoded.
        digest: Digest,
        /// Arrivals of the whole message so far.
        arrivals: Vec<Arrivals>,
    },
    /// The whole message is decoded, verified and in the application's queue.
    Delivered {
        /// The message digest of what was delivered.
        digest: Digest,
        /// Arrivals of the whole message.
        arrivals: Vec<Arrivals>,
    },
    /// The block is not decoded yet.
    Status {
        /// At least this many more symbols are needed.
        needed: u16,
        /// Arrivals of the whole message so far.
        arrivals: Vec<Arrivals>,
    },
    /// No room now: pause, then probe.
    Busy,
    /// Never.
    Reject(RejectReason),
    /// The blocks that were done are forgotten, and nothing was delivered: begin again.
    Forgotten,
}

/// A packet in answer to a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The message.
    pub message: MessageId,
    /// The block that the answered symbol belongs to.
    pub block: u32,
    /// The packet number of the answered symbol, or [`NONE_ACKNOWLEDGED`].
    pub acknowledged: u64,
    /// What the receiver says.
    pub verdict: Verdict,
}

impl Answer {
    /// Bytes of the largest sealed answer that has no arrivals.
    const LARGEST_FIXED: usize = PREFIX_LEN + FIELDS_LEN + 1 + 16 + 1 + TAG_LEN;

    /// The kind of packet that carries this answer.
    pub const fn kind(&self) -> Kind {
        match self.verdict {
            Verdict::BlockDone { .. } | Verdict::Delivered { .. } => Kind::Stop,
            Verdict::Status { .. } => Kind::Status,
            Verdict::Busy => Kind::Busy,
            Verdict::Reject(_) => Kind::Reject,
            Verdict::Forgotten => Kind::Forgotten,
        }
    }

    /// Bytes of the packet, its tag included.
    pub const fn sealed_len(&self) -> usize {
        let fields = match &self.verdict {
            Verdict::BlockDone { arrivals, .. } | Verdict::Delivered { arrivals, .. } => {
                1 + 16 + 1 + ARRIVAL_LEN * arrivals.len()
            }
            Verdict::Status { arrivals, .. } => 2 + 1 + ARRIVAL_LEN * arrivals.len(),
            Verdict::Busy | Verdict::Forgotten => 0,
            Verdict::Reject(_) => 1,
        };
        PREFIX_LEN + FIELDS_LEN + fields + TAG_LEN
    }

    /// How many [`Arrivals`] fit where the sealed answer may have at most `limit` bytes, so that
    /// no answer is larger than what caused it.
    pub const fn arrivals_within(limit: usize) -> usize {
        let fit = limit.saturating_sub(Self::LARGEST_FIXED) / ARRIVAL_LEN;
        if fit > u8::MAX as usize { u8::MAX as usize } else { fit }
    }

    /// Appends the packet without its tag.
    pub fn write(&self, prefix: &Prefix, out: &mut Vec<u8>) {
        debug_assert_eq!(prefix.kind, self.kind());
        prefix.write(out);
        out.extend_from_slice(&self.message.0.to_be_bytes());
        out.extend_from_slice(&self.block.to_be_bytes());
        out.extend_from_slice(&self.acknowledged.to_be_bytes());
        match &self.verdict {
            Verdict::BlockDone { digest, arrivals } => {
                out.push(0);
                out.extend_from_slice(&digest.0);
                write_arrivals(arrivals, out);
            }
            Verdict::Delivered { digest, arrivals } => {
                out.push(1);
                out.extend_from_slice(&digest.0);
                write_arrivals(arrivals, out);
            }
            Verdict::Status { needed, arrivals } => {
                out.extend_from_slice(&needed.to_be_bytes());
                write_arrivals(arrivals, out);
            }
            Verdict::Busy | Verdict::Forgotten => {}
            Verdict::Reject(reason) => out.push(*reason as u8),
        }
    }

    /// Reads an answer and checks that the packet ends where its fields and its tag do.
    ///
    /// # Errors
    ///
    /// A packet of another kind, of another length than its fields say, or with an undefined
    /// number.
    pub fn parse(packet: &[u8]) -> Result<(Prefix, Self), WireError> {
        let mut cursor = Cursor::new(packet);
        let prefix = Prefix::read(&mut cursor)?;
        let message = MessageId(cursor.u64()?);
        let block = cursor.u32()?;
        let acknowledged = cursor.u64()?;
        let verdict = match prefix.kind {
            Kind::Stop => {
                let scope = cursor.u8()?;
                let digest = Digest(cursor.array()?);
                let arrivals = read_arrivals(&mut cursor)?;
                match scope {
                    0 => Verdict::BlockDone { digest, arrivals },
                    1 => Verdict::Delivered { digest, arrivals },
                    got => return Err(WireError::Undefined { field: "scope", got }),
                }
            }
            Kind::Status => {
                Verdict::Status { needed: cursor.u16()?, arrivals: read_arrivals(&mut cursor)? }
            }
            Kind::Busy => Verdict::Busy,
            Kind::Forgotten => Verdict::Forgotten,
            Kind::Reject => Verdict::Reject(match cursor.u8()? {
                1 => RejectReason::TooLarge,
                2 => RejectReason::Unsupported,
                3 => RejectReason::Corrupt,
                4 => RejectReason::Closing,
                got => return Err(WireError::Undefined { field: "reason", got }),
            }),
            Kind::Hello | Kind::HelloAck | Kind::Symbol => {
                return Err(WireError::Undefined { field: "kind", got: prefix.kind as u8 });
            }
        };
        let (expected, got) = (cursor.position() + TAG_LEN, packet.len());
        if cursor.remaining() < TAG_LEN {
            return Err(WireError::TooShort { needed: expected, got });
        }
        if cursor.remaining() > TAG_LEN {
            return Err(WireError::TooLong { expected, got });
        }
        Ok((prefix, Self { message, block, acknowledged, verdict }))
    }
}

fn write_arrivals(arrivals: &[Arrivals], out: &mut Vec<u8>) {
    let count = u8::try_from(arrivals.len()).unwrap_or(u8::MAX);
    out.push(count);
    for Arrivals { path, count } in &arrivals[..usize::from(count)] {
        out.extend_from_slice(&path.0.to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
    }
}

fn read_arrivals(cursor: &mut Cursor<'_>) -> Result<Vec<Arrivals>, WireError> {
    let count = usize::from(cursor.u8()?);
    let mut fields = Cursor::new(cursor.take(count * ARRIVAL_LEN)?);
    (0..count).map(|_| Ok(Arrivals { path: PathId(fields.u16()?), count: fields.u16()? })).collect()
}
