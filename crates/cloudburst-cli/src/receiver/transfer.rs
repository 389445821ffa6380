//! The transfer of one file at the receiver.

use super::pipe::{Pipe, WINDOW};
use super::store::{Key, Partial, Say};
use crate::prefix::{self, Known};
use crate::progress::Progress;
use crate::protocol::{Assembly, FilePath, MIN_PAUSE, Offer, Prefix, Reason};
use crate::text;
use crate::ui::{Report, Ui};
use bytes::Bytes;
use core::time::Duration;
use data_encoding::HEXLOWER;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// The receiver's state of one transfer.
pub(super) struct Transfer {
    pub(super) name: FilePath,
    started: Instant,
    /// When its sender was last heard from.
    pub(super) last_heard: Instant,
    /// How long its sender waits for a sign of life.
    patience: Duration,
    digest: Option<[u8; 32]>,
    progress: Progress,
    /// Symbols of all messages that had arrived from its sender at the last check.
    symbols: u64,
    assembly: Assembly,
    /// Whether a valid FINISH has arrived.
    is_storing: bool,
    /// When its sender was last told to wait.
    told: Instant,
    /// The hasher of all chunks before the first missing one.
    hasher: blake3::Hasher,
    /// Held while a thread hashes the existing bytes of the file. Dropping it stops the thread.
    checking: Option<Arc<()>>,
    /// The other transfer, if any, that asked for the name, and when it last did.
    pub(super) rival: Option<(Key, Instant)>,
    /// The prefixes that were offered to the sender, until it has answered which of them matches.
    offered: Vec<Known>,
    /// Whether a file of this size has the name already.
    is_present: bool,
    /// Bytes that existed before the transfer and are kept.
    resumed: u64,
    /// `None` once it was handed to the thread that stores the file.
    sink: Option<Sink>,
    /// The right to decide whether the file gets its name.
    pub(super) say: Say,
}

/// A file that can be read until its transfer ends.
pub(super) struct WhileWanted {
    file: File,
    wanted: Weak<()>,
}

impl WhileWanted {
    /// Returns what identifies the check.
    pub(super) fn token(&self) -> Weak<()> {
        self.wanted.clone()
    }

    /// Makes the bytes that were read durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
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

/// What is due for a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// Tell the sender to wait: the file is being checked or stored, or standard output is slow.
    SignOfLife,
    /// Give it up: its sender is silent.
    GiveUp,
}

/// How a transfer ended, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome<'a> {
    Done,
    Failed(&'a str),
    /// The file may or may not be stored.
    Unknown(&'a str),
}

/// The destination of the bytes.
pub(super) enum Sink {
    File(Partial),
    Pipe(Pipe),
    /// A file with the same bytes has the name already.
    Present(Partial),
}

impl Transfer {
    pub(super) fn new(
        now: Instant,
        offer: &Offer,
        name: FilePath,
        max_size: u64,
        sink: Sink,
        progress: Progress,
    ) -> Self {
        Self {
            name,
            started: now,
            last_heard: now,
            patience: offer.patience,
            digest: None,
            progress,
            symbols: 0,
            assembly: Assembly::new(offer, WINDOW, max_size),
            is_storing: false,
            told: now,
            hasher: blake3::Hasher::new(),
            checking: None,
            rival: None,
            offered: Vec::new(),
            is_present: false,
            resumed: 0,
            sink: Some(sink),
            say: Say::default(),
        }
    }

    /// Writes a chunk.
    ///
    /// # Errors
    ///
    /// The reason why the transfer has failed.
    pub(super) fn take_chunk(&mut self, number: u64, bytes: &Bytes) -> Result<(), Reason> {
        let is_expected = self.checking.is_none() && self.offered.is_empty();
        let Some(sink) = self.sink.as_mut().filter(|_| is_expected) else {
            return Err(Reason::Protocol(number));
        };
        let before = self.assembly.received();
        let failed = |error| Reason::of_write_error(&error, before);
        let offset = self.assembly.admit(number, bytes.len())?;
        match sink {
            Sink::File(file) => file.write_at(bytes, offset).map_err(failed)?,
            Sink::Pipe(pipe) => pipe.take(number, bytes.clone()),
            Sink::Present(_) => return Err(Reason::Protocol(number)),
        }
        while let Some((next, offset, len)) = self.assembly.advance() {
            match sink {
                Sink::File(_) if next == number => drop(self.hasher.update(bytes)),
                // It came early, and is probably still in the page cache.
                Sink::File(file) => {
                    let mut early = vec![0; len];
                    file.read_at(&mut early, offset).map_err(failed)?;
                    self.hasher.update(&early);
                }
                Sink::Present(_) => {}
                Sink::Pipe(pipe) => {
                    if let Some(early) = pipe.write(next, offset) {
                        self.hasher.update(&early);
                    }
                }
            }
        }
        self.progress.set_position(self.assembly.received());
        Ok(())
    }

    /// Marks the transfer as being checked. Returns a reader of `file` for the hashing thread, which fails once the
    /// transfer has ended.
    pub(super) fn check(&mut self, file: File) -> WhileWanted {
        let checking = self.checking.insert(Arc::new(()));
        WhileWanted { file, wanted: Arc::downgrade(checking) }
    }

    /// Whether it is the transfer that waits for the check with this token.
    pub(super) fn awaits(&self, token: &Weak<()>) -> bool {
        self.checking
            .as_ref()
            .is_some_and(|checking| Weak::ptr_eq(&Arc::downgrade(checking), token))
    }

    /// Offers the hashed prefixes to the sender. `is_present`: they are of a file that has the name.
    pub(super) fn offer(
        &mut self,
        now: Instant,
        known: Vec<Known>,
        is_present: bool,
    ) -> Vec<Prefix> {
        (self.checking, self.is_present, self.last_heard) = (None, is_present, now);
        let prefixes = prefix::prefixes(&known);
        self.offered = known;
        prefixes
    }

    /// Handles the sender's answer: of the prefixes offered, that of `len` bytes matches.
    ///
    /// # Errors
    ///
    /// As [`resume`](Self::resume).
    pub(super) fn take_resume(&mut self, len: u64) -> Result<(), Reason> {
        if self.offered.is_empty() { Err(Reason::Protocol(0)) } else { self.resume(len) }
    }

    /// Continues after the first `len` bytes, an offered prefix or none.
    ///
    /// # Errors
    ///
    /// The reason why the transfer has failed: [`Reason::Exists`] if another file has the name.
    pub(super) fn resume(&mut self, len: u64) -> Result<(), Reason> {
        let offered = core::mem::take(&mut self.offered);
        let known = offered.into_iter().find(|(known, _)| *known == len);
        let is_known = known.is_some();
        if let Some((_, hasher)) = known {
            self.hasher = hasher;
        }
        self.sink = Some(match self.sink.take() {
            Some(Sink::File(partial)) if is_known && self.is_present => Sink::Present(partial),
            Some(Sink::File(partial)) if is_known || len == 0 => {
                if self.is_present && !partial.replaces() {
                    return Err(Reason::Exists);
                }
                partial.truncate(len).map_err(|error| Reason::of_write_error(&error, len))?;
                Sink::File(partial)
            }
            Some(Sink::Pipe(pipe)) if len == 0 => Sink::Pipe(pipe),
            _ => return Err(Reason::Protocol(0)),
        });
        self.assembly.resume(len);
        self.resumed = len;
        self.progress.resume(Instant::now(), len);
        Ok(())
    }

    /// Handles FINISH. Returns the sink, which is left to be stored.
    ///
    /// # Errors
    ///
    /// [`Reason::Mismatch`] if size or digest do not match.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        size: u64,
        digest: [u8; 32],
    ) -> Result<Sink, Reason> {
        let sink = self.sink.take().ok_or(Reason::Protocol(0))?;
        let whole = self.assembly.is_whole(size) && self.hasher.finalize() == digest;
        self.digest = whole.then_some(digest);
        (self.is_storing, self.told) = (whole, now);
        if whole { Ok(sink) } else { Err(Reason::Mismatch(self.assembly.received())) }
    }

    /// Whether a thread is storing the file: only that thread knows the outcome.
    pub(super) const fn is_storing(&self) -> bool {
        self.is_storing
    }

    /// Removes the bytes that were written, unless a thread is storing them, or keeps them if `keeps` is set and
    /// the file can be resumed. Returns whether they were kept.
    pub(super) fn discard(&mut self, keeps: bool) -> bool {
        let Some(Sink::File(partial)) = self.sink.take().filter(|_| keeps) else { return false };
        let is_untouched = self.checking.is_some() || !self.offered.is_empty();
        let there = if is_untouched { partial.len() } else { self.assembly.contiguous() };
        partial.keep(there)
    }

    /// Returns how long a sender may be left without a sign of life, if the receiver's own patience is
    /// `patience`.
    pub(super) fn pause(&self, patience: Duration) -> Duration {
        (patience.min(self.patience) / 4).max(MIN_PAUSE)
    }

    /// Returns what is due at `now`; a sign of life counts as given. `unread`: messages of the sender may be
    /// waiting unread.
    pub(super) fn due(&mut self, now: Instant, patience: Duration, unread: bool) -> Due {
        if self.is_storing || self.checking.is_some() || unread {
            if now.duration_since(self.told) < self.pause(patience) {
                return Due::Nothing;
            }
            self.told = now;
            return Due::SignOfLife;
        }
        if self.left(now, patience).is_zero() { Due::GiveUp } else { Due::Nothing }
    }

    /// Returns the time until the transfer is given up if its sender stays silent. It does not begin while the file is
    /// being checked or stored.
    pub(super) fn left(&self, now: Instant, patience: Duration) -> Duration {
        let waits = !self.is_storing && self.checking.is_none();
        let silence = if waits { now.duration_since(self.last_heard) } else { Duration::ZERO };
        self.limit(patience).saturating_sub(silence)
    }

    /// Returns how long the sender may be silent: half of `patience` if another has asked for the name since, which
    /// probably means that this sender was killed.
    pub(super) fn limit(&self, patience: Duration) -> Duration {
        let is_wanted = self.rival.is_some_and(|(_, asked)| asked > self.last_heard);
        if is_wanted { patience / 2 } else { patience }
    }

    /// Updates the progress line. `symbols` returns the symbols received from the sender, which show progress
    /// within a chunk on a slow link.
    pub(super) fn show(&mut self, now: Instant, symbols: impl FnOnce() -> u64) {
        if !self.progress.is_shown() {
            return;
        }
        let before = core::mem::replace(&mut self.symbols, symbols());
        if self.symbols != before {
            self.progress.stir(now);
        }
        if self.is_storing {
            self.progress.wait_for("waiting for the disk");
        }
        self.progress.tick(now);
    }

    /// Returns the number of bytes that have arrived, and of those that existed before.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.assembly.received() - self.resumed, self.resumed)
    }

    /// Tells the user how the transfer ended. `file` is the path of the file, or its name if it has no path.
    pub(super) fn tell(&self, ui: &Ui, peer: SocketAddr, file: &str, outcome: Outcome<'_>) {
        let (word, error) = match outcome {
            Outcome::Done => ("done", None),
            Outcome::Failed(why) => ("failed", Some(why)),
            Outcome::Unknown(why) => ("unknown", Some(why)),
        };
        let (bytes, resumed) = self.bytes();
        let (peer, took) = (text::peer(peer), self.started.elapsed());
        self.progress.clear();
        match error {
            None => ui.status(&format!(
                "{file} from {peer}: {} in {:.2} s",
                text::transferred(bytes, resumed),
                took.as_secs_f64()
            )),
            Some(error) => ui.error(&format!("{file} from {peer}: {error}")),
        }
        ui.report(&Report {
            file: Some(file.to_owned()),
            name: Some(self.name.as_str()),
            peer: Some(peer.to_string()),
            outcome: word,
            error: error.map(ToOwned::to_owned),
            bytes,
            resumed,
            seconds: took.as_secs_f64(),
            digest: self.digest.map(|digest| HEXLOWER.encode(&digest)),
            packets: None,
            redundancy: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_transfer_that_has_ended_are_not_read() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"hello").unwrap();
        let wanted = Arc::new(());
        let mut file = WhileWanted { file, wanted: Arc::downgrade(&wanted) };
        assert_eq!(prefix::hash_all(&mut file, &[5]).unwrap().len(), 1);
        drop(wanted);
        assert!(prefix::hash_all(&mut file, &[5]).is_err());
    }
}
