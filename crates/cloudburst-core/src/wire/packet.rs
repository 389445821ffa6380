//! The first bytes of every packet but the handshake's: version, kind, flags, path, session,
//! packet number.

use super::{cursor::Cursor, error::WireError};
use crate::id::{PathId, SessionId};

/// The protocol version in the high nibble of the first byte.
pub const VERSION: u8 = 1;

/// Bytes of a [`Prefix`].
pub const PREFIX_LEN: usize = 20;

const FLAG_ACK_REQUEST: u8 = 0b0000_0001;
const FLAG_PARTIAL: u8 = 0b0000_0010;
const FLAG_AGAIN: u8 = 0b0000_0100;
const ROLE_SHIFT: u32 = 3;
const ROLE_MASK: u8 = 0b0001_1000;

/// What a packet is, in the low nibble of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Opens a session.
    Hello = 1,
    /// Answers [`Kind::Hello`].
    HelloAck = 2,
    /// Carries one encoded symbol.
    Symbol = 3,
    /// The block is decoded, or the whole message is delivered: send no more of it.
    Stop = 4,
    /// What is still needed, in answer to an asking symbol.
    Status = 5,
    /// The receiver has no room now: pause, then probe.
    Busy = 6,
    /// The message will never be delivered.
    Reject = 7,
    /// The receiver has forgotten the blocks that it had: begin the message again.
    Forgotten = 8,
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
            2 => Self::HelloAck,
            3 => Self::Symbol,
            4 => Self::Stop,
            5 => Self::Status,
            6 => Self::Busy,
            7 => Self::Reject,
            8 => Self::Forgotten,
            got => return Err(WireError::Undefined { field: "kind", got }),
        })
    }

    pub(super) const fn first_byte(self) -> u8 {
        VERSION << 4 | self as u8
    }
}

/// What a message is to the application that receives it. All symbols of a message say the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// A message that wants no response.
    #[default]
    Plain = 0,
    /// One that wants a response: the request of a call.
    Request = 1,
    /// The response to a request. It has no queue: the receiver waits for it, or has no use for it.
    Response = 2,
}

/// What SYMBOL and the answers begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The packet's kind; never a handshake kind.
    pub kind: Kind,
    /// An ACK request: the sender wants a [`Kind::Status`], or better, in return.
    pub ack_request: bool,
    /// The receiver has said of some blocks of this message that they are done.
    pub partial: bool,
    /// The sender has had no answer to its ACK requests for this block for long.
    pub again: bool,
    /// What the message is; [`Role::Plain`] in answers.
    pub role: Role,
    /// The path that the packet was sent on, in its sender's numbering.
    pub path: PathId,
    /// The direction of the session that the packet belongs to.
    pub session: SessionId,
    /// Counts the packets of this direction; never repeats under one key.
    pub number: u64,
}

impl Prefix {
    /// Reads the prefix off the front of `packet`.
    ///
    /// # Errors
    ///
    /// Fewer than [`PREFIX_LEN`] bytes, another version, an undefined kind, or a handshake packet,
    /// which has no such prefix.
    pub fn parse(packet: &[u8]) -> Result<Self, WireError> {
        Self::read(&mut Cursor::new(packet))
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, WireError> {
        let first = cursor.take(1)?;
        let kind = Kind::of(first)?;
        if matches!(kind, Kind::Hello | Kind::HelloAck) {
            return Err(WireError::Undefined { field: "kind", got: kind as u8 });
        }
        let flags = cursor.u8()?;
        if flags & !(FLAG_ACK_REQUEST | FLAG_PARTIAL | FLAG_AGAIN | ROLE_MASK) != 0 {
            return Err(WireError::Undefined { field: "flags", got: flags });
        }
        let role = match (flags & ROLE_MASK) >> ROLE_SHIFT {
            0 => Role::Plain,
            1 => Role::Request,
            2 => Role::Response,
            _ => return Err(WireError::Undefined { field: "role", got: flags }),
        };
        Ok(Self {
            kind,
            ack_request: flags & FLAG_ACK_REQUEST != 0,
            partial: flags & FLAG_PARTIAL != 0,
            again: flags & FLAG_AGAIN != 0,
            role,
            path: PathId(cursor.u16()?),
            session: SessionId(cursor.u64()?),
            number: cursor.u64()?,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.kind.first_byte());
        let flag = |set, flag| if set { flag } else { 0 };
        let (ack_request, again) =
            (flag(self.ack_request, FLAG_ACK_REQUEST), flag(self.again, FLAG_AGAIN));
        out.push(
            ack_request
                | flag(self.partial, FLAG_PARTIAL)
                | again
                | (self.role as u8) << ROLE_SHIFT,
        );
        out.extend_from_slice(&self.path.0.to_be_bytes());
        out.extend_from_slice(&self.session.0.to_be_bytes());
        out.extend_from_slice(&self.number.to_be_bytes());
    }
}
