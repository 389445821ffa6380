//! The transfer of one file at the receiver.

use super::check::Found;
use super::commit::{CommitRight, Key};
use super::pipe::{Pipe, WINDOW};
use super::store::Partial;
use crate::prefix;
use crate::progress::Progress;
use crate::protocol::{Assembly, FilePath, MIN_PAUSE, Offer, Prefix, Reason};
use crate::text;
use crate::ui::{Report, Ui};
use bytes::Bytes;
use core::mem;
use core::time::Duration;
use data_encoding::HEXLOWER;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// A transfer at the receiver.
pub(super) struct Transfer {
    pub(super) name: FilePath,
    state: State,
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
    /// When its sender was last sent a sign of life.
    last_alive: Instant,
    /// The hasher of all chunks before the first missing one.
    hasher: blake3::Hasher,
    /// The other transfer, if any, that asked for the name.
    pub(super) rival: Option<Rival>,
    /// Bytes that existed before the transfer and are kept.
    resumed: u64,
}

/// The states of a transfer: see the [module of the receiver](super).
enum State {
    /// A thread hashes the bytes that exist. It stops when the token is dropped.
    Checking { sink: Sink, token: Arc<()> },
    /// The prefixes that were found are offered, and the sender is to choose the one that matches.
    Offered { sink: Sink, found: Found },
    /// Chunks arrive, or FINISH.
    Receiving(Sink),
    /// A thread stores the file: only that thread knows the outcome.
    Storing(CommitRight),
    /// The sink is gone: the transfer has failed, and is about to be removed.
    Failed,
}

/// A transfer that asked for a name that another one has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rival {
    pub(super) key: Key,
    /// When it last asked.
    pub(super) asked: Instant,
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
    /// None: a file with the same bytes has the name already.
    Existing(Partial),
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
            state: State::Receiving(sink),
            started: now,
            last_heard: now,
            patience: offer.patience,
            digest: None,
            progress,
            symbols: 0,
            assembly: Assembly::new(offer, WINDOW, max_size),
            last_alive: now,
            hasher: blake3::Hasher::new(),
            rival: None,
            resumed: 0,
        }
    }

    /// Writes a chunk.
    ///
    /// # Errors
    ///
    /// The reason why the transfer has failed.
    pub(super) fn take_chunk(&mut self, number: u64, bytes: &Bytes) -> Result<(), Reason> {
        let State::Receiving(sink) = &mut self.state else {
            return Err(Reason::Protocol(number));
        };
        let before = self.assembly.received();
        let failed = |error| Reason::of_write_error(&error, before);
        let offset = self.assembly.admit(number, bytes.len())?;
        match sink {
            Sink::File(file) => file.write_at(bytes, offset).map_err(failed)?,
            Sink::Pipe(pipe) => pipe.take(number, bytes.clone()),
            Sink::Existing(_) => return Err(Reason::Protocol(number)),
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
                Sink::Existing(_) => {}
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

    /// Begins a check of bytes that exist. Returns its token.
    pub(super) fn begin_check(&mut self) -> Weak<()> {
        let token = Arc::new(());
        let weak = Arc::downgrade(&token);
        self.state = match mem::replace(&mut self.state, State::Failed) {
            State::Receiving(sink) => State::Checking { sink, token },
            other => other,
        };
        weak
    }

    /// Whether it is the transfer that waits for the check with this token.
    pub(super) fn awaits(&self, token: &Weak<()>) -> bool {
        match &self.state {
            State::Checking { token: own, .. } => Weak::ptr_eq(&Arc::downgrade(own), token),
            _ => false,
        }
    }

    /// Accepts the file, and returns the prefixes to offer to the sender. If there are none, chunks may follow from the
    /// first one.
    ///
    /// # Errors
    ///
    /// As [`resume`](Self::resume).
    pub(super) fn accept(&mut self, now: Instant, found: Found) -> Result<Vec<Prefix>, Reason> {
        self.last_heard = now;
        let prefixes = prefix::prefixes(&found.prefixes);
        self.state = match mem::replace(&mut self.state, State::Failed) {
            State::Checking { sink, .. } | State::Receiving(sink) => State::Offered { sink, found },
            other => other,
        };
        if prefixes.is_empty() {
            self.resume(0)?;
        }
        Ok(prefixes)
    }

    /// Handles the sender's answer: of the prefixes offered, that of `len` bytes matches, or none if `len` is 0.
    ///
    /// # Errors
    ///
    /// The reason why the transfer has failed: [`Reason::Exists`] if another file has the name.
    pub(super) fn resume(&mut self, len: u64) -> Result<(), Reason> {
        let State::Offered { sink, found } = mem::replace(&mut self.state, State::Failed) else {
            return Err(Reason::Protocol(0));
        };
        let Found { prefixes, has_name } = found;
        let matching = prefixes.into_iter().find(|prefix| prefix.len == len);
        let is_known = matching.is_some();
        if let Some(prefix) = matching {
            self.hasher = prefix.hasher;
        }
        let sink = match sink {
            Sink::File(partial) if is_known && has_name => Sink::Existing(partial),
            Sink::File(partial) if is_known || len == 0 => {
                if has_name && !partial.replaces() {
                    return Err(Reason::Exists);
                }
                partial.truncate(len).map_err(|error| Reason::of_write_error(&error, len))?;
                Sink::File(partial)
            }
            Sink::Pipe(pipe) if len == 0 => Sink::Pipe(pipe),
            _ => return Err(Reason::Protocol(0)),
        };
        self.state = State::Receiving(sink);
        self.assembly.resume(len);
        self.resumed = len;
        self.progress.resume(Instant::now(), len);
        Ok(())
    }

    /// Handles FINISH. Returns the sink, which is left to be stored, and the right to decide on that.
    ///
    /// # Errors
    ///
    /// [`Reason::Mismatch`] if size or digest do not match.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        size: u64,
        digest: [u8; 32],
    ) -> Result<(Sink, CommitRight), Reason> {
        let is_whole = self.assembly.is_whole(size) && self.hasher.finalize() == digest;
        match mem::replace(&mut self.state, State::Failed) {
            State::Receiving(sink) if is_whole => {
                self.digest = Some(digest);
                self.last_alive = now;
                let right = CommitRight::default();
                self.state = State::Storing(right.clone());
                Ok((sink, right))
            }
            _ => Err(Reason::Mismatch(self.assembly.received())),
        }
    }

    /// Whether a thread is storing the file.
    pub(super) const fn is_storing(&self) -> bool {
        matches!(self.state, State::Storing(_))
    }

    /// Prevents the file from getting its name. Returns whether that was still possible.
    pub(super) fn revoke(&self) -> bool {
        match &self.state {
            State::Storing(right) => right.claim(),
            _ => true,
        }
    }

    /// Removes the bytes that were written, unless a thread is storing them, or keeps them if `keeps` is set and
    /// the file can be resumed. Returns whether they were kept.
    pub(super) fn discard(&mut self, keeps: bool) -> bool {
        let (sink, is_untouched) = match mem::replace(&mut self.state, State::Failed) {
            State::Checking { sink, .. } | State::Offered { sink, .. } => (sink, true),
            State::Receiving(sink) => (sink, false),
            State::Storing(_) | State::Failed => return false,
        };
        match sink {
            Sink::File(partial) if keeps => {
                let len = if is_untouched { partial.len() } else { self.assembly.contiguous() };
                partial.keep(len)
            }
            _ => false,
        }
    }

    /// Returns how long a sender may be left without a sign of life, if the receiver's own patience is
    /// `patience`.
    pub(super) fn pause(&self, patience: Duration) -> Duration {
        (patience.min(self.patience) / 4).max(MIN_PAUSE)
    }

    /// Returns what is due at `now`; a sign of life counts as given. `unread`: messages of the sender may be
    /// waiting unread.
    pub(super) fn due(&mut self, now: Instant, patience: Duration, unread: bool) -> Due {
        if self.is_at_work() || unread {
            if now.duration_since(self.last_alive) < self.pause(patience) {
                return Due::Nothing;
            }
            self.last_alive = now;
            return Due::SignOfLife;
        }
        if self.left(now, patience).is_zero() { Due::GiveUp } else { Due::Nothing }
    }

    /// Returns the time until the transfer is given up if its sender stays silent. It does not begin while the file is
    /// being checked or stored.
    pub(super) fn left(&self, now: Instant, patience: Duration) -> Duration {
        let silence =
            if self.is_at_work() { Duration::ZERO } else { now.duration_since(self.last_heard) };
        self.limit(patience).saturating_sub(silence)
    }

    /// Whether a thread checks or stores the file, while its sender waits.
    const fn is_at_work(&self) -> bool {
        matches!(self.state, State::Checking { .. } | State::Storing(_))
    }

    /// Returns how long the sender may be silent: half of `patience` if another has asked for the name since, which
    /// probably means that this sender was killed.
    pub(super) fn limit(&self, patience: Duration) -> Duration {
        let is_wanted = self.rival.is_some_and(|rival| rival.asked > self.last_heard);
        if is_wanted { patience / 2 } else { patience }
    }

    /// Updates the progress line. `symbols` returns the symbols received from the sender, which show progress
    /// within a chunk on a slow link.
    pub(super) fn show(&mut self, now: Instant, symbols: impl FnOnce() -> u64) {
        if !self.progress.is_shown() {
            return;
        }
        let before = mem::replace(&mut self.symbols, symbols());
        if self.symbols != before {
            self.progress.note_activity(now);
        }
        if self.is_storing() {
            self.progress.wait_for("waiting for the disk");
        }
        self.progress.tick(now);
    }

    /// Returns the number of bytes that have arrived, and of those that existed before.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.assembly.received() - self.resumed, self.resumed)
    }

    /// Reports to the user how the transfer ended. `file` is the path of the file, or its name if it has no path.
    pub(super) fn report(&self, ui: &Ui, peer: SocketAddr, file: &str, outcome: Outcome<'_>) {
        let (word, error) = match outcome {
            Outcome::Done => ("done", None),
            Outcome::Failed(why) => ("failed", Some(why)),
            Outcome::Unknown(why) => ("unknown", Some(why)),
        };
        let (bytes, resumed) = self.bytes();
        let peer = text::peer(peer);
        let took = self.started.elapsed();
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
