//! Symbols: which message, what they do to it, and what is answered.

use super::Receiver;
use super::ReceiverEvent;
use super::incoming::{Incoming, Step};
use super::session::Ending;
use crate::id::{MessageId, SessionId};
use crate::path::Via;
use crate::proto::identity::Peering;
use crate::proto::sender::MESSAGE_WINDOW;
use crate::time::Instant;
use crate::wire::seal::OpenError;
use crate::wire::symbol::SymbolView;
use crate::wire::{Answer, Prefix, RejectReason, SymbolHeader, Verdict};

impl Receiver {
    pub(super) fn handle_symbol(&mut self, now: Instant, via: Via, packet: &mut [u8]) {
        let (prefix, header, index_set_len, payload_at) = match SymbolView::parse(packet) {
            Ok(view) => (view.prefix, view.header, view.index_set.len(), view.payload_at),
            Err(_) => return self.counters.malformed += 1,
        };
        let name = prefix.session;
        let Some(session) = self.sessions.get_mut(&name) else {
            return self.counters.unknown_session += 1;
        };
        let packet_len = packet.len();
        let payload_len = match session.opener.open(prefix.number, packet, payload_at) {
            Ok(payload) => payload.len(),
            Err(OpenError::Replayed) => return self.counters.replayed += 1,
            Err(OpenError::Forged) => return self.counters.forged += 1,
        };
        self.counters.symbols_received += 1;
        self.last_symbol = Some(now);
        session.last_heard = now;
        session.learn_route(prefix.path, via);
        if let Some(flow) = session.backward.take() {
            self.counters.sessions_confirmed += 1;
            let (peer, incarnation) = (session.peer, session.incarnation);
            self.events.push_back(ReceiverEvent::Confirmed(Peering { peer, incarnation, flow }));
        }
        let floor = MessageId(header.message.0.saturating_sub(u64::from(header.age)));
        self.memory -= session.raise_floor(floor);

        let index_set = &packet[payload_at - index_set_len..payload_at];
        let payload = &packet[payload_at..payload_at + payload_len];
        self.take_symbol(now, name, &prefix, &header, index_set, payload, packet_len);
    }

    #[expect(clippy::too_many_arguments, reason = "one packet's parts, passed on once")]
    pub(super) fn take_symbol(
        &mut self,
        now: Instant,
        name: SessionId,
        prefix: &Prefix,
        header: &SymbolHeader,
        index_set: &[u8],
        payload: &[u8],
        packet_len: usize,
    ) {
        let Some(session) = self.sessions.get_mut(&name) else { return };
        let (id, block, echo) = (header.message, header.block, prefix.number);
        if id < session.floor() {
            return self.counters.late_symbols += 1;
        }
        if let Some(ending) = session.ending(id) {
            self.counters.late_symbols += 1;
            let verdict = match ending {
                Ending::Delivered(digest, arrivals) => {
                    let fit = arrivals.len().min(Answer::arrivals_within(packet_len));
                    Verdict::Delivered { digest: *digest, arrivals: arrivals[..fit].to_vec() }
                }
                Ending::Rejected(reason) => Verdict::Reject(*reason),
            };
            return self.answer(name, id, block, echo, verdict);
        }
        if !session.incoming.contains_key(&id)
            && let Err(verdict) = self.begin(now, name, header)
        {
            return self.answer(name, id, block, echo, verdict);
        }
        let Some(session) = self.sessions.get_mut(&name) else { return };
        let Some(incoming) = session.incoming.get_mut(&id) else { return };
        if incoming.is_done() {
            self.counters.late_symbols += 1;
            return self.answer(name, id, block, echo, Verdict::Busy);
        }
        let useful_before = incoming.useful;
        let step = incoming.receive(now, id, header, index_set, payload, &session.digest);
        if step == Step::Nonsense {
            return self.counters.nonsense += 1;
        }
        incoming.count_arrival(prefix.path);
        self.counters.useful_symbols += u64::from(incoming.useful - useful_before);
        let mut arrivals = incoming.arrivals.clone();
        arrivals.truncate(Answer::arrivals_within(packet_len));
        match step {
            Step::Nonsense => {}
            Step::Needs(needed) => {
                if prefix.ask {
                    let needed = needed as u16;
                    self.answer(name, id, block, echo, Verdict::Status { needed, arrivals });
                }
            }
            Step::BlockDone(digest) => {
                self.answer(name, id, block, echo, Verdict::BlockDone { digest, arrivals });
            }
            Step::MessageDone => {
                let length = incoming.length();
                if self.has_room(length) {
                    self.deliver(name, id, block, echo, packet_len);
                } else {
                    self.waiting.push_back((name, id));
                    self.answer(name, id, block, echo, Verdict::Busy);
                }
            }
            Step::Corrupt => {
                self.counters.corrupt_blocks += 1;
                self.end(name, id, Ending::Rejected(RejectReason::Corrupt));
                self.answer(name, id, block, echo, Verdict::Reject(RejectReason::Corrupt));
            }
        }
    }

    /// Begins to receive a message, or says why not.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        name: SessionId,
        header: &SymbolHeader,
    ) -> Result<(), Verdict> {
        if self.closing {
            return Err(Verdict::Reject(RejectReason::Closing));
        }
        if header.length > self.config.max_message as u64 {
            return Err(Verdict::Reject(RejectReason::TooLarge));
        }
        let Some(incoming) = Incoming::new(now, header) else {
            return Err(Verdict::Reject(RejectReason::Unsupported));
        };
        let Some(session) = self.sessions.get_mut(&name) else { return Err(Verdict::Busy) };
        let memory = incoming.memory();
        // One message always fits, whatever its bookkeeping takes: else it would never arrive.
        let fits = |used: usize, limit: usize| used == 0 || used + memory <= limit;
        let room = session.span() < MESSAGE_WINDOW
            && fits(session.memory, self.config.decode_bytes_per_peer)
            && fits(self.memory, self.config.decode_bytes);
        if !room {
            return Err(Verdict::Busy);
        }
        session.memory += memory;
        self.memory += memory;
        session.incoming.insert(header.message, incoming);
        Ok(())
    }
}
