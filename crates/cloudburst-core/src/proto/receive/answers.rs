//! What a receiver sends, and on which paths: ANSWERs, and answers to handshakes.

use super::Receiver;
use super::pulling::PullCredit;
use super::routes::copies;
use crate::config::max_payload;
use crate::id::{MessageId, PathId, SessionId};
use crate::path::Via;
use crate::proto::limits::{MAX_ANSWER, MAX_COUNTED_PATHS, MIN_MTU};
use crate::proto::observe::emit_reports;
use crate::proto::send::headers;
use crate::proto::{Contents, Transmit, marking};
use crate::time::Instant;
use crate::wire::answer::{ANSWER_OVERHEAD, MARK_MEMORY};
use crate::wire::{self, Arrivals, Prefix};
use arrayvec::ArrayVec;

/// Arrivals in a report. They are stored inline, so that no answer allocates.
pub(super) type Counted = ArrayVec<Arrivals, MAX_COUNTED_PATHS>;
pub(super) type Verdict = wire::Verdict<Counted>;
pub(super) type Answer = wire::Answer<Counted>;
pub(super) type Report = wire::Report<Counted>;

/// Counts of the symbols of a message that arrived on each of the first [`MAX_COUNTED_PATHS`]
/// paths.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalCounts(Vec<PathCount>);

#[derive(Clone, Copy, Debug)]
struct PathCount {
    path: PathId,
    count: u16,
    /// Bit i: the symbol that arrived i symbols before the last had a CE mark.
    marks: u16,
}

/// The bits of the symbols whose marks are reported.
const REPORTED: u16 = (1 << MARK_MEMORY) - 1;

impl ArrivalCounts {
    /// Counts one more symbol that arrived on `path`, with a CE mark or without.
    pub(super) fn add(&mut self, path: PathId, ce: bool) {
        let mark = u16::from(ce);
        if let Some(on) = self.0.iter_mut().find(|on| on.path == path) {
            on.count = on.count.saturating_add(1);
            on.marks = (on.marks << 1) | mark;
        } else if self.0.len() < MAX_COUNTED_PATHS {
            self.0.push(PathCount { path, count: 1, marks: mark });
        }
    }

    /// Replaces these counts with `others`, in the same memory.
    pub(super) fn copy(&mut self, others: &Self) {
        self.0.clear();
        self.0.extend_from_slice(&others.0);
    }

    /// Clears the counts but keeps their memory.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The counts as a report states them.
    pub(super) fn report(&self) -> Counted {
        let report = |on: &PathCount| Arrivals {
            path: on.path,
            count: on.count,
            marked: (on.marks & REPORTED).count_ones() as u8,
        };
        self.0.iter().map(report).collect()
    }
}

/// The maximum number of reports in one ANSWER. If more are pending in a session, newer ones
/// replace older ones of the same block regardless of their paths.
pub(super) const MAX_JOINED: usize = 16;
/// How many pending answers of a session are searched for one to the same block, or for one that
/// fits a batch of symbols; and how many sessions for one whose peer the batch goes to.
const SEARCH_LIMIT: usize = 64;

/// A pending report.
#[derive(Debug)]
pub(super) struct Outbound {
    /// The path of the symbol that it answers, if any.
    path: Option<PathId>,
    report: Report,
    /// Whether it has left by a route.
    routed: bool,
    /// How many more copies leave by alternate reverse paths.
    alternates: usize,
}

impl Outbound {
    /// Whether it leaves once, by a route.
    const fn is_plain(&self) -> bool {
        !self.routed && self.alternates == 0
    }
}

impl Receiver {
    /// Appends the next datagram to `buffer`, unless it would exceed the rate of the link. No
    /// answer is larger than the packet that caused it, so answers to packets that arrive at the
    /// link's rate leave at once.
    ///
    /// Answers to handshakes and other answers alternate, and peers take turns within each kind.
    pub(in crate::proto) fn poll_transmit(
        &mut self,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        // A burst taken at once would be answered at once: 4,000 answers of 57 bytes are 27 ms of
        // 100 Mb/s, into a queue of a few packets.
        if self.pacer.ready_at() > now {
            return None;
        }
        let sent = if self.replies_are_next {
            self.transmit_reply(buffer).or_else(|| self.transmit_answers(buffer))
        } else {
            self.transmit_answers(buffer).or_else(|| self.transmit_reply(buffer))
        }?;
        self.replies_are_next = !self.replies_are_next;
        let overhead = headers(&sent.via) + self.resolver.overhead(sent.via);
        self.pacer.charge(now, sent.len + overhead);
        Some(sent)
    }

    /// When the next answer may leave; `None` if none is pending.
    pub(crate) fn next_transmit(&self) -> Option<Instant> {
        let is_pending = self.replies.next().is_some() || self.answers.next().is_some();
        is_pending.then(|| self.pacer.ready_at())
    }

    fn transmit_reply(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let start = buffer.len();
        loop {
            let (via, reply) = self.replies.pop()?;
            // The reply may be out of date: then the initiator retries.
            if let Some(via) = self.write_reply(via, reply, buffer) {
                let len = buffer.len() - start;
                return Some(self.transmit_of(via, len));
            }
        }
    }

    fn transmit_answers(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        while let Some(name) = self.answers.next() {
            let sent = self.transmit_answers_to(name, buffer);
            self.answers.end_turn();
            if sent.is_some() {
                return sent;
            }
        }
        None
    }

    fn transmit_answers_to(&mut self, name: SessionId, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let queue = self.answers.queue(name)?;
        let Some(session) = self.sessions.get_mut(&name) else {
            queue.clear();
            return None;
        };
        let mut first = queue.pop_front()?;
        let least = ANSWER_OVERHEAD + first.report.len();
        let (path, via) = if first.routed {
            first.alternates -= 1;
            session.take_alternate(least, &*self.resolver)?
        } else {
            match session.routes.take(least) {
                Some(taken) => taken,
                // No packet has arrived in the session. This endpoint opened it, at that address.
                None if session.routes.len() == 0 => {
                    (PathId(0), *self.resolver.paths(session.own, 1).first()?)
                }
                None => return None,
            }
        };
        let start = buffer.len();
        let marking = marking::control(&self.config);
        if first.is_plain() {
            let capacity = max_payload(
                self.config.mtu.min(MIN_MTU),
                headers(&via) + self.resolver.overhead(via),
            );
            let mut len = least;
            let mut joined = ArrayVec::<Report, MAX_JOINED>::new();
            joined.push(first.report);
            let fits =
                |next: &Outbound, len| next.is_plain() && len + next.report.len() <= capacity;
            // At an address that is not validated, an answer is no larger than its cause.
            let may_join = via.remote.ip() == session.own.ip();
            while may_join
                && !joined.is_full()
                && let Some(next) = queue.pop_front_if(|next| fits(next, len))
            {
                len += next.report.len();
                joined.push(next.report);
            }
            session.write_answer(&joined, marking.class, path, buffer);
            self.counters.on_reports(&joined);
            emit_reports(&self.observer, session.peer, &joined);
        } else {
            session.write_answer([&first.report], marking.class, path, buffer);
            self.counters.on_reports([&first.report]);
            emit_reports(&self.observer, session.peer, [&first.report]);
            first.routed = true;
            if first.alternates > 0 {
                queue.push_front(first);
            }
        }
        let len = buffer.len() - start;
        Some(self.transmit_of(via, len))
    }

    fn transmit_of(&self, via: Via, len: usize) -> Transmit {
        let marking = marking::control(&self.config);
        Transmit { contents: Contents::Answers, via, segment_size: len, len, marking }
    }

    /// Whether pending answers should no longer wait for symbols to leave with.
    pub(in crate::proto) fn is_overdue(&self) -> bool {
        self.replies.next().is_some() || (self.overdue && self.answers.next().is_some())
    }

    /// Appends pending reports, in an ANSWER, to the symbols in `buffer`, if they go to the same
    /// peer and the ANSWER is no longer than each symbol packet. Returns the resulting batch.
    pub(in crate::proto) fn poll_piggyback(
        &mut self,
        now: Instant,
        batch: Transmit,
        buffer: &mut Vec<u8>,
    ) -> Transmit {
        let Transmit { contents, via, segment_size, marking, .. } = batch;
        let capacity = segment_size.min(MAX_ANSWER);
        // A STOP costs no call of its own here: the last datagram of a segmented batch may be
        // shorter. A call of 1.5 KB with a response of 5 KB takes 35 us instead of 50.
        self.overdue = true;
        // Piggybacked answers are not paced, but must not use up the rate of others that are.
        let others_wait = self.replies.next().is_some() || self.answers.len() > 1;
        if others_wait && self.pacer.ready_at() > now {
            return batch;
        }
        // At the destination of a HELLO, it is not known which peer is there, or whether packets
        // get through.
        if !matches!(contents, Contents::Symbols { .. })
            || !marking::may_carry_answers(&self.config, marking)
        {
            return batch;
        }
        let sessions = &self.sessions;
        let goes_there =
            |name: SessionId| sessions.get(&name).is_some_and(|known| known.own == via.remote);
        let fits = |next: &Outbound, len| next.is_plain() && len + next.report.len() <= capacity;
        let taken =
            self.answers.take_first(SEARCH_LIMIT, goes_there, |one| fits(one, ANSWER_OVERHEAD));
        let Some((name, first)) = taken else { return batch };
        let mut len = ANSWER_OVERHEAD + first.report.len();
        let mut joined = ArrayVec::<Report, MAX_JOINED>::new();
        joined.push(first.report);
        while !joined.is_full()
            && let Some((_, next)) =
                self.answers.take_first(SEARCH_LIMIT, |other| other == name, |next| fits(next, len))
        {
            len += next.report.len();
            joined.push(next.report);
        }
        let Some(session) = self.sessions.get_mut(&name) else { return batch };
        session.write_answer(&joined, marking.class, PathId(via.egress), buffer);
        self.counters.on_reports(&joined);
        emit_reports(&self.observer, session.peer, &joined);
        let overhead = headers(&via) + self.resolver.overhead(via);
        self.pacer.charge(now, buffer.len() - batch.len + overhead);
        Transmit { len: buffer.len(), ..batch }
    }

    /// Raises the credit of a pending PULL for the same block. Returns whether there is one.
    pub(super) fn raise_pending_pull(
        &mut self,
        name: SessionId,
        id: MessageId,
        raised: PullCredit,
    ) -> bool {
        let Some(queue) = self.answers.queue(name) else { return false };
        for pending in queue.iter_mut().rev().take(SEARCH_LIMIT) {
            if let Report::Message(known) = &mut pending.report
                && (known.message, known.block) == (id, raised.block)
                && let Verdict::Pull { credit, fin, .. } = &mut known.verdict
            {
                *credit = raised.credit;
                *fin = raised.fin;
                return true;
            }
        }
        false
    }

    /// Queues an answer, or several copies for different reverse paths, of at most `limit` bytes in
    /// all.
    pub(super) fn answer(
        &mut self,
        name: SessionId,
        symbol: Option<Prefix>,
        mut answer: Answer,
        limit: usize,
    ) {
        if let Verdict::Delivered { arrivals, .. }
        | Verdict::BlockDone { arrivals, .. }
        | Verdict::Nack { arrivals, .. }
        | Verdict::Pull { arrivals, .. } = &mut answer.verdict
        {
            arrivals.truncate(wire::Answer::arrivals_within(limit));
        }
        let path = symbol.map(|symbol| symbol.path);
        let again = symbol.is_some_and(|symbol| symbol.again);
        let message = answer.message;
        let block = answer.block;
        let report = Report::Message(answer);
        // The reverse path is hashed by this end's port, too: with one port and three of four
        // spines dead, each of two live forward paths has one chance in four of a live path back,
        // for good.
        let alternates = if again { copies(ANSWER_OVERHEAD + report.len(), limit) - 1 } else { 0 };
        let outbound = Outbound { path, report, routed: false, alternates };
        let queue = self.answers.queue(name);
        // A pending answer for the same block is out of date: this one contains all of its
        // information. Symbols that arrive together are therefore answered together, but separately
        // for each path, because an answer is evidence about the path of the symbol that it
        // acknowledges. Paths are ignored if the peer hears nothing anyway, or if more than an
        // ANSWER's worth is pending: repeated STOPs would delay those of other messages.
        let crowded = queue.as_ref().is_some_and(|queue| queue.len() > MAX_JOINED);
        let same = |pending: &&mut Outbound| {
            let same = |known: &Answer| (known.message, known.block) == (message, block);
            (again || crowded || pending.path == path)
                && matches!(&pending.report, Report::Message(known) if same(known))
        };
        if let Some(pending) =
            queue.and_then(|queue| queue.iter_mut().rev().take(SEARCH_LIMIT).find(same))
        {
            *pending = outbound;
            return;
        }
        self.queue(name, outbound);
    }

    /// Queues a report on a session.
    pub(super) fn report(&mut self, name: SessionId, report: Report) {
        self.queue(name, Outbound { path: None, report, routed: false, alternates: 0 });
    }

    fn queue(&mut self, name: SessionId, outbound: Outbound) {
        if self.answers.next().is_none() {
            self.overdue = false;
        }
        if self.answers.push(name, outbound) {
            self.counters.answers_dropped += 1;
        }
    }
}
