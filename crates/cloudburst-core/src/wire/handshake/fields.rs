//! The sealed fields that both ends exchange in the Noise messages.

use super::{
    super::{capabilities::Capabilities, cursor::Cursor, error::WireError},
    address,
};
use crate::id::{Incarnation, SessionId};
use bytes::BufMut;
use std::net::SocketAddr;

/// The sender can be reached only at the address that its packets come from.
const FLAG_TRANSLATED: u8 = 0b0000_0001;

/// The initiator's fields in OPEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFields {
    /// The incarnation of the initiator.
    pub incarnation: Incarnation,
    /// The address that the initiator sends the handshake to. A responder at another address is not
    /// the intended one: the packets were relayed.
    pub addressed: SocketAddr,
    /// The session id that packets to the initiator carry; never 0.
    pub session: SessionId,
    /// The extensions that the initiator supports.
    pub capabilities: Capabilities,
    /// The UDP port at which the initiator accepts messages; 0 for the one it sends from.
    pub port: u16,
    /// The number of ports right after that one that accept messages as well.
    pub more_ports: u8,
    /// Whether the address observed by RETRY is not one of the initiator's own: it can be reached only
    /// at the address that its packets come from.
    pub translated: bool,
}

/// The responder's fields in ACCEPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptFields {
    /// The incarnation of the responder.
    pub incarnation: Incarnation,
    /// The session id that packets to the responder carry; never 0.
    pub session: SessionId,
    /// The extensions that the responder supports.
    pub capabilities: Capabilities,
    /// The UDP port at which the responder accepts messages; 0 for the one that OPEN was sent to.
    pub port: u16,
    /// The number of ports right after that one that accept messages as well.
    pub more_ports: u8,
}

impl OpenFields {
    /// Bytes of these fields.
    pub(super) const LEN: usize = 46;

    pub(super) fn to_bytes(self) -> [u8; Self::LEN] {
        debug_assert_ne!(self.session.0, 0, "0 names no session");
        let mut bytes = [0; Self::LEN];
        let mut out = &mut bytes[..];
        out.put_slice(&self.incarnation.0);
        address::write(self.addressed, &mut out);
        out.put_u32(self.session.0);
        out.put_u32(self.capabilities.0);
        out.put_u16(self.port);
        out.put_u8(self.more_ports);
        out.put_u8(if self.translated { FLAG_TRANSLATED } else { 0 });
        bytes
    }

    /// Reads the fields; unknown flags are ignored.
    pub(super) fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new(bytes);
        Ok(Self {
            incarnation: Incarnation(cursor.array()?),
            addressed: address::read(&mut cursor)?,
            session: read_session(&mut cursor)?,
            capabilities: Capabilities(cursor.u32()?),
            port: cursor.u16()?,
            more_ports: cursor.u8()?,
            translated: cursor.u8()? & FLAG_TRANSLATED != 0,
        })
    }
}

impl AcceptFields {
    /// Bytes of these fields.
    pub(super) const LEN: usize = 28;

    pub(super) fn to_bytes(self) -> [u8; Self::LEN] {
        debug_assert_ne!(self.session.0, 0, "0 names no session");
        let mut bytes = [0; Self::LEN];
        let mut out = &mut bytes[..];
        out.put_slice(&self.incarnation.0);
        out.put_u32(self.session.0);
        out.put_u32(self.capabilities.0);
        out.put_u16(self.port);
        out.put_u8(self.more_ports);
        // The last byte is for flags, none of which is defined yet.
        bytes
    }

    /// Reads the fields; unknown flags are ignored.
    pub(super) fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new(bytes);
        Ok(Self {
            incarnation: Incarnation(cursor.array()?),
            session: read_session(&mut cursor)?,
            capabilities: Capabilities(cursor.u32()?),
            port: cursor.u16()?,
            more_ports: cursor.u8()?,
        })
    }
}

fn read_session(cursor: &mut Cursor<'_>) -> Result<SessionId, WireError> {
    match cursor.u32()? {
        0 => Err(WireError::Undefined { field: "session", got: 0 }),
        session => Ok(SessionId(session)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_unknown_flags_mean_nothing() {
        let open = OpenFields {
            incarnation: Incarnation([1; 16]),
            addressed: "[2001:db8::1]:7".parse().unwrap(),
            session: SessionId(1),
            capabilities: Capabilities(3),
            port: 4,
            more_ports: 5,
            translated: false,
        };
        for translated in [false, true] {
            let open = OpenFields { translated, ..open };
            let mut bytes = open.to_bytes();
            assert_eq!(OpenFields::from_bytes(&bytes), Ok(open));
            bytes[45] |= 0xfe;
            assert_eq!(OpenFields::from_bytes(&bytes), Ok(open));
        }
        let accept = AcceptFields {
            incarnation: Incarnation([2; 16]),
            session: SessionId(9),
            capabilities: Capabilities(8),
            port: 7,
            more_ports: 6,
        };
        let mut bytes = accept.to_bytes();
        bytes[27] = 0xff;
        assert_eq!(AcceptFields::from_bytes(&bytes), Ok(accept));
    }

    #[test]
    fn no_end_may_call_its_session_0() {
        let zero = WireError::Undefined { field: "session", got: 0 };
        assert_eq!(OpenFields::from_bytes(&[0; 46]), Err(zero));
        assert_eq!(AcceptFields::from_bytes(&[0; 28]), Err(zero));
    }
}
