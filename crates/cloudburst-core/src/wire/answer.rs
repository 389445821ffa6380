//! ANSWER: a packet of one or more reports from a receiver.
//!
//! STOP, NACK, PULL, BUSY, REJECT and FORGOTTEN report on a message, ALIVE and ENDED on the session.

use super::{
    cursor::Cursor,
    error::WireError,
    packet::{Kind, MAX_NUMBER, MAX_PATHS, PREFIX_LEN, Prefix},
    seal::TAG_LEN,
};
use crate::id::{Digest, MessageId, PathId};

/// The value of `acknowledged` in a report that no symbol caused.
pub const NONE_ACKNOWLEDGED: u64 = MAX_NUMBER;

/// Bytes of an ANSWER besides its reports.
pub const ANSWER_OVERHEAD: usize = PREFIX_LEN + TAG_LEN;

const STOP_BLOCK: u8 = 1;
const STOP_MESSAGE: u8 = 2;
const NACK: u8 = 3;
const BUSY: u8 = 4;
const REJECT: u8 = 5;
const FORGOTTEN: u8 = 6;
const ALIVE: u8 = 7;
const PULL: u8 = 8;
const ENDED: u8 = 9;

/// The flag of PULL for the last credit: no more follows unless symbols are lost.
const FLAG_FIN: u8 = 0b0000_0001;

/// Bytes of a report's type, message, block and acknowledged packet number.
const COMMON_LEN: usize = 16;
/// Bytes of [`Report::Alive`].
const ALIVE_LEN: usize = 9;
/// Bytes of [`Report::Ended`] without what it says of single messages.
const ENDED_LEN: usize = 8;
/// The maximum number of bytes in which ENDED says that single messages were delivered.
const MAX_DELIVERED_LEN: usize = 128;
/// Bytes of one [`Arrivals`].
const ARRIVAL_LEN: usize = 4;

/// Why a message will never be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RejectReason {
    /// The message is longer than the receiver accepts.
    #[error("the message is longer than the receiver accepts")]
    TooLarge = 1,
    /// The receiver does not support its code or symbol size, or its fields contradict each other.
    #[error("the receiver does not support the message's code or shape")]
    Unsupported = 2,
    /// Decoded blocks of the message did not match their digests, twice.
    #[error("decoded blocks of the message did not match their digests, twice")]
    Corrupt = 3,
    /// The receiver is closing and accepts no new messages.
    #[error("the receiver is closing")]
    Closing = 4,
    /// The receiver had no capacity for it for as long as its sender could wait.
    #[error("the receiver had no capacity for the message, until its sender gave it up")]
    Busy = 5,
}

/// The number of latest symbols on a path of which a report counts CE marks.
pub const MARK_MEMORY: u16 = 15;

/// The number of symbols of a message that arrived on one path. It has all that its four bytes on
/// the wire hold, so it is not `#[non_exhaustive]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// The path, in the sender's numbering; below [`MAX_PATHS`].
    pub path: PathId,
    /// Symbols that arrived on it; saturates.
    pub count: u16,
    /// The number of the last [`MARK_MEMORY`] of them that carried a CE mark (RFC 3168).
    pub marked: u8,
}

/// Bits of the path in its field; the other bits are the marks.
// Marks share the field of the path, so that answers do not grow. A count of all marks would take
// two bytes a path, and a count modulo 16 would read 16 marks as none.
const PATH_BITS: u32 = MAX_PATHS.trailing_zeros();
const _: () = assert!(MAX_PATHS.is_power_of_two() && 16 - PATH_BITS == MARK_MEMORY.count_ones());

/// A list of [`Arrivals`] in a packet, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalsView<'a>(&'a [[u8; ARRIVAL_LEN]]);

/// The receiver's verdict on a message, with a list of arrivals of type `A`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<A = Vec<Arrivals>> {
    /// The block is decoded and verified: send no more of it.
    BlockDone {
        /// The digest of the decoded block.
        digest: Digest,
        /// Arrivals of the whole message so far.
        arrivals: A,
    },
    /// The whole message is decoded, verified and in the application's queue.
    Delivered {
        /// The digest of the delivered message.
        digest: Digest,
        /// Arrivals of the whole message.
        arrivals: A,
    },
    /// The block is not decoded yet.
    Nack {
        /// At least this many more symbols are needed.
        needed: u16,
        /// Arrivals of the whole message so far.
        arrivals: A,
    },
    /// The block is not decoded yet, and the receiver pulls the message: it states how many symbols
    /// may be sent.
    Pull {
        /// The total number of symbols that the receiver has requested since the block began: as many
        /// may be sent in addition to those that the sender sends unscheduled.
        credit: u32,
        /// The symbols in flight complete the block unless some of them are lost.
        fin: bool,
        /// Arrivals of the whole message so far.
        arrivals: A,
    },
    /// The receiver has no capacity now, and has begun nothing: pause, then probe.
    Busy,
    /// The receiver has the whole message, and no capacity for it in the application's queue, into which it
    /// goes as soon as there is.
    Held,
    /// The message will never be delivered.
    Reject(RejectReason),
    /// The receiver has forgotten the blocks that were done, and nothing was delivered: start again.
    Forgotten,
}

/// A report on one message, in answer to one of its symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<A = Vec<Arrivals>> {
    /// The message.
    pub message: MessageId,
    /// The block that the answered symbol belongs to.
    pub block: u32,
    /// The packet number of the answered symbol, or [`NONE_ACKNOWLEDGED`].
    pub acknowledged: u64,
    /// The receiver's verdict.
    pub verdict: Verdict<A>,
}

/// One report of an ANSWER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report<A = Vec<Arrivals>> {
    /// A report on a message.
    Message(Answer<A>),
    /// The receiver still holds the session: an answer to the handshake packet with this nonce.
    Alive {
        /// The nonce of the handshake.
        nonce: u64,
    },
    /// The receiver stops, forgets the session, and certifies what it has not delivered.
    Ended(Certificate),
}

/// What a receiver that ends a session says of the messages in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// No message with this id or a higher one was delivered.
    pub next: MessageId,
    /// Whether the messages before `next` were delivered, the last one first: a bit each, from the
    /// least significant of the first byte on. Nothing is said of those before.
    // Boxed, because most reports are others and should not bear its size.
    delivered: Box<[u8]>,
}

impl Certificate {
    /// The maximum number of messages of which it says whether they were delivered.
    pub const MAX_COVERED: u64 = 8 * MAX_DELIVERED_LEN as u64;

    /// Covers at least `covered` messages before `next`, but at most
    /// [`MAX_COVERED`](Self::MAX_COVERED), of which `delivered` were delivered.
    pub fn new(
        next: MessageId,
        covered: u64,
        delivered: impl IntoIterator<Item = MessageId>,
    ) -> Self {
        let covered = covered.min(next.0).min(Self::MAX_COVERED) as usize;
        let mut bytes = vec![0; covered.div_ceil(8)].into_boxed_slice();
        for id in delivered {
            if let Some((at, bit)) = Self::place(next, id)
                && let Some(byte) = bytes.get_mut(at)
            {
                *byte |= bit;
            }
        }
        Self { next, delivered: bytes }
    }

    /// Whether message `id` was certainly not delivered.
    pub fn rules_out(&self, id: MessageId) -> bool {
        Self::place(self.next, id)
            .is_none_or(|(at, bit)| self.delivered.get(at).is_some_and(|byte| byte & bit == 0))
    }

    /// The byte and the bit of `id`; `None` if it is not below `next`.
    fn place(next: MessageId, id: MessageId) -> Option<(usize, u8)> {
        let back = next.0.checked_sub(id.0)?.checked_sub(1)?;
        Some((usize::try_from(back / 8).unwrap_or(usize::MAX), 1 << (back % 8)))
    }
}

impl Answer {
    /// Bytes of the largest report, arrivals not counted.
    const LARGEST_FIXED: usize = COMMON_LEN + 16 + 1;

    /// Returns how many [`Arrivals`] fit into an ANSWER of one report and at most `limit` bytes, so
    /// that no answer is larger than the packet that caused it.
    pub const fn arrivals_within(limit: usize) -> usize {
        // An answer that is never larger than its cause amplifies nothing.
        let fit = limit.saturating_sub(ANSWER_OVERHEAD + Self::LARGEST_FIXED) / ARRIVAL_LEN;
        if fit > u8::MAX as usize { u8::MAX as usize } else { fit }
    }
}

impl<A: AsRef<[Arrivals]>> Report<A> {
    /// Returns the bytes of the report in a packet.
    #[expect(clippy::len_without_is_empty, reason = "no report is empty")]
    pub fn len(&self) -> usize {
        let answer = match self {
            Self::Message(answer) => answer,
            Self::Alive { .. } => return ALIVE_LEN,
            Self::Ended(certificate) => return ENDED_LEN + certificate.delivered.len(),
        };
        COMMON_LEN
            + match &answer.verdict {
                Verdict::BlockDone { arrivals, .. } | Verdict::Delivered { arrivals, .. } => {
                    16 + 1 + ARRIVAL_LEN * arrivals.as_ref().len()
                }
                Verdict::Nack { arrivals, .. } => 2 + 1 + ARRIVAL_LEN * arrivals.as_ref().len(),
                Verdict::Pull { arrivals, .. } => 4 + 1 + 1 + ARRIVAL_LEN * arrivals.as_ref().len(),
                Verdict::Forgotten => 0,
                Verdict::Busy | Verdict::Held | Verdict::Reject(_) => 1,
            }
    }

    /// Appends the report to an ANSWER.
    pub fn write(&self, out: &mut Vec<u8>) {
        let answer = match self {
            Self::Message(answer) => answer,
            Self::Alive { nonce } => {
                out.push(ALIVE);
                return out.extend_from_slice(&nonce.to_be_bytes());
            }
            Self::Ended(Certificate { next, delivered }) => {
                out.push(ENDED);
                out.extend_from_slice(&next.0.to_be_bytes()[2..]);
                out.push(delivered.len() as u8);
                return out.extend_from_slice(delivered);
            }
        };
        out.push(match &answer.verdict {
            Verdict::BlockDone { .. } => STOP_BLOCK,
            Verdict::Delivered { .. } => STOP_MESSAGE,
            Verdict::Nack { .. } => NACK,
            Verdict::Pull { .. } => PULL,
            Verdict::Busy | Verdict::Held => BUSY,
            Verdict::Reject(_) => REJECT,
            Verdict::Forgotten => FORGOTTEN,
        });
        out.extend_from_slice(&answer.message.0.to_be_bytes()[2..]);
        out.extend_from_slice(&answer.block.to_be_bytes()[1..]);
        out.extend_from_slice(&answer.acknowledged.to_be_bytes()[2..]);
        match &answer.verdict {
            Verdict::BlockDone { digest, arrivals } | Verdict::Delivered { digest, arrivals } => {
                out.extend_from_slice(&digest.0);
                write_arrivals(arrivals.as_ref(), out);
            }
            Verdict::Nack { needed, arrivals } => {
                out.extend_from_slice(&needed.to_be_bytes());
                write_arrivals(arrivals.as_ref(), out);
            }
            Verdict::Pull { credit, fin, arrivals } => {
                out.extend_from_slice(&credit.to_be_bytes());
                out.push(if *fin { FLAG_FIN } else { 0 });
                write_arrivals(arrivals.as_ref(), out);
            }
            Verdict::Busy => out.push(0),
            Verdict::Held => out.push(1),
            Verdict::Forgotten => {}
            Verdict::Reject(reason) => out.push(*reason as u8),
        }
    }
}

impl<'a> Report<ArrivalsView<'a>> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, WireError> {
        let kind = cursor.u8()?;
        if kind == ALIVE {
            return Ok(Self::Alive { nonce: cursor.u64()? });
        }
        if kind == ENDED {
            let next = MessageId(cursor.u48()?);
            let len = cursor.u8()?;
            if usize::from(len) > MAX_DELIVERED_LEN {
                return Err(WireError::Undefined { field: "bytes of ENDED", got: len });
            }
            let delivered = cursor.take(len.into())?.into();
            return Ok(Self::Ended(Certificate { next, delivered }));
        }
        let message = MessageId(cursor.u48()?);
        let block = cursor.u24()?;
        let acknowledged = cursor.u48()?;
        let verdict = match kind {
            STOP_BLOCK => Verdict::BlockDone {
                digest: Digest(cursor.array()?),
                arrivals: ArrivalsView::read(cursor)?,
            },
            STOP_MESSAGE => Verdict::Delivered {
                digest: Digest(cursor.array()?),
                arrivals: ArrivalsView::read(cursor)?,
            },
            NACK => Verdict::Nack { needed: cursor.u16()?, arrivals: ArrivalsView::read(cursor)? },
            PULL => Verdict::Pull {
                credit: cursor.u32()?,
                fin: match cursor.u8()? {
                    0 => false,
                    FLAG_FIN => true,
                    got => return Err(WireError::Undefined { field: "pull flags", got }),
                },
                arrivals: ArrivalsView::read(cursor)?,
            },
            BUSY => match cursor.u8()? {
                0 => Verdict::Busy,
                1 => Verdict::Held,
                got => return Err(WireError::Undefined { field: "held", got }),
            },
            FORGOTTEN => Verdict::Forgotten,
            REJECT => Verdict::Reject(match cursor.u8()? {
                1 => RejectReason::TooLarge,
                2 => RejectReason::Unsupported,
                3 => RejectReason::Corrupt,
                4 => RejectReason::Closing,
                5 => RejectReason::Busy,
                got => return Err(WireError::Undefined { field: "reason", got }),
            }),
            got => return Err(WireError::Undefined { field: "report", got }),
        };
        Ok(Self::Message(Answer { message, block, acknowledged, verdict }))
    }

    fn into_owned(self) -> Report {
        let Answer { message, block, acknowledged, verdict } = match self {
            Self::Message(answer) => answer,
            Self::Alive { nonce } => return Report::Alive { nonce },
            Self::Ended(certificate) => return Report::Ended(certificate),
        };
        let verdict = match verdict {
            Verdict::BlockDone { digest, arrivals } => {
                Verdict::BlockDone { digest, arrivals: arrivals.iter().collect() }
            }
            Verdict::Delivered { digest, arrivals } => {
                Verdict::Delivered { digest, arrivals: arrivals.iter().collect() }
            }
            Verdict::Nack { needed, arrivals } => {
                Verdict::Nack { needed, arrivals: arrivals.iter().collect() }
            }
            Verdict::Pull { credit, fin, arrivals } => {
                Verdict::Pull { credit, fin, arrivals: arrivals.iter().collect() }
            }
            Verdict::Busy => Verdict::Busy,
            Verdict::Held => Verdict::Held,
            Verdict::Reject(reason) => Verdict::Reject(reason),
            Verdict::Forgotten => Verdict::Forgotten,
        };
        Report::Message(Answer { message, block, acknowledged, verdict })
    }
}

impl<'a> ArrivalsView<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, WireError> {
        let count = usize::from(cursor.u8()?);
        Ok(Self(cursor.take(count * ARRIVAL_LEN)?.as_chunks().0))
    }

    /// Returns the arrivals, in their order in the packet.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Arrivals> + Clone + 'a {
        self.0.iter().map(|&[a, b, c, d]| {
            let path = u16::from_be_bytes([a, b]);
            Arrivals {
                path: PathId(path % MAX_PATHS),
                count: u16::from_be_bytes([c, d]),
                marked: (path >> PATH_BITS) as u8,
            }
        })
    }
}

/// Reads an ANSWER: its prefix and its reports, at least one.
///
/// # Errors
///
/// See [`reports`].
pub fn parse(packet: &[u8]) -> Result<(Prefix, Vec<Report>), WireError> {
    let (prefix, reports) = reports(packet)?;
    Ok((prefix, reports.map(Report::into_owned).collect()))
}

/// Reads an ANSWER as [`parse`] does, without a copy of its reports: their arrivals are read in
/// place.
///
/// # Errors
///
/// Fails for a packet of another kind or version, one that does not end with a report and a tag, or one
/// with an undefined number.
pub fn reports(
    packet: &[u8],
) -> Result<(Prefix, impl Iterator<Item = Report<ArrivalsView<'_>>> + Clone), WireError> {
    let mut cursor = Cursor::new(packet);
    let prefix = Prefix::read(&mut cursor)?;
    if prefix.kind != Kind::Answer {
        return Err(WireError::Undefined { field: "kind", got: prefix.kind as u8 });
    }
    // Checked to the end before any report is used, so that a malformed packet has no effect.
    let mut checked = cursor.clone();
    let mut count = 0;
    while count == 0 || checked.remaining() > TAG_LEN {
        Report::read(&mut checked)?;
        count += 1;
    }
    if checked.remaining() < TAG_LEN {
        return Err(WireError::TooShort {
            needed: checked.position() + TAG_LEN,
            got: packet.len(),
        });
    }
    // All of them were read without an error above.
    Ok((prefix, (0..count).map_while(move |_| Report::read(&mut cursor).ok())))
}

fn write_arrivals(arrivals: &[Arrivals], out: &mut Vec<u8>) {
    let count = u8::try_from(arrivals.len()).unwrap_or(u8::MAX);
    out.push(count);
    for Arrivals { path, count, marked } in &arrivals[..usize::from(count)] {
        let marked = u16::from(*marked).min(MARK_MEMORY);
        out.extend_from_slice(&((path.0 % MAX_PATHS) | (marked << PATH_BITS)).to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
    }
}
