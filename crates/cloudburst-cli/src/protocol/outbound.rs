//! The sender's side of one transfer, as a state machine.
//!
//! 1. Hand in one input: call a `handle_*`, and hand in a chunk only if [`Outbound::wants_chunk`].
//! 2. Drain [`Outbound::poll_transmit`], then check [`Outbound::ending`].
//! 3. Wait until [`Outbound::poll_timeout`] or the next input, whichever comes first.

use super::frame::{Body, Frame, Offer, Prefix};
use super::id::TransferId;
use super::limits::MIN_PAUSE;
use super::reason::Reason;
use bytes::Bytes;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

/// A frame whose delivery the driver reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameTag {
    /// The OFFER.
    Offer,
    /// The CHUNK with this number.
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
    /// The receiver gave up after FINISH, and may have stored the file.
    Indeterminate(Reason),
    /// Nothing moved for this long, while an answer to OFFER or the delivery of chunks was due.
    Stalled(Duration),
    /// The receiver has all of the file, but has not confirmed for this long that it is stored.
    Unconfirmed(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Offering,
    Sending,
    Finishing,
    Ended(Ending),
}

/// The sender's state of one transfer.
#[derive(Debug)]
pub struct Outbound {
    transfer: TransferId,
    phase: Phase,
    /// How long the transfer may go without progress.
    patience: Duration,
    /// The most chunks in flight.
    window: u64,
    /// The number of the next chunk to hand in.
    next: u64,
    under_way: BTreeSet<u64>,
    /// Whether OFFER or FINISH is in flight: its own deadline limits it.
    awaits_delivery: bool,
    is_alive_under_way: bool,
    /// Whether RESUME is in flight: chunks must not overtake it.
    is_resuming: bool,
    pause: Duration,
    /// When a frame was last delivered, which shows the receiver that this side is alive.
    last_delivered: Instant,
    last_progress: Instant,
    /// The prefixes that the receiver has, until the driver has reported which of them matches.
    prefixes: Option<Vec<Prefix>>,
    /// The size and digest of the whole file. FINISH waits for the last chunks.
    finish: Option<(u64, [u8; 32])>,
    repeats_finish: bool,
    transmits: VecDeque<(FrameTag, Bytes)>,
}

impl Outbound {
    /// Offers a file. At most `window` chunks will be in flight, or fewer if the receiver's window is smaller.
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
            awaits_delivery: true,
            is_alive_under_way: false,
            is_resuming: false,
            pause: patience,
            last_delivered: now,
            last_progress: now,
            prefixes: None,
            finish: None,
            repeats_finish: false,
            transmits: VecDeque::from([(FrameTag::Offer, bytes)]),
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

    /// Returns the prefixes that the receiver has, once it has accepted the file. The driver compares them with the
    /// file and calls [`handle_resume`](Self::handle_resume); until then no chunk is wanted.
    pub fn prefixes(&self) -> Option<&[Prefix]> {
        self.prefixes.as_deref()
    }

    /// Handles the result of the comparison: the first `len` bytes match, which are the first `chunks` chunks.
    pub fn handle_resume(&mut self, now: Instant, len: u64, chunks: u64) {
        let Some(prefixes) = self.prefixes.take() else { return };
        self.next = chunks;
        // An ACCEPT without prefixes expects no RESUME.
        if !prefixes.is_empty() {
            self.is_resuming = true;
            self.last_progress = now;
            self.transmit(FrameTag::Resume, Body::Resume { len });
        }
    }

    /// Handles the encoded frame of the next chunk.
    pub fn handle_chunk(&mut self, now: Instant, frame: Bytes) {
        debug_assert!(self.wants_chunk());
        if self.under_way.is_empty() {
            // The pause before was due to the file, not to the network.
            self.last_progress = now;
        }
        self.under_way.insert(self.next);
        self.transmits.push_back((FrameTag::Chunk(self.next), frame));
        self.next += 1;
    }

    /// Handles the end of the file.
    pub fn handle_end(&mut self, now: Instant, size: u64, digest: [u8; 32]) {
        debug_assert!(self.wants_chunk());
        self.finish = Some((size, digest));
        self.finish_if_due(now);
    }

    /// Handles a frame from the receiver.
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
                self.end(Ending::Indeterminate(*reason));
            }
            (_, Body::Failed(reason)) => self.end(Ending::Failed(*reason)),
            (Phase::Finishing, Body::Done) => self.end(Ending::Done),
            (_, Body::Alive) => self.last_progress = now,
            _ => {}
        }
    }

    /// Handles the delivery of a frame.
    pub fn handle_delivered(&mut self, now: Instant, tag: FrameTag) {
        self.last_delivered = now;
        match tag {
            FrameTag::Offer | FrameTag::Finish => {
                self.awaits_delivery = false;
                self.last_progress = now;
            }
            FrameTag::Resume => {
                self.is_resuming = false;
                self.last_progress = now;
            }
            FrameTag::Chunk(number) => {
                self.under_way.remove(&number);
                self.last_progress = now;
                self.finish_if_due(now);
            }
            FrameTag::Alive => {
                self.is_alive_under_way = false;
                // While chunks are in flight and do not arrive, it is no progress.
                if self.under_way.is_empty() && self.phase == Phase::Sending {
                    self.last_progress = now;
                }
            }
        }
    }

    /// Handles a frame that was not delivered before its deadline. Returns whether the transfer continues:
    /// the receiver has shown signs of life meanwhile, and FINISH is sent again.
    pub fn handle_undelivered(&mut self, now: Instant, tag: FrameTag) -> bool {
        let is_heard = now.duration_since(self.last_progress) < self.patience;
        match (self.phase, tag) {
            (_, FrameTag::Alive) if is_heard => self.is_alive_under_way = false,
            (Phase::Finishing, FrameTag::Finish) if is_heard => {
                let Some((size, digest)) = self.finish else { return false };
                self.repeats_finish = true;
                self.transmit(FrameTag::Finish, Body::Finish { size, digest });
            }
            _ => return false,
        }
        true
    }

    /// Handles the arrival of part of a chunk.
    pub const fn handle_progress(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// Handles the time `now`: ends a stalled transfer, or sends a sign of life.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.stalls_at().is_some_and(|at| at <= now) {
            return self.end(match self.phase {
                Phase::Finishing => Ending::Unconfirmed(self.patience),
                _ => Ending::Stalled(self.patience),
            });
        }
        if self.alive_at().is_some_and(|at| at <= now) {
            self.is_alive_under_way = true;
            self.transmit(FrameTag::Alive, Body::Alive);
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.stalls_at(), self.alive_at()].into_iter().flatten().min()
    }

    /// Returns the next frame to send. The driver reports its delivery.
    pub fn poll_transmit(&mut self) -> Option<(FrameTag, Bytes)> {
        self.transmits.pop_front()
    }

    /// Returns how the transfer ended, if it has.
    pub const fn ending(&self) -> Option<Ending> {
        match self.phase {
            Phase::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// Whether FINISH was sent: from then on, the receiver may have stored the file.
    pub fn is_finishing(&self) -> bool {
        self.phase == Phase::Finishing
    }

    /// Whether FINISH was sent twice. The receiver may have got the first even if the second is not delivered.
    pub const fn repeats_finish(&self) -> bool {
        self.repeats_finish
    }

    /// Returns since when nothing has moved, while something is due from the receiver.
    pub fn waits_since(&self) -> Option<Instant> {
        let waits = match self.phase {
            Phase::Offering | Phase::Finishing => !self.awaits_delivery,
            Phase::Sending => !self.under_way.is_empty(),
            Phase::Ended(_) => false,
        };
        waits.then_some(self.last_progress)
    }

    fn stalls_at(&self) -> Option<Instant> {
        self.waits_since().map(|since| since + self.patience)
    }

    fn alive_at(&self) -> Option<Instant> {
        let sends_alive = self.phase == Phase::Sending && !self.is_alive_under_way;
        sends_alive.then(|| self.last_delivered + self.pause)
    }

    fn finish_if_due(&mut self, now: Instant) {
        if self.phase == Phase::Sending
            && self.under_way.is_empty()
            && let Some((size, digest)) = self.finish
        {
            self.phase = Phase::Finishing;
            self.awaits_delivery = true;
            self.last_progress = now;
            self.transmit(FrameTag::Finish, Body::Finish { size, digest });
        }
    }

    fn transmit(&mut self, tag: FrameTag, body: Body) {
        self.transmits.push_back((tag, Frame { transfer: self.transfer, body }.encode()));
    }

    fn end(&mut self, ending: Ending) {
        self.phase = Phase::Ended(ending);
        self.transmits.clear();
    }
}
