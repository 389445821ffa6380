//! Probes: packets without a symbol, which request a report on the symbols sent before them
//! (Aeolus).

use super::Receiver;
use super::answers::{Answer, Verdict};
use super::incoming::PendingProbe;
use super::pulling::PullCredit;
use super::quota::HostKey;
use super::symbols::Symbol;
use crate::id::{MessageId, SessionId};
use crate::time::Instant;

impl Receiver {
    /// Finds the message of a packet that carries no symbol, or begins it. Returns whether the
    /// message is being received; if not, the packet has been answered where due.
    pub(super) fn reach_message(&mut self, now: Instant, symbol: &Symbol<'_>) -> bool {
        if self.take_late(now, symbol) {
            return false;
        }
        if !self.reconcile(symbol) {
            return false;
        }
        let name = symbol.session;
        let id = symbol.header.message;
        let Some(session) = self.sessions.get_mut(&name) else { return false };
        match session.window.receiving(id) {
            Some(incoming) if symbol.prefix.partial && !incoming.is_partial() => {
                self.answer_to(symbol, Verdict::Forgotten);
                return false;
            }
            Some(_) => {}
            None => match self.admit_message(now, symbol) {
                // An invalid packet must not begin a message.
                Ok(incoming) if incoming.needed(symbol.header.block).is_none() => {
                    self.recycler.put_message(incoming);
                    self.counters.nonsense += 1;
                    return false;
                }
                Ok(incoming) => self.begin_message(now, name, id, incoming),
                Err(verdict) => {
                    self.answer_to(symbol, verdict);
                    return false;
                }
            },
        }
        true
    }

    /// Records a probe of a message that is being received; `sent` symbols of its block were sent
    /// before it. The probe of a pulled message is answered at once, so that the sender waits for
    /// PULLs; others are answered once the missing symbols are known.
    pub(super) fn note_probe(
        &mut self,
        now: Instant,
        symbol: &Symbol<'_>,
        sent: u32,
    ) -> Option<()> {
        let name = symbol.session;
        let id = symbol.header.message;
        let block = symbol.header.block;
        // A message of which nothing arrives is forgotten, and its sender may wait for this answer to go on.
        let due = now + self.pulls.grace().min(self.config.decode_timeout / 2);
        let session = self.sessions.get_mut(&name)?;
        let rto = session.pull_round_trip.rto();
        let host = HostKey::of(session.peer.ip());
        let incoming = session.window.receiving(id)?;
        // Otherwise the block is done, as its sender was told, or there is no such block.
        let _ = incoming.needed(block)?;
        let Some((pulling, layout)) = incoming.pulling() else {
            let prefix = symbol.prefix;
            let packet_len = symbol.packet_len;
            // A sender whose message is paused repeats its probe and sends no symbols, so that there is
            // nothing to wait for. The grace period is long on a slow link, and must not begin anew.
            let due = if incoming.probed.is_some() { now } else { due };
            incoming.probed = Some(PendingProbe { prefix, block, packet_len, due });
            self.pulls.update(incoming, host, rto, (name, id));
            return Some(());
        };
        pulling.on_probe(block, sent, symbol.header.unscheduled.into(), due, layout);
        let PullCredit { credit, fin, .. } = pulling.credit(block);
        let arrivals = incoming.arrivals.report();
        self.pulls.update(incoming, host, rto, (name, id));
        self.answer_to(symbol, Verdict::Pull { credit, fin, arrivals });
        Some(())
    }

    /// Answers the probe of a message that is not pulled, if the answer is due.
    pub(super) fn answer_probe(&mut self, now: Instant, name: SessionId, id: MessageId) {
        let session = self.sessions.get_mut(&name);
        let incoming = session.and_then(|session| session.window.receiving(id));
        let Some(incoming) = incoming else { return };
        let due = incoming.probed.take_if(|probed| probed.due <= now);
        if let Some((probed, needed)) = due.and_then(|it| Some((it, incoming.needed(it.block)?))) {
            let arrivals = incoming.arrivals.report();
            let verdict = Verdict::Nack { needed: needed as u16, arrivals };
            let PendingProbe { prefix, block, packet_len, .. } = probed;
            let answer = Answer { message: id, block, acknowledged: prefix.number, verdict };
            self.answer(name, Some(prefix), answer, packet_len);
        }
    }
}
