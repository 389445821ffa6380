//! The prefix of the packets of a session: version, kind, flags, class, path, session, packet
//! number.

use super::{cursor::Cursor, error::WireError};
use crate::id::{PathId, SessionId};
use bytes::BufMut;

/// The protocol version in the high nibble of the first byte.
pub const VERSION: u8 = 3;

/// Bytes of a [`Prefix`].
pub const PREFIX_LEN: usize = 14;

/// Packet numbers are below this: they have 48 bits, and the last value names no packet.
// Sent whole, not truncated as in QUIC: the number alone determines the epoch of its key, however
// many packets were lost. 2^48 packets are 89 years at 100,000 a second.
pub const MAX_NUMBER: u64 = (1 << 48) - 1;
/// Path numbers are below this: they have 12 bits. The numbers of further paths wrap around.
pub const MAX_PATHS: u16 = 1 << 12;
/// Classes are below this: they have 4 bits.
pub const MAX_CLASSES: u8 = 1 << 4;

// A flag and no packet of its own: the last symbols of a credit carry it, several of them because
// answers get lost too.
const FLAG_ACK_REQUEST: u8 = 0b0000_0001;
const FLAG_PARTIAL: u8 = 0b0000_0010;
const FLAG_AGAIN: u8 = 0b0000_0100;
const FLAG_PULLED: u8 = 0b0010_0000;
const FLAG_PROBE: u8 = 0b0100_0000;
const FLAG_FINAL: u8 = 0b1000_0000;
const ROLE_SHIFT: u32 = 3;
const ROLE_MASK: u8 = 0b0001_1000;

/// The kind of a packet, in the low nibble of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Queries a session, or requests a token to open one.
    Hello = 1,
    /// Answers [`Kind::Hello`] with a token.
    Retry = 2,
    /// Opens a session.
    Open = 3,
    /// Answers [`Kind::Open`].
    Accept = 4,
    /// Carries one encoded symbol.
    Symbol = 5,
    /// Reports on messages, in answer to symbols.
    Answer = 6,
}

impl Kind {
    /// Returns the kind of the packet that starts with these bytes.
    ///
    /// # Errors
    ///
    /// [`WireError`] for an empty packet, another version, or an undefined kind.
    pub fn of(packet: &[u8]) -> Result<Self, WireError> {
        let first = Cursor::new(packet).u8()?;
        if first >> 4 != VERSION {
            return Err(WireError::Version { expected: VERSION, got: first >> 4 });
        }
        Ok(match first & 0x0f {
            1 => Self::Hello,
            2 => Self::Retry,
            3 => Self::Open,
            4 => Self::Accept,
            5 => Self::Symbol,
            6 => Self::Answer,
            got => return Err(WireError::Undefined { field: "kind", got }),
        })
    }

    pub(super) const fn first_byte(self) -> u8 {
        VERSION << 4 | self as u8
    }
}

/// The role of a message for the application that receives it. All symbols of a message carry the
/// same role. It is not `#[non_exhaustive]`, because its two bits on the wire have no other value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// A message without a response.
    #[default]
    Plain = 0,
    /// The request of a call, to which the sender expects a response.
    Request = 1,
    /// The response to a request. It is not queued: the receiver waits for it or discards it.
    Response = 2,
    /// Tells that the caller of a request no longer waits for its response. It is not queued either.
    Withdrawal = 3,
}

impl Role {
    /// The number of roles.
    pub const COUNT: usize = 4;

    /// Returns the bytes of the header that precedes the application's bytes in a message of this
    /// role.
    pub const fn header_len(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Request => 12,
            Self::Response => 9,
            Self::Withdrawal => 8,
        }
    }
}

/// The fields at the start of SYMBOL and ANSWER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The packet's kind: [`Kind::Symbol`] or [`Kind::Answer`].
    pub kind: Kind,
    /// An ACK request: the sender wants a report in return, of any kind.
    pub ack_request: bool,
    /// The receiver has reported some blocks of this message as done.
    pub partial: bool,
    /// The sender's ACK requests for this block have gone unanswered for long.
    pub again: bool,
    /// The receiver pulls the missing symbols of the message.
    pub pulled: bool,
    /// The packet carries no symbol, and requests a report on those sent before.
    pub probe: bool,
    /// It is a probe, and the last packet of a message that its sender gives up: the receiver must not
    /// deliver the message unless it has.
    pub is_final: bool,
    /// The role of the message; [`Role::Plain`] in answers.
    pub role: Role,
    /// The class of the packet, which switches recognise by its DSCP.
    pub class: u8,
    /// The path that the packet was sent on, in its sender's numbering.
    pub path: PathId,
    /// The session id of the packet's receiver.
    pub session: SessionId,
    /// The packet number, which counts the symbols of this direction, or its answers; never repeats
    /// under one key.
    pub number: u64,
}

impl Prefix {
    /// Returns the prefix of an answer.
    pub const fn answer(class: u8, path: PathId, session: SessionId, number: u64) -> Self {
        Self {
            kind: Kind::Answer,
            ack_request: false,
            partial: false,
            again: false,
            pulled: false,
            probe: false,
            is_final: false,
            role: Role::Plain,
            class,
            path,
            session,
            number,
        }
    }

    /// Reads the prefix off the front of `packet`.
    ///
    /// # Errors
    ///
    /// [`WireError`] for fewer than [`PREFIX_LEN`] bytes, another version, an undefined kind or flag,
    /// or a handshake packet, which has no such prefix.
    pub fn parse(packet: &[u8]) -> Result<Self, WireError> {
        Self::read(&mut Cursor::new(packet))
    }

    /// Returns the session that a packet names, if it is long enough. Nothing else is checked.
    pub(crate) fn session_of(packet: &[u8]) -> Option<SessionId> {
        packet.get(4..)?.first_chunk().map(|bytes| SessionId(u32::from_be_bytes(*bytes)))
    }

    #[inline]
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, WireError> {
        let first = cursor.take(1)?;
        let kind = Kind::of(first)?;
        let defined = match kind {
            Kind::Symbol => u8::MAX,
            Kind::Answer => 0,
            Kind::Hello | Kind::Retry | Kind::Open | Kind::Accept => {
                return Err(WireError::Undefined { field: "kind", got: kind as u8 });
            }
        };
        // One length check for all fields.
        let mut fields = Cursor::new(cursor.take(PREFIX_LEN - 1)?);
        let flags = fields.u8()?;
        if flags & !defined != 0 {
            return Err(WireError::Undefined { field: "flags", got: flags });
        }
        let is_final = flags & FLAG_FINAL != 0;
        if is_final && flags & FLAG_PROBE == 0 {
            return Err(WireError::Undefined { field: "flags", got: flags });
        }
        let role = match (flags & ROLE_MASK) >> ROLE_SHIFT {
            0 => Role::Plain,
            1 => Role::Request,
            2 => Role::Response,
            _ => Role::Withdrawal,
        };
        let class_and_path = fields.u16()?;
        Ok(Self {
            kind,
            ack_request: flags & FLAG_ACK_REQUEST != 0,
            partial: flags & FLAG_PARTIAL != 0,
            again: flags & FLAG_AGAIN != 0,
            pulled: flags & FLAG_PULLED != 0,
            probe: flags & FLAG_PROBE != 0,
            is_final,
            role,
            class: (class_and_path >> 12) as u8,
            path: PathId(class_and_path % MAX_PATHS),
            session: SessionId(fields.u32()?),
            number: fields.u48()?,
        })
    }

    /// Appends the prefix.
    pub fn write(&self, out: &mut Vec<u8>) {
        debug_assert!(self.class < MAX_CLASSES, "{self:?}");
        let flag = |set, flag| if set { flag } else { 0 };
        let flags = flag(self.ack_request, FLAG_ACK_REQUEST)
            | flag(self.partial, FLAG_PARTIAL)
            | flag(self.again, FLAG_AGAIN)
            | flag(self.pulled, FLAG_PULLED)
            | flag(self.probe, FLAG_PROBE)
            | flag(self.is_final, FLAG_FINAL)
            | (self.role as u8) << ROLE_SHIFT;
        let class_and_path = (u16::from(self.class) << 12) | (self.path.0 % MAX_PATHS);
        // Appended at once, because each append to a vector checks its capacity.
        let mut fields = [0; PREFIX_LEN];
        let mut rest = &mut fields[..];
        rest.put_u8(self.kind.first_byte());
        rest.put_u8(flags);
        rest.put_u16(class_and_path);
        rest.put_u32(self.session.0);
        rest.put_uint(self.number, 6);
        out.extend_from_slice(&fields);
    }
}
