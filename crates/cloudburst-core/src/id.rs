//! Identifiers of incarnations, messages, connects, sessions and paths, and digests of blocks.

use core::fmt;

/// One incarnation of an endpoint: 128 unguessable bits, drawn when it starts.
///
/// An endpoint that restarts is another incarnation. Packets for the former one neither decrypt nor
/// match, so a late packet cannot be taken for a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub [u8; 16]);

/// The identifier of a message: unique within the sending endpoint's [`Incarnation`], never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

/// The identifier of a connect: unique within its endpoint, never reused, never on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectId(pub u64);

/// The identifier that packets to one end of a session carry. 0 names no session.
///
/// An endpoint drops packets for unknown sessions before it does any cryptography.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// The number of a path from one endpoint to another, as defined by a path map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

/// A 128-bit digest of a block, or of all blocks of a message: see
/// [`DigestKey`](crate::wire::keys::DigestKey).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 16]);

fn hex(f: &mut fmt::Formatter<'_>, name: &str, bytes: &[u8]) -> fmt::Result {
    write!(f, "{name}(")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
    f.write_str(")")
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(f, "Incarnation", &self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(f, "SessionId", &self.0.to_be_bytes())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(f, "Digest", &self.0)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
