//! The version and the limits of the protocol.

use core::time::Duration;

/// Bytes in the head of a frame.
const HEAD_LEN: usize = 25;

/// Bytes in a CHUNK before those of the file.
pub(super) const CHUNK_HEAD_LEN: usize = HEAD_LEN + 8;

/// The shortest pause between two signs of life.
pub(crate) const MIN_PAUSE: Duration = Duration::from_millis(20);

/// The version of the protocol that this crate implements.
pub const VERSION: u8 = 2;

/// The most bytes in a chunk.
pub const MAX_CHUNK: usize = 1 << 20;

/// The most bytes in the target of a symbolic link: the limit of Linux.
pub const MAX_LINK: u64 = 4095;

/// The most prefixes in an ACCEPT.
pub const MAX_PREFIXES: usize = 64;

/// The most chunks in a window: the size of the bit set of [`Assembly`](super::Assembly).
pub const MAX_WINDOW: u16 = 64;

/// The most bytes in a frame: a full chunk with its head and its number.
pub const MAX_FRAME: usize = MAX_CHUNK + CHUNK_HEAD_LEN;

const _: () = assert!(MAX_CHUNK < u32::MAX as usize, "an OFFER has 4 bytes for it");
