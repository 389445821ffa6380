//! Names: of endpoints' lives, of sessions, messages, blocks and paths.

use core::fmt;

/// One life of an endpoint: 128 unguessable bits, drawn at its start.
///
/// An endpoint that restarts is another incarnation. What was said to the former one neither
/// opens nor matches, so a late packet cannot be taken for a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub [u8; 16]);

/// A message's name: unique within the sending endpoint's [`Incarnation`], never reused.
///
/// # Example
///
/// ```
/// # use cloudburst_core::id::MessageId;
/// assert_eq!(MessageId(7).to_string(), "7"); // as in logs and qlogs
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

/// A connect's name: unique within its endpoint, never reused, never on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectId(pub u64);

/// What the packets of a session carry to one of its ends. 0 names no session.
///
/// An endpoint drops packets that name no session of its own before it does any cryptography.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// The number of a path from one endpoint to another; a path map gives it its meaning.
///
/// # Example
///
/// ```
/// # use cloudburst_core::error::Receipt;
/// # use cloudburst_core::id::PathId;
/// /// The path that most symbols of a message arrived on.
/// fn busiest(receipt: &Receipt) -> Option<PathId> {
///     receipt.arrivals.iter().max_by_key(|on| on.count).map(|on| on.path)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

/// 128 bits that tell a block, or all blocks of a message, from others: see
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
