//! Symbols: which message, what they do to it, and what is answered.

use super::Receiver;
use super::deadlines::MessageTimer;
use super::incoming::{Incoming, Step};
use super::room::Applicant;
use super::window::Ending;
use crate::id::{MessageId, SessionId};
use crate::path::Via;
use crate::proto::limits::MESSAGE_WINDOW;
use crate::proto::session::Peering;
use crate::time::Instant;
use crate::wire::seal::OpenError;
use crate::wire::symbol::SymbolView;
use crate::wire::{Answer, Prefix, RejectReason, SymbolHeader, Verdict};

/// An authentic symbol, and where it came from.
struct Symbol<'a> {
    session: SessionId,
    prefix: Prefix,
    header: SymbolHeader,
    index_set: &'a [u8],
    payload: &'a [u8],
    packet_len: usize,
}

impl Receiver {
    /// Takes a SYMBOL that arrived by `via`. The packet is garbled afterwards. Returns the peer, if
    /// this is the first that proves that it is there: the sender half may talk to it without a
    /// handshake.
    pub(in crate::proto) fn handle_symbol(
        &mut self,
        now: Instant,
        via: Via,
        packet: &mut [u8],
    ) -> Option<Peering> {
        let Ok(view) = SymbolView::parse(packet) else {
            self.counters.malformed += 1;
            return None;
        };
        let (prefix, header, payload_at) = (view.prefix, view.header, view.payload_at);
        let index_set_at = payload_at - view.index_set.len();
        let name = prefix.session;
        let (payload_len, confirmed) = self.open_symbol(now, via, &prefix, packet, payload_at)?;
        // Refused for want of room: silence.
        let session = self.sessions.get_mut(&name)?;
        self.counters.symbols_received += 1;
        self.last_symbol = Some(now);
        session.tally.symbols_received += 1;
        session.routes.learn(prefix.path, via);
        let low_watermark = MessageId(header.message.0.saturating_sub(u64::from(header.age)));
        let rises = low_watermark > session.window.low_watermark();
        self.heard(now, name);
        if rises {
            self.raise_low_watermark(name, low_watermark);
        }

        self.take_symbol(
            now,
            &Symbol {
                session: name,
                prefix,
                header,
                index_set: &packet[index_set_at..payload_at],
                payload: &packet[payload_at..payload_at + payload_len],
                packet_len: packet.len(),
            },
        );
        confirmed
    }

    /// Opens the payload of a symbol in place. Returns its length, and the peer that it confirms.
    fn open_symbol(
        &mut self,
        now: Instant,
        via: Via,
        prefix: &Prefix,
        packet: &mut [u8],
        payload_at: usize,
    ) -> Option<(usize, Option<Peering>)> {
        let opened = match self.sessions.get_mut(&prefix.session) {
            Some(session) => {
                let payload = session.opener.open(prefix.number, packet, payload_at);
                Some(payload.map(|payload| (payload.len(), None)))
            }
            None => self.confirm(now, via, prefix, packet, payload_at),
        };
        let counter = match opened {
            Some(Ok(opened)) => return Some(opened),
            Some(Err(OpenError::Replayed)) => &mut self.counters.replayed,
            Some(Err(OpenError::Forged)) => &mut self.counters.forged,
            None => &mut self.counters.unknown_session,
        };
        *counter += 1;
        None
    }

    /// The peer has finished with what is older than `low_watermark`.
    fn raise_low_watermark(&mut self, name: SessionId, low_watermark: MessageId) {
        let dropped =
            self.update(name, |session| session.window.raise_low_watermark(low_watermark));
        for (id, mut incoming) in dropped.into_iter().flatten() {
            self.timers.set(&mut incoming.timer, None, MessageTimer(name, id));
        }
    }

    fn take_symbol(&mut self, now: Instant, symbol: &Symbol<'_>) {
        let Some(session) = self.sessions.get_mut(&symbol.session) else { return };
        let id = symbol.header.message;
        if id < session.window.low_watermark() {
            session.tally.late_symbols += 1;
            return self.counters.late_symbols += 1;
        }
        if let Some(ending) = session.window.ending(id) {
            self.counters.late_symbols += 1;
            session.tally.late_symbols += 1;
            let verdict = match ending {
                Ending::Delivered(digest) => {
                    if symbol.prefix.ack_request {
                        session.routes.doubt();
                    }
                    let arrivals = session.late_arrivals(id);
                    Verdict::Delivered { digest, arrivals }
                }
                Ending::Rejected(reason) => Verdict::Reject(reason),
            };
            return self.answer_to(symbol, verdict);
        }
        if let Some(whole) = session.window.whole(id) {
            whole.last_late = now;
            self.counters.late_symbols += 1;
            session.tally.late_symbols += 1;
            return self.answer_to(symbol, Verdict::Busy);
        }
        let step = match session.window.receiving(id) {
            Some(incoming) if incoming.role != symbol.prefix.role => Step::Nonsense,
            // Stragglers from before its sender knew of blocks that were done began it anew.
            Some(incoming) if symbol.prefix.partial && !incoming.is_partial() => {
                return self.answer_to(symbol, Verdict::Forgotten);
            }
            Some(incoming) => {
                let key = &session.digest;
                incoming.receive(now, id, &symbol.header, symbol.index_set, symbol.payload, key)
            }
            None => match self.begin(now, symbol) {
                Ok(step) => step,
                Err(verdict) => return self.answer_to(symbol, verdict),
            },
        };
        self.after(step, symbol);
    }

    /// Begins to receive a message with its first symbol, or says why not.
    fn begin(&mut self, now: Instant, symbol: &Symbol<'_>) -> Result<Step, Verdict> {
        let header = &symbol.header;
        if self.closing {
            return Err(Verdict::Reject(RejectReason::Closing));
        }
        if header.length > self.config.max_message as u64 {
            return Err(Verdict::Reject(RejectReason::TooLarge));
        }
        if symbol.prefix.partial {
            return Err(Verdict::Forgotten);
        }
        let Some(mut incoming) = Incoming::new(now, symbol.prefix.role, header) else {
            return Err(Verdict::Reject(RejectReason::Unsupported));
        };
        let Some(session) = self.sessions.get(&symbol.session) else { return Err(Verdict::Busy) };
        let applicant = Applicant {
            peer: session.key(),
            session: symbol.session,
            id: header.message,
            role: incoming.role,
            oldest: header.message == session.window.low_watermark(),
            memory: incoming.memory(),
        };
        if session.window.span() >= MESSAGE_WINDOW || !self.admit(now, &applicant) {
            return Err(Verdict::Busy);
        }
        let Some(session) = self.sessions.get(&symbol.session) else { return Err(Verdict::Busy) };
        let (id, key) = (header.message, &session.digest);
        let step = incoming.receive(now, id, header, symbol.index_set, symbol.payload, key);
        if step != Step::Nonsense {
            let deadline = now + self.config.decode_timeout;
            let timer = MessageTimer(symbol.session, id);
            self.timers.set(&mut incoming.timer, Some(deadline), timer);
            self.update(symbol.session, |session| session.window.begin(id, incoming));
        }
        Ok(step)
    }

    /// Draws the consequences of what a symbol did.
    fn after(&mut self, step: Step, symbol: &Symbol<'_>) {
        if step == Step::Nonsense {
            return self.counters.nonsense += 1;
        }
        let Some(session) = self.sessions.get_mut(&symbol.session) else { return };
        let id = symbol.header.message;
        let Some(incoming) = session.window.receiving(id) else { return };
        incoming.count_arrival(symbol.prefix.path);
        let says = symbol.prefix.ack_request || matches!(step, Step::BlockDone { .. });
        let arrivals = if says { incoming.arrivals.clone() } else { Vec::new() };
        match step {
            Step::Nonsense => {}
            Step::Needs { needed, useful } => {
                self.counters.useful_symbols += u64::from(useful);
                if symbol.prefix.ack_request {
                    session.routes.doubt();
                    let needed = needed as u16;
                    self.answer_to(symbol, Verdict::Status { needed, arrivals });
                }
            }
            Step::Again => self.counters.corrupt_blocks += 1,
            Step::Corrupt => {
                self.counters.corrupt_blocks += 1;
                self.end(symbol.session, id, Ending::Rejected(RejectReason::Corrupt));
                self.answer_to(symbol, Verdict::Reject(RejectReason::Corrupt));
            }
            Step::BlockDone { digest, useful } => {
                self.counters.useful_symbols += u64::from(useful);
                self.answer_to(symbol, Verdict::BlockDone { digest, arrivals });
            }
            Step::MessageDone => {
                self.counters.useful_symbols += 1;
                let (role, length) = (incoming.role, incoming.length());
                let peer = session.key();
                let verdict = if self.is_next(role) && self.has_room(role, length) {
                    self.deliver(symbol.session, id)
                } else if self.has_backlog_room(&peer, role) {
                    self.update(symbol.session, |session| session.window.complete(id));
                    self.wait_for_room(role, symbol.session, id);
                    Some(Verdict::Busy)
                } else {
                    self.forget_message(symbol.session, id);
                    Some(Verdict::Busy)
                };
                if let Some(verdict) = verdict {
                    self.answer_to(symbol, verdict);
                }
            }
        }
    }

    /// Answers a symbol, with no more bytes than it had.
    fn answer_to(&mut self, symbol: &Symbol<'_>, verdict: Verdict) {
        self.answer(
            symbol.session,
            Some(symbol.prefix),
            Answer {
                message: symbol.header.message,
                block: symbol.header.block,
                acknowledged: symbol.prefix.number,
                verdict,
            },
            symbol.packet_len,
        );
    }
}
