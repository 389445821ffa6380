//! Sends one file.

use super::address;
use super::failure::Failure;
use super::session::{InFlight, Session};
use super::source::{Piece, Reader, SourceError};
use crate::courier::Event;
use crate::plan::Input;
use crate::progress::Progress;
use crate::protocol::{Body, Ending, Frame, FrameTag, Offer, Outbound, Reason, TransferId};
use cloudburst_net::{Receipt, SendError, SendOptions};
use core::time::Duration;
use crossbeam_channel::select;
use std::time::Instant;

/// The most chunks in flight. Two leave the link idle at times, eight gain nothing.
const WINDOW: u16 = 4;
/// The endpoint's deadline for a chunk. Stalled transfers are detected by [`Outbound`] instead: slow links
/// are slow, not broken.
const CHUNK_DEADLINE: Duration = Duration::from_secs(24 * 3600);
/// How long nothing has moved, at least, when the user is told.
const STALLED_AFTER: Duration = Duration::from_secs(2);
/// How often to check whether parts of chunks have arrived.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// What a transfer cost, whether or not the file arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// Whether the receiver may keep what arrives, for a later attempt to continue.
    pub(super) can_resume: bool,
    /// Bytes of the file that were delivered.
    pub(super) bytes: u64,
    /// Bytes that the receiver had from an earlier attempt.
    pub(super) resumed: u64,
    pub(super) packets: u64,
    /// Packets that a link without loss would have needed.
    pub(super) needed: u64,
    pub(super) digest: Option<[u8; 32]>,
}

/// A transfer in progress.
struct Transfer<'a> {
    session: &'a mut Session,
    outbound: Outbound,
    reader: Reader,
    progress: Progress,
    cost: Cost,
    /// The reports on parts of messages that the endpoint had received at the last check.
    reports: u64,
    /// Whether the user was told that nothing moves.
    is_stall_reported: bool,
}

/// Sends a file, and fills in its cost.
pub(super) fn send(
    session: &mut Session,
    transfer: TransferId,
    files: u32,
    input: &Input,
    cost: &mut Cost,
) -> Result<(), Failure> {
    let reader = Reader::open(&input.source, transfer, session.chunk)?;
    let name = Ok(input.name.clone());
    let size = reader.size();
    cost.can_resume = session.resumes && size.is_some();
    let chunk = session.chunk as u32;
    let patience = session.deadline;
    let entry = input.entry();
    let sparse = reader.is_sparse();
    let attributes = input.attributes;
    let offer = Offer { files, chunk, size, patience, entry, sparse, attributes, name };
    let outbound = Outbound::new(Instant::now(), transfer, offer, WINDOW);
    let progress = session.ui.progress(input.name.as_str(), size);
    let reports = session.courier.endpoint().counters().sender.progress_reports;
    let is_stall_reported = false;
    let mut sending =
        Transfer { session, outbound, reader, progress, cost: *cost, reports, is_stall_reported };
    let result = sending.run(transfer);
    sending.session.courier.cancel_all();
    sending.progress.clear();
    *cost = sending.cost;
    // Nothing is in flight now whose refusal would use up the ICMP messages.
    let result = result.map_err(|failure| {
        failure.explained(|| {
            let cause = address::refusal(session.peer, session.search());
            if session.interrupts.is_stopped() { Some(Failure::Interrupted) } else { cause }
        })
    });
    if matches!(result, Err(Failure::Source(_))) {
        session.send_unconfirmed(transfer, Body::Failed(Reason::Source));
    }
    result
}

impl Transfer<'_> {
    fn run(&mut self, id: TransferId) -> Result<(), Failure> {
        loop {
            self.handle_events(id)?;
            if self.session.interrupts.is_stopped() {
                return Err(if self.outbound.is_finishing() {
                    Failure::InterruptedAfterFinish
                } else {
                    Failure::Interrupted
                });
            }
            self.feed()?;
            let now = Instant::now();
            self.poll_counters(now);
            self.session.report_unresponsive(now);
            self.report_stall(now);
            if self.outbound.is_finishing() {
                self.progress.wait_for("waiting for the disk");
            }
            self.progress.tick(now);
            self.outbound.handle_timeout(now);
            if let Some(ending) = self.outbound.ending() {
                return result_of(ending, self.mtu());
            }
            self.transmit(id)?;
            let next_poll = Instant::now() + POLL_EVERY;
            let deadline = self.outbound.poll_timeout().map_or(next_poll, |at| at.min(next_poll));
            select! {
                recv(self.session.courier.woken()) -> _ => {}
                recv(self.session.interrupts.stopped()) -> _ => {}
                default(deadline.saturating_duration_since(Instant::now())) => {}
            }
        }
    }

    fn handle_events(&mut self, id: TransferId) -> Result<(), Failure> {
        while let Some(event) = self.session.courier.poll() {
            let now = Instant::now();
            match event {
                Event::Message(message) => {
                    // Other peers may send to this port, but do not know the session's identifier.
                    if let Ok(frame) = Frame::decode_answer(&message.bytes)
                        && frame.transfer == id
                    {
                        self.outbound.handle_frame(now, &frame.body);
                    }
                }
                Event::Ended(sent, Ok(receipt)) if sent.transfer == id => {
                    self.session.is_known = true;
                    self.outbound.handle_delivered(now, sent.tag);
                    self.count(sent.bytes, &receipt);
                }
                Event::Ended(sent, Err(error)) if sent.transfer == id => {
                    if !(error.is_timeout() && self.outbound.handle_undelivered(now, sent.tag)) {
                        return Err(self.undelivered(sent.tag, error));
                    }
                }
                Event::Ended(..) => {}
            }
        }
        Ok(())
    }

    /// Hands in the pieces that were read, as far as the window allows.
    fn feed(&mut self) -> Result<(), Failure> {
        let Some(prefixes) = self.outbound.prefixes() else { return self.feed_chunks() };
        let prefixes = if self.session.resumes { prefixes } else { &[] };
        let waker = self.session.courier.waker();
        self.reader.start(prefixes, waker).map_err(SourceError::from)?;
        match self.reader.try_next() {
            Some(Piece::Resumed { len, chunks }) => {
                self.outbound.handle_resume(Instant::now(), len, chunks);
                self.cost.resumed = len;
                self.progress.resume(Instant::now(), len);
                self.feed_chunks()
            }
            Some(Piece::Failed(error)) => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn feed_chunks(&mut self) -> Result<(), Failure> {
        while self.outbound.wants_chunk()
            && let Some(piece) = self.reader.try_next()
        {
            let now = Instant::now();
            match piece {
                // Only the first piece is a `Resumed`, and it has been taken.
                Piece::Resumed { .. } => {}
                Piece::Chunk(frame) => self.outbound.handle_chunk(now, frame),
                Piece::End { size, digest } => {
                    self.cost.digest = Some(digest);
                    self.outbound.handle_end(now, size, digest);
                }
                Piece::Failed(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Checks whether parts of chunks have arrived: on a slow link a chunk may take long.
    fn poll_counters(&mut self, now: Instant) {
        // STOPs would count signs of life, too, which arrive when chunks do not.
        let reports = self.session.courier.endpoint().counters().sender.progress_reports;
        if reports != self.reports {
            self.reports = reports;
            self.outbound.handle_progress(now);
            self.progress.note_activity(now);
        }
    }

    /// Says once that nothing moves, where no progress line says so.
    fn report_stall(&mut self, now: Instant) {
        let Some(since) = self.outbound.waits_since() else { return };
        let deadline = self.session.deadline;
        if self.is_stall_reported
            || self.progress.is_shown()
            || now.duration_since(since) < (deadline / 3).max(STALLED_AFTER)
        {
            return;
        }
        self.is_stall_reported = true;
        let waited = now.duration_since(since).as_secs();
        let mtu = self.mtu();
        let deadline = deadline.as_secs_f64();
        self.session.ui.status(&format!(
            "stalled: nothing got through for {waited} s, in packets of up to {mtu} bytes; giving up after \
             {deadline} s"
        ));
    }

    /// The MTU of the path to the receiver, as far as discovered.
    fn mtu(&self) -> usize {
        let peer = self.session.courier.endpoint().peer(self.session.peer);
        peer.map_or(0, |peer| peer.sent.mtu)
    }

    fn transmit(&mut self, id: TransferId) -> Result<(), Failure> {
        while let Some((tag, frame)) = self.outbound.poll_transmit() {
            let (deadline, policy, bytes) = match tag {
                FrameTag::Chunk(_) => {
                    (CHUNK_DEADLINE, Some(self.session.policy), Frame::chunk_len(&frame))
                }
                FrameTag::Offer => (self.session.patience(), None, 0),
                _ => (self.session.deadline, None, 0),
            };
            let mut options = SendOptions::default().deadline(deadline);
            options.policy = policy;
            let courier = &mut self.session.courier;
            let peer = self.session.peer;
            let sent = courier.send(InFlight { transfer: id, tag, bytes }, peer, frame, options);
            sent.map_err(|error| self.undelivered(tag, error))?;
        }
        Ok(())
    }

    fn count(&mut self, bytes: u64, receipt: &Receipt) {
        self.cost.bytes += bytes;
        self.cost.packets += receipt.packets as u64;
        self.cost.needed += receipt.source_symbols as u64;
        self.progress.set_position(self.cost.resumed + self.cost.bytes);
    }

    fn undelivered(&self, tag: FrameTag, error: SendError) -> Failure {
        match (tag, error) {
            (FrameTag::Offer | FrameTag::Chunk(_) | FrameTag::Alive, error)
                if self.outbound.is_finishing() =>
            {
                Failure::Indeterminate(error)
            }
            (FrameTag::Finish, error)
                if error.may_have_been_delivered() || self.outbound.repeats_finish() =>
            {
                Failure::Indeterminate(error)
            }
            (tag, error) => {
                let Session { peer, deadline, .. } = *self.session;
                let waited =
                    if tag == FrameTag::Offer { self.session.patience() } else { deadline };
                Failure::of_peer(peer, waited, &error).unwrap_or(Failure::Transport(error))
            }
        }
    }
}

const fn result_of(ending: Ending, mtu: usize) -> Result<(), Failure> {
    Err(match ending {
        Ending::Done => return Ok(()),
        Ending::Refused(reason) => Failure::Refused(reason),
        Ending::Failed(reason) => Failure::ByReceiver(reason),
        Ending::Indeterminate(reason) => Failure::IndeterminateByReceiver(reason),
        Ending::Stalled(waited) => Failure::Stalled { waited, mtu },
        Ending::Unconfirmed(waited) => Failure::Unconfirmed(waited),
    })
}
