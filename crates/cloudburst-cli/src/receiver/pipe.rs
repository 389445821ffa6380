//! Files to standard output. A thread writes them, as the reader of a pipe may be slow.

use super::commit::{CommitRight, Key, Stored};
use crate::protocol::Reason;
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;

/// The window: chunks that are taken, counted from the first missing one.
pub(super) const WINDOW: u16 = 8;

/// The queue of the thread that writes.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    jobs: Sender<Job>,
    progress: Receiver<()>,
}

/// One file on its way into the pipe. Its chunks are written in order: those that arrive early wait, at most
/// a window of them.
pub(super) struct Pipe {
    writer: Writer,
    key: Key,
    early: BTreeMap<u64, Bytes>,
}

#[derive(Debug)]
enum Job {
    Chunk { key: Key, offset: u64, bytes: Bytes },
    End { key: Key, right: CommitRight },
}

impl Writer {
    /// Starts the thread. It reports each file that it has written or cannot write.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub(super) fn start(mut out: File, stored: Sender<Stored>) -> io::Result<Self> {
        let (jobs, inbox) = unbounded();
        let (written, progress) = bounded(1);
        thread::Builder::new().name("stdout".into()).spawn(move || {
            for job in inbox {
                match job {
                    Job::Chunk { key, offset, bytes } => {
                        if let Err(error) = out.write_all(&bytes) {
                            let reason = Reason::of_write_error(&error, offset);
                            let _ = stored.send(Stored { key, result: Err(reason) });
                        }
                    }
                    // No transfer waits for it if a chunk has failed.
                    Job::End { key, right } => {
                        if right.claim() {
                            let result = Ok(PathBuf::from("-"));
                            let _ = stored.send(Stored { key, result });
                        }
                    }
                }
                let _ = written.try_send(());
            }
        })?;
        Ok(Self { jobs, progress })
    }

    /// Whether a window of chunks waits to be written. More would only fill memory.
    pub(super) fn is_full(&self) -> bool {
        self.jobs.len() >= usize::from(WINDOW)
    }

    /// The channel that receives a token when the thread has finished a job.
    pub(super) const fn progress(&self) -> &Receiver<()> {
        &self.progress
    }

    fn queue(&self, job: Job) {
        // The thread runs as long as this sender exists.
        let _ = self.jobs.send(job);
    }
}

impl Pipe {
    pub(super) const fn new(writer: Writer, key: Key) -> Self {
        Self { writer, key, early: BTreeMap::new() }
    }

    /// Takes a chunk, which may have arrived early.
    pub(super) fn take(&mut self, number: u64, bytes: Bytes) {
        self.early.insert(number, bytes);
    }

    /// Writes the chunk with this number, if it has arrived.
    pub(super) fn write(&mut self, number: u64, offset: u64) -> Option<Bytes> {
        let bytes = self.early.remove(&number)?;
        self.writer.queue(Job::Chunk { key: self.key, offset, bytes: bytes.clone() });
        Some(bytes)
    }

    /// Ends the file, which is reported once it is written.
    pub(super) fn end(self, right: CommitRight) {
        self.writer.queue(Job::End { key: self.key, right });
    }
}
