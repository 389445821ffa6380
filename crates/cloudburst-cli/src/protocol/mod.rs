//! The file protocol between `cbrst-send` and `cbrst-recv`, version 2.
//!
//! This module does no I/O and reads no clock. Each frame is one Cloudburst message, which arrives
//! once and unaltered, or not at all; frames in flight together may be reordered. An answer goes to
//! the peer that Cloudburst reports as the sender of the frame it answers.
//!
//! # Frames
//!
//! Integers are big-endian. Every frame begins with a head of 25 bytes. No later version may change the head
//! or FAILED: a receiver refuses a frame of another version by a FAILED of that version, and a sender takes a
//! frame of another version as a refusal.
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
//! | 1 | OFFER  | sender   | files in the session (4), bytes in a chunk (4), size (8; 2^64-1: not known), patience in milliseconds (4), type (1): 0 a file, 1 a directory, 2 a symbolic link, 3 a file with holes; permissions (2; 65535: no attributes), seconds since 1970 of the last modification (8, signed), nanoseconds (4), name (the rest) |
//! | 2 | ACCEPT | receiver | window in chunks (2), patience in milliseconds (4), then the prefixes that the receiver has of the file, up to [`MAX_PREFIXES`], shortest first: length in bytes (8), BLAKE3 digest (32) |
//! | 3 | CHUNK  | sender   | number (8), bytes (the rest) |
//! | 4 | FINISH | sender   | size (8), BLAKE3 digest of the whole file (32) |
//! | 5 | DONE   | receiver | - |
//! | 6 | FAILED | both     | reason (1), number (8): see [`Reason`] |
//! | 7 | ALIVE  | both     | - |
//! | 8 | BYE    | sender   | - |
//! | 9 | EXAMINE | doctor  | whether an answer is wanted (1): 0 or 1; port to answer to (2; 0: the port it came from), address that the requester sent this to (18), padding (the rest), ignored |
//! | 10 | VITALS | receiver | DSCP (1), first other DSCP received (1; 255: none), then 8 each: packets with another DSCP, SYMBOLs from the requester, answers to the requester, datagrams received, buffers that they came in, datagrams dropped because a receive buffer was full, sockets without GSO, bytes requested for each buffer, bytes of the receive buffer, bytes of the send buffer; the address of the requester as the receiver sees it (18), the address that the receiver listens on (18), and what the address in EXAMINE is to the receiver (1): 0 not given, 1 its own, 2 one that it is known as, 3 neither: see [`Vitals`] |
//! | 11 | RESUME | sender  | bytes of the prefix that matches the file (8) |
//!
//! An address is an IPv6 address, or an IPv4-mapped one (`::ffff:a.b.c.d`), and a port; port 0: not given.
//!
//! A frame with missing or extra bytes is invalid. Invalid frames are ignored.
//!
//! # A transfer
//!
//! 1. OFFER. The receiver answers ACCEPT, or FAILED to refuse the file.
//!    A receiver that kept part of the file lists prefixes of it in ACCEPT, with their digests: each prefix
//!    is of whole chunks, or the whole file. The sender compares them with its own file and answers
//!    RESUME, with the length of the longest prefix that matches, or 0. When RESUME is delivered, it sends
//!    the chunks that follow the prefix.
//! 2. CHUNK, numbered from 0, each of the length in the OFFER; only the last one may be shorter, and
//!    none is empty. Chunk `k` is sent only when all up to `k - window` were delivered, so that
//!    the receiver need not look further ahead than its window.
//! 3. FINISH, when all chunks were delivered. The receiver compares size and digest, makes the
//!    file durable, gives it its name, and answers DONE. Until then it sends ALIVE, every quarter
//!    of the shorter patience.
//! 4. A directory is offered after everything in it. It has no bytes. FINISH creates it if it is missing and,
//!    unless it existed before, sets its attributes. The bytes of a symbolic link are its target. Missing parent
//!    directories of a name are created; an existing parent that is not a directory, such as a link, is not
//!    followed.
//! 5. All bytes of a file with holes are sent. The receiver turns blocks of zeros in it into holes.
//! 6. BYE ends the session on both sides, with all its transfers.
//!
//! Either side may send FAILED at any time: the transfer is over, and nothing remains of it except the part that
//! the receiver may keep to resume. The exception is a valid FINISH: from then on the receiver stores the file,
//! whatever the sender sends, and a sender that has not received DONE does not know the outcome. A sender that
//! has delivered nothing else for a quarter of the receiver's patience sends ALIVE; a receiver that hears nothing
//! of a transfer for the whole of its patience gives the transfer up.
//!
//! # An examination
//!
//! A receiver answers an EXAMINE that wants an answer with VITALS, with the same session and file,
//! and does nothing else: an EXAMINE begins no transfer. If it names a port, the answer goes to that port
//! at the requester's IP address: whether it arrives shows how a firewall on the way treats unsolicited
//! packets.
//!
//! # Limits
//!
//! A chunk has 1 to [`MAX_CHUNK`] bytes, a window 1 to [`MAX_WINDOW`] chunks, the target of a link 1 to
//! [`MAX_LINK`] bytes, and a directory none. [`FilePath`] limits names. Permissions are at most 0777.

mod assembly;
mod error;
mod fields;
mod frame;
mod id;
mod limits;
mod name;
mod outbound;
mod reason;
mod vitals;

pub use assembly::Assembly;
pub use error::FrameError;
pub use frame::{Attributes, Body, Entry, Frame, Offer, Prefix};
pub use id::{InvocationId, TransferId};
pub(crate) use limits::MIN_PAUSE;
pub use limits::{MAX_CHUNK, MAX_FRAME, MAX_LINK, MAX_PREFIXES, MAX_WINDOW, VERSION};
pub use name::{FilePath, NameError};
pub use outbound::{Ending, FrameTag, Outbound};
pub use reason::Reason;
pub use vitals::Vitals;
