//! The sender's side of one transfer, as a state machine.
//!
//! 1. Hand in one input: a `handle_*`, or a chunk when [`Outbound::wants_chunk`].
//! 2. Drain [`Outbound::poll_transmit`], then look at [`Outbound::ending`].
//! 3. Wait until [`Outbound::poll_timeout`] or the next input, whichever comes first.

use super::{Body, Frame, MIN_PAUSE, Offer, Prefix, Reason, TransferId};
use bytes::Bytes;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

/// Which frame it is whose delivery the driver reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// The OFFER.
    Offer,
    /// The CHUNK of this number.
    Chunk(u64),
    /// The FINISH.
    Finish,
    /// An ALIVE.
    Alive,
    /// The RESUME.
    Resume,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The receiver has the file, verified and under its name.
    Done,
    /// The receiver did not take the file.
    Refused(Reason),
    /// The receiver gave up.
    Failed(Reason),
    /// The receiver gave up, but had been asked to store the file: it may have.
    Doubtful(Reason),
    /// Nothing moved for so long, when the receiver had been asked, or sent chunks.
    Stalled(Duration),
    /// The receiver has all of the file, and did not say for so long whether it stored it.
    Unconfirmed(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Offering,
    Sending,
    Finishing,
    Ended(Ending),
}

/// One file on its way.
#[derive(Debug)]
pub struct Outbound {
    transfer: TransferId,
    phase: Phase,
    /// How long nothing may move.
    patience: Duration,
    /// Chunks to have under way at most.
    window: u64,
    /// The next chunk that the driver will be asked for.
    next: u64,
    under_way: BTreeSet<u64>,
    /// Whether OFFER or FINISH is under way: its own deadline watches over it.
    is_asking: bool,
    is_alive_under_way: bool,
    /// Whether RESUME is under way: chunks must not overtake it.
    is_resuming: bool,
    pause: Duration,
    /// When something was last delivered: the receiver knows that this side lives.
    last_delivered: Instant,
    last_progress: Instant,
    /// What the receiver has of the file, until the driver has said how much of it is right.
    prefixes: Option<Vec<Prefix>>,
    /// The file ended so, and FINISH waits for the last chunks.
    finish: Option<(u64, [u8; 32])>,
    transmits: VecDeque<(What, Bytes)>,
}

impl Outbound {
    /// Offers a file. At most `window` chunks will be under way, or fewer if the receiver says so.
    pub fn new(now: Instant, transfer: TransferId, offer: Offer, window: u16) -> Self {
        let patience = offer.patience;
        let bytes = Frame { transfer, body: Body::Offer(offer) }.encode();
        Self {
            transfer,
            phase: Phase::Offering,
            patience,
            window: window.max(1).into(),
            next: 0,
            under_way: BTreeSet::new(),
            is_asking: true,
            is_alive_under_way: false,
            is_resuming: false,
            pause: patience,
            last_delivered: now,
            last_progress: now,
            prefixes: None,
            finish: None,
            transmits: VecDeque::from([(What::Offer, bytes)]),
        }
    }

    /// Whether the next chunk, or the end of the file, may be handed in.
    pub fn wants_chunk(&self) -> bool {
        let first = self.under_way.first().copied().unwrap_or(self.next);
        self.phase == Phase::Sending
            && !self.is_resuming
            && self.prefixes.is_none()
            && self.finish.is_none()
            && self.next - first < self.window
    }

    /// What the receiver has of the file, once it has accepted it: the driver compares it with the file and calls
    /// [`handle_resume`](Self::handle_resume), before which no chunk is wanted.
    pub fn prefixes(&self) -> Option<&[Prefix]> {
        self.prefixes.as_deref()
    }

    /// The first `len` bytes are right, which are the `chunks` first chunks.
    pub fn handle_resume(&mut self, now: Instant, len: u64, chunks: u64) {
        let Some(prefixes) = self.prefixes.take() else { return };
        self.next = chunks;
        // It asked for nothing where it has nothing.
        if !prefixes.is_empty() {
            self.is_resuming = true;
            self.last_progress = now;
            self.transmit(What::Resume, Body::Resume { len });
        }
    }

    /// Takes the frame of the next chunk.
    pub fn handle_chunk(&mut self, now: Instant, frame: Bytes) {
        debug_assert!(self.wants_chunk());
        if self.under_way.is_empty() {
            // Until now the file was to blame for the pause.
            self.last_progress = now;
        }
        self.under_way.insert(self.next);
        self.transmits.push_back((What::Chunk(self.next), frame));
        self.next += 1;
    }

    /// The file has ended.
    pub fn handle_end(&mut self, now: Instant, size: u64, digest: [u8; 32]) {
        debug_assert!(self.wants_chunk());
        self.finish = Some((size, digest));
        self.finish_if_due(now);
    }

    /// A frame from the receiver.
    pub fn handle_frame(&mut self, now: Instant, body: &Body) {
        match (self.phase, body) {
            (Phase::Ended(_), _) => {}
            (Phase::Offering, Body::Accept { window, patience, prefixes }) => {
                self.prefixes = Some(prefixes.clone());
                self.phase = Phase::Sending;
                self.window = self.window.min(u64::from(*window).max(1));
                self.pause = (*patience / 4).max(MIN_PAUSE);
                self.last_progress = now;
                self.last_delivered = now;
            }
            (Phase::Offering, Body::Failed(reason)) => self.end(Ending::Refused(*reason)),
            (Phase::Finishing, Body::Failed(reason)) if !reason.excludes_storing() => {
                self.end(Ending::Doubtful(*reason));
            }
            (_, Body::Failed(reason)) => self.end(Ending::Failed(*reason)),
            (Phase::Finishing, Body::Done) => self.end(Ending::Done),
            (_, Body::Alive) => self.last_progress = now,
            _ => {}
        }
    }

    /// The receiver has a frame.
    pub fn handle_delivered(&mut self, now: Instant, what: What) {
        self.last_delivered = now;
        match what {
            What::Offer | What::Finish => {
                self.is_asking = false;
                self.last_progress = now;
            }
            What::Resume => {
                self.is_resuming = false;
                self.last_progress = now;
            }
            What::Chunk(number) => {
                self.under_way.remove(&number);
                self.last_progress = now;
                self.finish_if_due(now);
            }
            What::Alive => {
                self.is_alive_under_way = false;
                // Beside chunks that do not move it proves nothing.
                if self.under_way.is_empty() && self.phase == Phase::Sending {
                    self.last_progress = now;
                }
            }
        }
    }

    /// The time for a frame is over, and the receiver may not have it. Whether that is no reason
    /// to end: the receiver has asked for patience meanwhile, and gets the frame once more.
    pub fn handle_undelivered(&mut self, now: Instant, what: What) -> bool {
        let is_heard = now.duration_since(self.last_progress) < self.patience;
        match (self.phase, what) {
            (_, What::Alive) if is_heard => self.is_alive_under_way = false,
            (Phase::Finishing, What::Finish) if is_heard => {
                let Some((size, digest)) = self.finish else { return false };
                self.transmit(What::Finish, Body::Finish { size, digest });
            }
            _ => return false,
        }
        true
    }

    /// Part of a chunk has arrived.
    pub const fn handle_progress(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.stalls_at().is_some_and(|at| at <= now) {
            return self.end(match self.phase {
                Phase::Finishing => Ending::Unconfirmed(self.patience),
                _ => Ending::Stalled(self.patience),
            });
        }
        if self.speaks_at().is_some_and(|at| at <= now) {
            self.is_alive_under_way = true;
            self.transmit(What::Alive, Body::Alive);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.stalls_at(), self.speaks_at()].into_iter().flatten().min()
    }

    /// The next frame to send; the driver reports its delivery.
    pub fn poll_transmit(&mut self) -> Option<(What, Bytes)> {
        self.transmits.pop_front()
    }

    /// How the transfer ended, if it has.
    pub const fn ending(&self) -> Option<Ending> {
        match self.phase {
            Phase::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// Whether FINISH was sent: from here on, the receiver may have stored the file.
    pub fn is_finishing(&self) -> bool {
        self.phase == Phase::Finishing
    }

    fn stalls_at(&self) -> Option<Instant> {
        let waits = match self.phase {
            Phase::Offering | Phase::Finishing => !self.is_asking,
            Phase::Sending => !self.under_way.is_empty(),
            Phase::Ended(_) => false,
        };
        waits.then(|| self.last_progress + self.patience)
    }

    fn speaks_at(&self) -> Option<Instant> {
        let speaks = self.phase == Phase::Sending && !self.is_alive_under_way;
        speaks.then(|| self.last_delivered + self.pause)
    }

    fn finish_if_due(&mut self, now: Instant) {
        if self.phase == Phase::Sending
            && self.under_way.is_empty()
            && let Some((size, digest)) = self.finish
        {
            self.phase = Phase::Finishing;
            self.is_asking = true;
            self.last_progress = now;
            self.transmit(What::Finish, Body::Finish { size, digest });
        }
    }

    fn transmit(&mut self, what: What, body: Body) {
        self.transmits.push_back((what, Frame { transfer: self.transfer, body }.encode()));
    }

    fn end(&mut self, ending: Ending) {
        self.phase = Phase::Ended(ending);
        self.transmits.clear();
    }
}
