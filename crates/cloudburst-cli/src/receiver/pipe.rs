//! Standard output. Its reader may take its time: a thread of its own waits for it.

use super::serve::{Key, Stored};
use super::store::Say;
use super::transfer::WINDOW;
use crate::protocol::Reason;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// The way to the thread that writes.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    /// Chunks that are not written yet.
    waiting: Arc<AtomicUsize>,
}

/// One file on its way into the pipe. It takes chunks in order: those that come early wait, no more
/// than a window of them.
pub(super) struct Pipe {
    writer: Writer,
    key: Key,
    early: BTreeMap<u64, Bytes>,
}

#[derive(Debug)]
enum Job {
    Chunk { key: Key, offset: u64, bytes: Bytes },
    End { key: Key, say: Say },
}

impl Writer {
    /// Starts the thread. It reports files that are written, or cannot be, and unparks the calling
    /// thread whenever it has written something.
    ///
    /// # Errors
    ///
    /// When the system refuses a thread.
    pub(super) fn start(mut out: File, stored: mpsc::Sender<Stored>) -> io::Result<Self> {
        let (jobs, inbox) = mpsc::channel();
        let (waiting, main) = (Arc::new(AtomicUsize::new(0)), thread::current());
        let writer = Self { jobs, waiting: waiting.clone() };
        thread::Builder::new().name("stdout".into()).spawn(move || {
            for job in inbox {
                match job {
                    Job::Chunk { key, offset, bytes } => {
                        if let Err(error) = out.write_all(&bytes) {
                            let reason = Reason::of_write_error(&error, offset);
                            let _ = stored.send((key, Err(reason)));
                        }
                        waiting.fetch_sub(1, Ordering::SeqCst);
                    }
                    // After a chunk that failed nobody waits for it.
                    Job::End { key, say } => {
                        if say.take() {
                            let _ = stored.send((key, Ok(PathBuf::from("-"))));
                        }
                    }
                }
                main.unpark();
            }
        })?;
        Ok(writer)
    }

    /// Whether its reader has enough to do: to hand in more would only fill memory.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) >= usize::from(WINDOW)
    }

    fn hand_in(&self, job: Job) {
        // The thread lives as long as there is anybody who can call this.
        let _ = self.jobs.send(job);
    }
}

impl Pipe {
    pub(super) const fn new(writer: Writer, key: Key) -> Self {
        Self { writer, key, early: BTreeMap::new() }
    }

    /// Takes a chunk that may have come early.
    pub(super) fn take(&mut self, number: u64, bytes: Bytes) {
        self.early.insert(number, bytes);
    }

    /// Hands in the chunk whose turn it is.
    pub(super) fn write(&mut self, number: u64, offset: u64) -> Option<Bytes> {
        let bytes = self.early.remove(&number)?;
        self.writer.waiting.fetch_add(1, Ordering::SeqCst);
        self.writer.hand_in(Job::Chunk { key: self.key, offset, bytes: bytes.clone() });
        Some(bytes)
    }

    /// That was all: to be reported when it is written.
    pub(super) fn end(self, say: Say) {
        self.writer.hand_in(Job::End { key: self.key, say });
    }
}
