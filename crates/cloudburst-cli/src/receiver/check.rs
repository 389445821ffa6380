//! Hashes bytes that exist before a transfer, to be compared with the sender's. Threads do, as they may wait for the
//! disk.

use super::commit::Key;
use super::pipe::WINDOW;
use super::store::{Existing, Origin};
use crate::prefix::{self, HashedPrefix};
use crate::protocol::Reason;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Weak;
use std::thread;

/// The checks of a receiver.
pub(super) struct Checks {
    results: Receiver<Checked>,
    result: Sender<Checked>,
    /// The number of threads.
    running: usize,
}

/// The result of a check.
pub(super) struct Checked {
    pub(super) key: Key,
    /// Identifies the check.
    pub(super) token: Weak<()>,
    pub(super) result: Result<Found, Reason>,
}

/// What a check has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The prefixes of the bytes that exist, hashed.
    pub(super) prefixes: Vec<HashedPrefix>,
    /// Whether they are those of a file that has the name already.
    pub(super) has_name: bool,
}

impl Checks {
    pub(super) fn new() -> Self {
        let (result, results) = unbounded();
        Self { results, result, running: 0 }
    }

    /// The channel of results. Each is to be [noted](Self::note_end).
    pub(super) const fn results(&self) -> &Receiver<Checked> {
        &self.results
    }

    /// Notes that a thread has ended.
    pub(super) const fn note_end(&mut self) {
        self.running -= 1;
    }

    /// Returns the number of checks that have not ended.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    /// Starts a thread that hashes the prefixes of a file of `size` bytes, sent in chunks of `chunk` bytes. It stops
    /// when no transfer holds `token` any more.
    ///
    /// # Errors
    ///
    /// What is found without a check, if the system refuses a thread.
    pub(super) fn start(
        &mut self,
        key: Key,
        token: Weak<()>,
        existing: Existing,
        size: u64,
        chunk: u64,
    ) -> Result<(), Found> {
        let Existing { file, len, origin } = existing;
        let (lengths, has_name) = match origin {
            Origin::Part => (prefix::lengths(len, size, chunk, WINDOW), false),
            Origin::Named(_) => (vec![size], true),
        };
        let mut file = WhileWanted { file, wanted: token.clone() };
        let results = self.result.clone();
        let hash = move || {
            // Bytes that cannot be read are sent again.
            let prefixes = prefix::hash_all(&mut file, &lengths).unwrap_or_default();
            let synced = origin.sync(&file.file);
            // Close the part first: its lock must be free when the transfer ends.
            drop(file);
            let result = match synced {
                Ok(()) => Ok(Found { prefixes, has_name }),
                Err(error) => Err(Reason::of_write_error(&error, 0)),
            };
            let _ = results.send(Checked { key, token, result });
        };
        if thread::Builder::new().name("check".into()).spawn(hash).is_err() {
            return Err(Found { prefixes: Vec::new(), has_name });
        }
        self.running += 1;
        Ok(())
    }
}

/// A file that can be read until its transfer ends.
struct WhileWanted {
    file: File,
    wanted: Weak<()>,
}

impl Read for WhileWanted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.wanted.strong_count() {
            0 => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => self.file.read(buffer),
        }
    }
}

impl Seek for WhileWanted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_check_stops_reading_when_its_transfer_ends() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"hello").unwrap();
        let wanted = Arc::new(());
        let mut file = WhileWanted { file, wanted: Arc::downgrade(&wanted) };
        assert_eq!(prefix::hash_all(&mut file, &[5]).unwrap().len(), 1);
        drop(wanted);
        assert!(prefix::hash_all(&mut file, &[5]).is_err());
    }
}
