//! What `cbrst-send` and `cbrst-recv` say to each other: the file protocol, version 2.
//!
//! Nothing here does I/O or reads a clock. Each frame is one Cloudburst message, which arrives
//! once and unaltered, or not at all; frames under way together may change places. Answers go to
//! the peer that Cloudburst names as the sender of the frame they answer.
//!
//! # Frames
//!
//! Integers are big-endian. Every frame begins with a head of 25 bytes. No later version may change it,
//! nor FAILED: a receiver refuses a frame of another version by a FAILED of that version, and a frame of
//! another version that comes to a sender is a refusal.
//!
//! | at | bytes | field |
//! |----|-------|-------|
//! | 0  | 3     | `CBF` |
//! | 3  | 1     | version: 2 |
//! | 4  | 1     | kind |
//! | 5  | 16    | session: random, one for each run of `cbrst-send` |
//! | 21 | 4     | file: its number in the session, from 0 |
//!
//! | kind | frame | from | fields after the head |
//! |------|--------|----------|----|
//! | 1 | OFFER  | sender   | files in the session (4), bytes in a chunk (4), size (8; 2^64-1: not known), patience in milliseconds (4), what it is (1): 0 a file, 1 a directory, 2 a symbolic link, 3 a file with holes; permissions (2; 65535: no attributes), seconds since 1970 of the last modification (8, signed), nanoseconds (4), name (the rest) |
//! | 2 | ACCEPT | receiver | window in chunks (2), patience in milliseconds (4), then what the receiver has of the file, up to [`MAX_PREFIXES`] times, shortest first: bytes (8), BLAKE3 of them (32) |
//! | 3 | CHUNK  | sender   | number (8), bytes (the rest) |
//! | 4 | FINISH | sender   | size (8), BLAKE3 of the whole file (32) |
//! | 5 | DONE   | receiver | - |
//! | 6 | FAILED | both     | reason (1), number (8): see [`Reason`] |
//! | 7 | ALIVE  | both     | - |
//! | 8 | BYE    | sender   | - |
//! | 9 | EXAMINE | doctor  | whether an answer is wanted (1): 0 or 1; port to answer to (2; 0: to the asker), address that the asker sent this to (18), padding (the rest), ignored |
//! | 10 | VITALS | receiver | DSCP (1), first other DSCP that came (1; 255: none), then 8 each: packets with another DSCP, SYMBOLs from the asker, answers to the asker, datagrams received, buffers that they came in, datagrams dropped for want of a buffer, sockets without GSO, bytes wanted for each buffer, bytes to receive, bytes to send; the address of the asker as it is known here (18), the one that the receiver listens on (18), and what the one in EXAMINE is to it (1): 0 not said, 1 its own, 2 one that it is known as, 3 neither: see [`Vitals`] |
//! | 11 | RESUME | sender  | bytes that the receiver has rightly (8) |
//!
//! An address is an IPv6 one, or a mapped IPv4 one (`::ffff:a.b.c.d`), and a port; port 0: not said.
//!
//! Bytes that are missing, or left over, make a frame invalid; invalid frames are ignored.
//!
//! # A transfer
//!
//! 1. OFFER. The receiver answers ACCEPT, or FAILED: it refuses the file.
//!    A receiver that kept part of such a file says in ACCEPT what it has: the digests of beginnings of it,
//!    each of whole chunks, or of all of the file. The sender compares them with its own file and answers
//!    RESUME, with the longest one that is right, or 0. It sends the chunks from there on, when that is
//!    delivered.
//! 2. CHUNK, numbered from 0, each as long as the OFFER said; only the last one is shorter, and
//!    none is empty. Chunk `k` is sent only when all up to `k - window` were delivered, so that
//!    the receiver need not look further ahead than its window.
//! 3. FINISH, when all chunks were delivered. The receiver compares size and digest, makes the
//!    file durable, gives it its name, and answers DONE. Until then it says ALIVE, every quarter
//!    of the shorter patience.
//! 4. A directory is offered after all that is in it: it has no bytes, and FINISH creates it where it is
//!    missing and, unless it was there before, gives it its attributes. The bytes of a symbolic link are where it leads. Directories on
//!    the way to a name are created; what is there and is no directory, such as a link, is not followed.
//! 5. Of a file with holes all bytes are sent. The receiver makes holes of blocks of zeros in it.
//! 6. BYE ends the session, and whatever of it is under way, on both sides.
//!
//! Either side may say FAILED at any time: the transfer is over, and nothing remains of it but what the
//! receiver may keep to resume. Not so
//! after a FINISH that was right: what the receiver stores, it stores to the end, whatever its
//! sender says, and a sender that has not heard DONE does not know. A sender that delivers nothing
//! else for a quarter of the receiver's patience says ALIVE; a receiver that hears nothing of a
//! transfer for the whole of it gives the transfer up.
//!
//! # An examination
//!
//! A receiver answers an EXAMINE that wants an answer with VITALS, about the same session and file,
//! and does nothing else about it: it is no transfer, and no sender. Where the EXAMINE names a port,
//! the answer goes there, at the IP address of the asker: whether it comes tells what a firewall on
//! the way does with packets that nobody there has asked for.
//!
//! # Limits
//!
//! A chunk has 1 byte to [`MAX_CHUNK`], a window 1 chunk to [`MAX_WINDOW`], a link 1 byte to [`MAX_LINK`],
//! a directory none, a name what [`FilePath`] allows; permissions are at most 0777.

mod assembly;
mod cursor;
mod frame;
mod name;
mod outbound;
mod reason;
mod vitals;

pub use assembly::Assembly;
pub use frame::{Attributes, Body, Entry, Frame, FrameError, Offer, Prefix};
pub use name::{FilePath, NameError};
pub use outbound::{Ending, Outbound, What};
pub use reason::Reason;
pub use vitals::Vitals;

use core::fmt;
use core::time::Duration;

/// The shortest pause between two signs of life.
pub(crate) const MIN_PAUSE: Duration = Duration::from_millis(20);

/// The version that this crate speaks.
pub const VERSION: u8 = 2;

/// Bytes in a chunk at most.
pub const MAX_CHUNK: usize = 1 << 20;

/// Bytes in where a symbolic link leads at most: what Linux takes.
pub const MAX_LINK: u64 = 4095;

/// Prefixes in an ACCEPT at most.
pub const MAX_PREFIXES: usize = 64;

/// Chunks in a window at most: what fits the bit set of [`Assembly`].
pub const MAX_WINDOW: u16 = 64;

/// Bytes in a frame at most: a full chunk with its head and its number.
pub const MAX_FRAME: usize = MAX_CHUNK + frame::CHUNK_HEAD_LEN;

/// One run of `cbrst-send`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InvocationId(pub [u8; 16]);

impl fmt::Debug for InvocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
