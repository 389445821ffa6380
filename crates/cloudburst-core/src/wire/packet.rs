//! The first bytes of the packets of a session: version, kind, flags, class, path, session, packet
//! number.

use super::{cursor::Cursor, error::WireError};
use crate::id::{PathId, SessionId};
use bytes::BufMut;

/// The protocol version in the high nibble of the first byte.
pub const VERSION: u8 = 2;

/// Bytes of a [`Prefix`].
pub const PREFIX_LEN: usize = 14;

/// Packet numbers are below this: they have 48 bits, of which the last value names no packet.
pub const MAX_NUMBER: u64 = (1 << 48) - 1;
/// Path numbers are below this: they have 12 bits. Those of more paths repeat.
pub const MAX_PATHS: u16 = 1 << 12;
/// Classes are below this: they have 4 bits.
pub const MAX_CLASSES: u8 = 1 << 4;

const FLAG_ACK_REQUEST: u8 = 0b0000_0001;
const FLAG_PARTIAL: u8 = 0b0000_0010;
const FLAG_AGAIN: u8 = 0b0000_0100;
const FLAG_PULLED: u8 = 0b0010_0000;
const FLAG_PROBE: u8 = 0b0100_0000;
const ROLE_SHIFT: u32 = 3;
const ROLE_MASK: u8 = 0b0001_1000;
const SYMBOL_FLAGS: u8 =
    FLAG_ACK_REQUEST | FLAG_PARTIAL | FLAG_AGAIN | ROLE_MASK | FLAG_PULLED | FLAG_PROBE;

/// What a packet is, in the low nibble of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Asks after a session, or for a token to open one.
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
    /// The kind of the packet that starts with these bytes.
    ///
    /// # Errors
    ///
    /// An empty packet, another version, or an undefined kind.
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

/// What a message is to the application that receives it. All symbols of a message say the same.
///
/// # Example
///
/// ```
/// # use cloudburst_core::config::Config;
/// # use cloudburst_core::wire::Role;
/// let longest = Config::default().max_message - Role::Request.header_len();
/// println!("a request may have {longest} bytes");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// A message that wants no response.
    #[default]
    Plain = 0,
    /// One that wants a response: the request of a call.
    Request = 1,
    /// The response to a request. It has no queue: the receiver waits for it, or has no use for it.
    Response = 2,
    /// The caller of a request no longer waits for its response. It has no queue either.
    Withdrawal = 3,
}

impl Role {
    /// The number of roles.
    pub const COUNT: usize = 4;

    /// Bytes that a message of this role has before those of the application.
    pub const fn header_len(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Request => 12,
            Self::Response => 9,
            Self::Withdrawal => 8,
        }
    }
}

/// What SYMBOL and ANSWER begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The packet's kind: [`Kind::Symbol`] or [`Kind::Answer`].
    pub kind: Kind,
    /// An ACK request: the sender wants a report in return, whatever it says.
    pub ack_request: bool,
    /// The receiver has said of some blocks of this message that they are done.
    pub partial: bool,
    /// The sender has had no answer to its ACK requests for this block for long.
    pub again: bool,
    /// The receiver pulls the symbols that are missing from the message.
    pub pulled: bool,
    /// The packet carries no symbol, and requests a report on those sent before.
    pub probe: bool,
    /// What the message is; [`Role::Plain`] in answers.
    pub role: Role,
    /// The class of the packet, which switches know by its DSCP.
    pub class: u8,
    /// The path that the packet was sent on, in its sender's numbering.
    pub path: PathId,
    /// The session, as its receiver knows it.
    pub session: SessionId,
    /// Counts the symbols of this direction, or its answers; never repeats under one key.
    pub number: u64,
}

impl Prefix {
    /// The prefix of an answer.
    pub const fn answer(class: u8, path: PathId, session: SessionId, number: u64) -> Self {
        Self {
            kind: Kind::Answer,
            ack_request: false,
            partial: false,
            again: false,
            pulled: false,
            probe: false,
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
    /// Fewer than [`PREFIX_LEN`] bytes, another version, an undefined kind or flag, or a handshake
    /// packet, which has no such prefix.
    pub fn parse(packet: &[u8]) -> Result<Self, WireError> {
        Self::read(&mut Cursor::new(packet))
    }

    /// The session that a packet names, if it is long enough to have a prefix. Nothing is checked.
    pub(crate) fn session_of(packet: &[u8]) -> Option<SessionId> {
        packet.get(4..)?.first_chunk().map(|bytes| SessionId(u32::from_be_bytes(*bytes)))
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, WireError> {
        let first = cursor.take(1)?;
        let kind = Kind::of(first)?;
        let defined = match kind {
            Kind::Symbol => SYMBOL_FLAGS,
            Kind::Answer => 0,
            Kind::Hello | Kind::Retry | Kind::Open | Kind::Accept => {
                return Err(WireError::Undefined { field: "kind", got: kind as u8 });
            }
        };
        // One check of the length for all of them.
        let mut fields = Cursor::new(cursor.take(PREFIX_LEN - 1)?);
        let flags = fields.u8()?;
        if flags & !defined != 0 {
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
            | (self.role as u8) << ROLE_SHIFT;
        let class_and_path = (u16::from(self.class) << 12) | (self.path.0 % MAX_PATHS);
        // Together, because each append to a vector checks its room.
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
