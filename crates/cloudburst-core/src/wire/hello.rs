//! HELLO and HELLO_ACK: the handshake that makes a session's keys fresh.
//!
//! Both have the same length, so that an answer is never larger than what caused it. Both end in
//! a keyed BLAKE3 of all before it: with a pre-shared key that proves the key; without one it is
//! a checksum.

use super::{cursor::Cursor, error::WireError, packet::Kind};
use crate::id::{Incarnation, PathId, SessionId};

/// Bytes of a HELLO and of a HELLO_ACK.
pub const HELLO_LEN: usize = FIELDS_LEN + MAC_LEN;
const FIELDS_LEN: usize = 64;
const MAC_LEN: usize = 16;

/// A key that authenticates the handshake.
#[derive(Clone)]
pub struct HelloKey(pub(super) [u8; 32]);

/// "I am `initiator`; who are you?"
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The path that the packet was sent on.
    pub path: PathId,
    /// Who opens the session.
    pub initiator: Incarnation,
    /// Drawn anew for each handshake, and sent back, so that an old answer is not taken for a new.
    pub nonce: u64,
    /// The UDP port at which the initiator takes messages; 0 for the one it sent this from.
    pub port: u16,
    /// The session that the initiator's symbols have used so far; 0 for none.
    pub current: SessionId,
    /// How many ports right after that one take messages as well.
    pub more_ports: u8,
}

/// "I am `responder`, and this session shall be called so."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloAck {
    /// The path of the HELLO.
    pub path: PathId,
    /// Who opened the session.
    pub initiator: Incarnation,
    /// The nonce of the HELLO.
    pub nonce: u64,
    /// Who answers.
    pub responder: Incarnation,
    /// Drawn by the responder for each session, so that no replayed HELLO brings old keys back.
    pub session_nonce: [u8; 16],
    /// The responder still holds the HELLO's `current` session: go on with that one.
    pub current_alive: bool,
    /// How many ports right after `port` take messages as well.
    pub more_ports: u8,
    /// The UDP port at which the responder takes the messages of this session; 0 for the one that
    /// the HELLO was sent to.
    pub port: u16,
}

impl Hello {
    /// Appends the packet.
    pub fn write(&self, key: &HelloKey, out: &mut Vec<u8>) {
        let start = out.len();
        write_common(Kind::Hello, self.path, &self.initiator, self.nonce, out);
        out.extend_from_slice(&self.port.to_be_bytes());
        out.extend_from_slice(&self.current.0.to_be_bytes());
        out.push(self.more_ports);
        out.resize(start + FIELDS_LEN, 0);
        append_mac(key, start, out);
    }

    /// Reads a HELLO; `None` where its authentication fails.
    ///
    /// # Errors
    ///
    /// Another kind or another length.
    pub fn parse(key: &HelloKey, packet: &[u8]) -> Result<Option<Self>, WireError> {
        let (path, initiator, nonce, mut rest) = read_common(Kind::Hello, packet)?;
        let port = rest.u16()?;
        let current = SessionId(rest.u32()?);
        let more_ports = rest.u8()?;
        let hello = Self { path, initiator, nonce, port, current, more_ports };
        Ok(mac_holds(key, packet).then_some(hello))
    }
}

impl HelloAck {
    /// Appends the packet.
    pub fn write(&self, key: &HelloKey, out: &mut Vec<u8>) {
        let start = out.len();
        write_common(Kind::HelloAck, self.path, &self.initiator, self.nonce, out);
        out.extend_from_slice(&self.responder.0);
        out.extend_from_slice(&self.session_nonce);
        out.push(u8::from(self.current_alive));
        out.push(self.more_ports);
        out.extend_from_slice(&self.port.to_be_bytes());
        append_mac(key, start, out);
    }

    /// Reads a HELLO_ACK; `None` where its authentication fails.
    ///
    /// # Errors
    ///
    /// Another kind or another length.
    pub fn parse(key: &HelloKey, packet: &[u8]) -> Result<Option<Self>, WireError> {
        let (path, initiator, nonce, mut rest) = read_common(Kind::HelloAck, packet)?;
        let responder = Incarnation(rest.array()?);
        let session_nonce = rest.array()?;
        let ack = Self {
            path,
            initiator,
            nonce,
            responder,
            session_nonce,
            current_alive: rest.u8()? != 0,
            more_ports: rest.u8()?,
            port: rest.u16()?,
        };
        Ok(mac_holds(key, packet).then_some(ack))
    }
}

impl core::fmt::Debug for HelloKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HelloKey(..)")
    }
}

fn write_common(kind: Kind, path: PathId, who: &Incarnation, nonce: u64, out: &mut Vec<u8>) {
    out.push(kind.first_byte());
    out.push(0);
    out.extend_from_slice(&path.0.to_be_bytes());
    out.extend_from_slice(&who.0);
    out.extend_from_slice(&nonce.to_be_bytes());
}

fn read_common(
    kind: Kind,
    packet: &[u8],
) -> Result<(PathId, Incarnation, u64, Cursor<'_>), WireError> {
    let got = Kind::of(packet)?;
    if got != kind {
        return Err(WireError::Undefined { field: "kind", got: got as u8 });
    }
    if packet.len() > HELLO_LEN {
        return Err(WireError::TooLong { expected: HELLO_LEN, got: packet.len() });
    }
    let mut cursor = Cursor::new(packet);
    cursor.take(HELLO_LEN)?;
    let mut cursor = Cursor::new(packet);
    cursor.take(2)?;
    let path = PathId(cursor.u16()?);
    let who = Incarnation(cursor.array()?);
    let nonce = cursor.u64()?;
    Ok((path, who, nonce, cursor))
}

fn mac(key: &HelloKey, fields: &[u8]) -> blake3::Hash {
    blake3::keyed_hash(&key.0, fields)
}

fn append_mac(key: &HelloKey, start: usize, out: &mut Vec<u8>) {
    let mac = mac(key, &out[start..]);
    out.extend_from_slice(&mac.as_bytes()[..MAC_LEN]);
}

/// Whether the packet, whose length was checked, carries the right authentication.
fn mac_holds(key: &HelloKey, packet: &[u8]) -> bool {
    let (fields, got) = packet.split_at(FIELDS_LEN);
    let expected = mac(key, fields);
    // In constant time: the comparison must not tell how many bytes were right.
    let differing =
        expected.as_bytes()[..MAC_LEN].iter().zip(got).fold(0, |acc, (a, b)| acc | (a ^ b));
    differing == 0
}
