//! Bytes that exist before a transfer.

use nix::unistd::fsync;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes that exist before a transfer, to be compared with the sender's.
#[derive(Debug)]
pub(in crate::receiver) struct Existing {
    pub(in crate::receiver) file: File,
    pub(in crate::receiver) len: u64,
    pub(in crate::receiver) origin: Origin,
}

/// What the bytes are.
#[derive(Debug)]
pub(in crate::receiver) enum Origin {
    /// A part that an interrupted transfer has left.
    Part,
    /// A file that has the name and the size already, in this directory.
    Named(OwnedFd),
}

impl Origin {
    /// Makes `file` durable if it has its name.
    pub(in crate::receiver) fn sync(&self, file: &File) -> io::Result<()> {
        let Self::Named(directory) = self else { return Ok(()) };
        // Whoever stored it may not have synced it. Some file systems cannot sync a directory.
        let _ = fsync(directory);
        file.sync_all()
    }
}
