//! The effect of a symbol on its message, and the answer to it.

use super::Receiver;
use super::admission::Candidate;
use super::answers::{Counted, Verdict};
use super::incoming::{Cut, Incoming, Step};
use super::pulling::{Arrival, PullCredit};
use super::quota::HostKey;
use super::routes::Routes;
use super::symbols::Symbol;
use super::window::Ending;
use crate::id::{MessageId, SessionId};
use crate::proto::limits::MESSAGE_WINDOW;
use crate::proto::observe::{Observation, emit};
use crate::proto::round_trip::RoundTrip;
use crate::proto::send::headers_to;
use crate::time::Instant;
use crate::wire::{RejectReason, Role, SymbolHeader};

impl Receiver {
    pub(super) fn take_symbol(&mut self, now: Instant, symbol: &Symbol<'_>) {
        let Some(session) = self.sessions.get_mut(&symbol.session) else { return };
        // Looked up first: most symbols are of messages that are being received, and such a message
        // is neither over nor below the low watermark.
        let Some(incoming) = session.window.receiving(symbol.header.message) else {
            return self.take_first(now, symbol);
        };
        self.last_symbol = Some(now);
        let Symbol { header, index_set, payload, prefix, .. } = symbol;
        if incoming.cut_of(prefix, header) != Some(Cut::Same) {
            if self.reconcile(symbol) {
                self.take_first(now, symbol);
            }
            return;
        }
        if prefix.partial && !incoming.is_partial() {
            // Late symbols, sent before the sender knew of completed blocks, have begun the message
            // anew.
            return self.answer_to(symbol, Verdict::Forgotten);
        }
        let key = &session.digest;
        let step = incoming.receive(now, header, index_set, payload, key, &mut self.recycler.pool);
        self.after(now, step, symbol);
    }

    /// Compares a packet with its message, if that is being received. One of a newer cut discards
    /// what was collected, and begins the message again. Returns whether the packet counts.
    pub(super) fn reconcile(&mut self, symbol: &Symbol<'_>) -> bool {
        let id = symbol.header.message;
        let Some(session) = self.sessions.get_mut(&symbol.session) else { return false };
        let Some(incoming) = session.window.receiving(id) else { return true };
        match incoming.cut_of(&symbol.prefix, &symbol.header) {
            Some(Cut::Same) => true,
            Some(Cut::Newer) => {
                self.drop_message(symbol.session, id);
                true
            }
            Some(Cut::Older) => {
                self.counters.late_symbols += 1;
                session.counts.late_symbols += 1;
                false
            }
            None => {
                self.counters.nonsense += 1;
                false
            }
        }
    }

    /// Handles a symbol of a message that is not being received: its first, or a late one.
    fn take_first(&mut self, now: Instant, symbol: &Symbol<'_>) {
        if self.take_late(now, symbol) {
            return;
        }
        match self.begin(now, symbol) {
            Ok(step) => {
                self.last_symbol = Some(now);
                self.after(now, step, symbol);
            }
            Err(verdict) => self.answer_to(symbol, verdict),
        }
    }

    /// Handles a symbol of a message that needs no more symbols. Returns whether it is one.
    pub(super) fn take_late(&mut self, now: Instant, symbol: &Symbol<'_>) -> bool {
        let Some(session) = self.sessions.get_mut(&symbol.session) else { return true };
        let id = symbol.header.message;
        let verdict = if id < session.window.low_watermark {
            None
        } else if let Some(ending) = session.window.ended.get(&id) {
            Some(match *ending {
                Ending::Delivered(digest) => {
                    self.last_symbol = Some(now);
                    if symbol.prefix.ack_request {
                        session.routes.suspect_answers_lost();
                    }
                    let late = symbol.is_arrival.then_some((symbol.prefix.path, symbol.ce));
                    let arrivals = session.count_late(id, late);
                    Verdict::Delivered { digest, arrivals }
                }
                Ending::Rejected(reason) => Verdict::Reject(reason),
            })
        } else if let Some(whole) = session.window.whole.get_mut(&id) {
            whole.last_late = now;
            Some(Verdict::Held)
        } else {
            return false;
        };
        self.counters.late_symbols += 1;
        session.counts.late_symbols += 1;
        if let Some(verdict) = verdict {
            self.answer_to(symbol, verdict);
        }
        true
    }

    /// Begins to receive a message with its first symbol, or returns the verdict on why not.
    #[expect(clippy::result_large_err, reason = "few symbols are refused")]
    fn begin(&mut self, now: Instant, symbol: &Symbol<'_>) -> Result<Option<Step>, Verdict> {
        let mut incoming = self.admit_message(now, symbol)?;
        let Symbol { session: name, header, index_set, payload, .. } = symbol;
        let Some(session) = self.sessions.get(name) else { return Err(Verdict::Busy) };
        let key = &session.digest;
        let pool = &mut self.recycler.pool;
        let step = incoming.receive(now, header, index_set, payload, key, pool);
        if step.is_none() {
            self.recycler.put_message(incoming);
        } else {
            self.begin_message(now, *name, header.message, incoming);
        }
        Ok(step)
    }

    /// Creates the state of a message from its first packet, or returns the verdict on why it must
    /// not begin.
    #[expect(clippy::result_large_err, reason = "few symbols are refused")]
    pub(super) fn admit_message(
        &mut self,
        now: Instant,
        symbol: &Symbol<'_>,
    ) -> Result<Incoming, Verdict> {
        let header = &symbol.header;
        if self.closing && matches!(symbol.prefix.role, Role::Plain | Role::Request) {
            return Err(Verdict::Reject(RejectReason::Closing));
        }
        if header.length as usize > self.config.max_message {
            return Err(Verdict::Reject(RejectReason::TooLarge));
        }
        if symbol.prefix.partial {
            return Err(Verdict::Forgotten);
        }
        let Some(mut incoming) = Incoming::new(now, &symbol.prefix, header) else {
            return Err(Verdict::Reject(RejectReason::Unsupported));
        };
        let Some(session) = self.sessions.get(&symbol.session) else { return Err(Verdict::Busy) };
        let candidate = Candidate {
            peer: session.key(),
            session: symbol.session,
            id: header.message,
            role: incoming.role,
            oldest: header.message == session.window.low_watermark,
            memory: incoming.memory(),
        };
        // Its sender may have given it up since it sent this packet.
        let is_void = symbol.prefix.number < session.begins_from;
        if is_void || session.window.span() >= MESSAGE_WINDOW || !self.admit(now, &candidate) {
            return Err(Verdict::Busy);
        }
        if let Some(over) = self.recycler.messages.pop() {
            incoming.reuse(over);
        }
        Ok(incoming)
    }

    /// Begins to receive a message.
    pub(super) fn begin_message(
        &mut self,
        now: Instant,
        name: SessionId,
        id: MessageId,
        incoming: Incoming,
    ) {
        self.timers.set((name, id), Some(now + self.config.decode_timeout));
        if self.observer.is_some()
            && let Some(session) = self.sessions.get(&name)
        {
            let peer = session.peer;
            let bytes = incoming.layout.length();
            let started = || Observation::MessageStarted { peer, message: id, bytes, sends: false };
            emit(&self.observer, started);
        }
        self.pulls.begin(&incoming);
        self.update(name, |session| session.window.begin(id, incoming));
    }

    /// Counts the effect of a symbol, and answers it. `None` stands for an invalid symbol.
    fn after(&mut self, now: Instant, step: Option<Step>, symbol: &Symbol<'_>) {
        let Some(step) = step else {
            self.counters.nonsense += 1;
            return;
        };
        let Some(session) = self.sessions.get_mut(&symbol.session) else { return };
        let id = symbol.header.message;
        let Some(incoming) = session.window.receiving(id) else { return };
        if symbol.is_arrival {
            incoming.arrivals.add(symbol.prefix.path, symbol.ce);
        }
        let round_trip = &mut session.pull_round_trip;
        if let Some(lost) = note_pulled(now, incoming, symbol, &step, &session.routes, round_trip) {
            self.counters.symbols_lost += u64::from(lost);
            let key = (symbol.session, id);
            let host = HostKey::of(session.peer.ip());
            self.pulls.update(incoming, host, round_trip.rto(), key);
            if symbol.header.symbol < symbol.header.unscheduled.into() {
                let bytes = symbol.packet_len + headers_to(&session.own);
                self.pulls.on_unscheduled(now, host, key, bytes);
            }
        }
        let reports = symbol.prefix.ack_request || matches!(step, Step::BlockDone { .. });
        let arrivals: Counted = if reports { incoming.arrivals.report() } else { Counted::new() };
        match step {
            Step::Needs { needed, useful } => {
                self.counters.useful_symbols += u64::from(useful);
                if symbol.prefix.ack_request {
                    session.routes.suspect_answers_lost();
                    let verdict = match &incoming.pulling {
                        Some(pulling) => {
                            let PullCredit { credit, fin, .. } =
                                pulling.credit(symbol.header.block);
                            Verdict::Pull { credit, fin, arrivals }
                        }
                        None => Verdict::Nack { needed: needed as u16, arrivals },
                    };
                    self.answer_to(symbol, verdict);
                }
            }
            Step::Again => self.counters.corrupt_blocks += 1,
            Step::Corrupt => {
                self.counters.corrupt_blocks += 1;
                if let Some(incoming) =
                    self.end(symbol.session, id, Ending::Rejected(RejectReason::Corrupt))
                {
                    self.recycler.put_message(incoming);
                }
                self.answer_to(symbol, Verdict::Reject(RejectReason::Corrupt));
            }
            Step::BlockDone { digest, useful } => {
                self.counters.useful_symbols += u64::from(useful);
                self.answer_to(symbol, Verdict::BlockDone { digest, arrivals });
            }
            Step::MessageDone => {
                self.counters.useful_symbols += 1;
                if let Some(verdict) = self.on_message_done(symbol.session, id) {
                    self.answer_to(symbol, verdict);
                }
            }
        }
    }
}

/// Updates the pulls of a message after a symbol. Returns how many more symbols are lost, or `None`
/// if the message is not pulled.
fn note_pulled(
    now: Instant,
    incoming: &mut Incoming,
    symbol: &Symbol<'_>,
    step: &Step,
    routes: &Routes,
    round_trip: &mut RoundTrip,
) -> Option<u32> {
    let (pulling, layout) = incoming.pulling()?;
    let SymbolHeader { block, symbol: index, unscheduled, .. } = symbol.header;
    let needed = match *step {
        Step::Needs { needed, .. } => needed,
        Step::Again => layout.shape(block as usize)?.source_symbols(),
        Step::BlockDone { .. } => {
            pulling.on_block_done(now, block, layout);
            return Some(0);
        }
        Step::MessageDone | Step::Corrupt => return None,
    };
    let arrival = Arrival {
        block,
        symbol: index,
        unscheduled: unscheduled.into(),
        number: symbol.prefix.number,
        horizon: routes.horizon(symbol.prefix.class),
        needed: needed as u32,
    };
    Some(pulling.on_arrival(now, arrival, layout, round_trip))
}
