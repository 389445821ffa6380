//! What identifies a session and its transfers.

use core::fmt;
use data_encoding::HEXLOWER;

/// One run of `cbrst-send`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InvocationId(pub [u8; 16]);

impl fmt::Debug for InvocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// One file of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId {
    /// The session.
    pub session: InvocationId,
    /// The file's number in it, from 0.
    pub file: u32,
}
