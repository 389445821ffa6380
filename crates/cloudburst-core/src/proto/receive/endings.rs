//! How messages end at the receiver: delivered, rejected or forgotten.

use super::Receiver;
use super::answers::{Answer, Report, Verdict};
use super::deadlines::MessageTimer;
use super::incoming::Incoming;
use super::session::Session;
use super::window::Ending;
use crate::id::{MessageId, SessionId};
use crate::wire::answer::NONE_ACKNOWLEDGED;
use crate::wire::symbol::MIN_SYMBOL_LEN;
use crate::wire::{Capabilities, RejectReason, Role};

impl Receiver {
    /// Ends a message and remembers how. Returns its state.
    pub(super) fn end(
        &mut self,
        name: SessionId,
        id: MessageId,
        ending: Ending,
    ) -> Option<Incoming> {
        let mut incoming = self.update(name, |session| session.window.end(id, ending))??;
        self.detach(name, id, &mut incoming);
        Some(incoming)
    }

    /// Removes the deadline, the pulls and the place in line of a message that is no longer held.
    pub(super) fn detach(&mut self, name: SessionId, id: MessageId, incoming: &mut Incoming) {
        self.timers.set(&mut incoming.timer, None, MessageTimer(name, id));
        self.pulls.leave(incoming, (name, id));
        if let Some(place) = incoming.inbox_key.take() {
            self.inboxes[incoming.role as usize].remove(place);
        }
    }

    /// Rejects all messages of some roles that have not ended, because the endpoint is closing.
    pub(super) fn refuse(&mut self, concerns: impl Fn(Role) -> bool) {
        let mut refused: Vec<(SessionId, MessageId)> = Vec::new();
        for (name, session) in &self.sessions {
            let messages = session.window.messages();
            let concerned = messages.filter(|(_, incoming)| concerns(incoming.role));
            refused.extend(concerned.map(|(id, _)| (*name, id)));
        }
        // Sorted, so that the order does not change from run to run.
        refused.sort_unstable();
        for (name, message) in refused {
            let reason = RejectReason::Closing;
            let Some(incoming) = self.end(name, message, Ending::Rejected(reason)) else {
                continue;
            };
            self.recycler.put_message(incoming);
            let acknowledged = NONE_ACKNOWLEDGED;
            let verdict = Verdict::Reject(reason);
            let answer = Answer { message, block: 0, acknowledged, verdict };
            self.answer(name, None, answer, MIN_SYMBOL_LEN);
        }
    }

    /// Tells the peers of all sessions that these have ended.
    pub(super) fn end_sessions(&mut self) {
        let told = |(name, session): (&SessionId, &Session)| {
            // To all, also those that never sent a packet: without it, the next message to this
            // endpoint ends at its deadline as perhaps delivered, and cannot safely go elsewhere.
            session.capabilities.has(Capabilities::ENDED).then_some(*name)
        };
        let mut names: Vec<_> = self.sessions.iter().filter_map(told).collect();
        // Sorted, so that the order does not change from run to run.
        names.sort_unstable();
        for name in names {
            self.report(name, Report::Ended);
        }
    }

    /// Forgets a message as if it had never begun.
    pub(super) fn forget_message(&mut self, name: SessionId, id: MessageId) {
        let forgotten = self.update(name, |session| session.window.forget(id));
        let Some(mut incoming) = forgotten.flatten() else { return };
        self.detach(name, id, &mut incoming);
        let role = incoming.role;
        let is_whole = incoming.is_whole();
        self.recycler.put_message(incoming);
        if is_whole {
            self.counters.messages_dropped += 1;
            // The next waiting message may be shorter.
            self.deliver_waiting(role);
        } else {
            self.counters.decoders_expired += 1;
        }
    }
}
