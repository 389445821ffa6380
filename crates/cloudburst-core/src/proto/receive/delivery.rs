//! How messages end at the receiver: delivered into the application's queue, rejected or forgotten.

use super::answers::{Answer, Counted, MAX_JOINED, Report, Verdict};
use super::incoming::Incoming;
use super::symbols::Symbol;
use super::window::Ending;
use super::{Message, Receiver, ReceiverEvent};
use crate::config::Limits;
use crate::id::{Incarnation, MessageId, SessionId};
use crate::proto::RequestId;
use crate::proto::observe::{Observation, emit};
use crate::time::Instant;
use crate::wire::answer::NONE_ACKNOWLEDGED;
use crate::wire::symbol::MIN_SYMBOL_LEN;
use crate::wire::{RejectReason, Role};
use std::net::SocketAddr;

/// The number of messages delivered last in a session that ends whose STOPs are sent again: as many
/// as an ANSWER has capacity for beside the end of the session.
const MAX_FINAL_STOPS: usize = MAX_JOINED - 1;

/// What a message costs in its turn to be delivered.
const TURN: u64 = 1;

impl Receiver {
    /// Takes the next message of `role` from the application's queue, and delivers waiting messages
    /// into the capacity that is free. Responses and withdrawals have no queue: see [`ReceiverEvent`].
    pub(crate) fn recv(&mut self, role: Role) -> Option<Message> {
        let message = self.inboxes[role as usize].pop()?;
        self.deliver_waiting(role);
        Some(message)
    }

    /// Removes from the queue a request that its caller has withdrawn. Returns whether it was
    /// there.
    pub(in crate::proto) fn withdraw(&mut self, id: RequestId) -> bool {
        let is_it = |message: &Message| {
            message.peer == id.peer
                && message.incarnation == id.incarnation
                && message.bytes.starts_with(&id.call.to_bytes())
        };
        let was_there = self.inboxes[Role::Request as usize].take_out(id.peer, is_it);
        if was_there {
            self.deliver_waiting(Role::Request);
        }
        was_there
    }

    /// Takes all requests of a peer that is gone out of the application's queue: of one incarnation, if
    /// it is given. Returns their number.
    pub(in crate::proto) fn withdraw_all(
        &mut self,
        peer: SocketAddr,
        incarnation: Option<Incarnation>,
    ) -> u64 {
        let is_it = |message: &Message| {
            message.peer == peer && incarnation.is_none_or(|it| it == message.incarnation)
        };
        let mut taken = 0;
        while self.inboxes[Role::Request as usize].take_out(peer, is_it) {
            taken += 1;
        }
        if taken > 0 {
            self.deliver_waiting(Role::Request);
        }
        taken
    }

    /// The messages of `role` in the application's queue. The first is the one that is taken next.
    pub(crate) fn queued(&self, role: Role) -> impl Iterator<Item = &Message> {
        self.inboxes[role as usize].iter()
    }

    /// The number of messages of `role` in the application's queue.
    pub(crate) fn readable(&self, role: Role) -> usize {
        self.inboxes[role as usize].len()
    }

    /// Delivers the waiting messages for which there is capacity. Hosts take turns.
    pub(super) fn deliver_waiting(&mut self, role: Role) {
        while let Some((session, id)) = self.inboxes[role as usize].waiting.first() {
            let whole = self.sessions.get(&session).and_then(|held| held.window.whole.get(&id));
            if !whole.is_some_and(|whole| self.has_capacity(role, whole.layout.length())) {
                break;
            }
            // The symbol that completed the message was answered with BUSY long ago. This STOP
            // spares the sender an ACK request.
            if let Some(verdict) = self.deliver(session, id) {
                let answer =
                    Answer { message: id, block: 0, acknowledged: NONE_ACKNOWLEDGED, verdict };
                self.answer(session, None, answer, MIN_SYMBOL_LEN);
            }
        }
    }

    /// Whether the queue of `role` has capacity for `length` bytes. Responses and withdrawals need
    /// none.
    fn has_capacity(&self, role: Role, length: usize) -> bool {
        let Limits { receive_messages, receive_bytes, .. } = self.config.limits;
        matches!(role, Role::Response | Role::Withdrawal)
            || self.inboxes[role as usize].has_capacity(length, receive_messages, receive_bytes)
    }

    /// Delivers a complete message. If there is no capacity for it, it waits; if no more may wait, it
    /// is forgotten. Returns the verdict to send.
    pub(super) fn on_message_done(&mut self, name: SessionId, id: MessageId) -> Option<Verdict> {
        let session = self.sessions.get_mut(&name)?;
        let peer = session.key();
        let incoming = session.window.receiving(id)?;
        let role = incoming.role;
        let length = incoming.layout.length();
        self.pulls.leave(incoming, (name, id));
        // Those that wait go first, so that each message that the application takes brings them nearer.
        let is_next = self.inboxes[role as usize].waiting.is_empty();
        if is_next && self.has_capacity(role, length) {
            return self.deliver(name, id);
        }
        if self.has_backlog_capacity(&peer, role) {
            self.update(name, |session| session.window.complete(id));
            self.inboxes[role as usize].waiting.enter(peer.host(), (name, id), TURN);
            Some(Verdict::Held)
        } else {
            self.forget_message(name, id);
            Some(Verdict::Busy)
        }
    }

    /// Handles the final probe of a message that its sender gives up because this end has had no capacity
    /// for it. Unless it was delivered, it never will be.
    pub(super) fn give_up(&mut self, now: Instant, symbol: &Symbol<'_>) {
        let name = symbol.session;
        let id = symbol.header.message;
        let reason = RejectReason::Busy;
        if let Some(incoming) = self.end_held(name, id, reason) {
            let role = incoming.role;
            self.recycler.put_message(incoming);
            // The next waiting message may be shorter.
            self.deliver_waiting(role);
        } else if self.take_late(now, symbol) {
            return;
        } else if let Some(session) = self.sessions.get_mut(&name) {
            // Its earlier packets may still arrive, and no later one will.
            session.begins_from = session.begins_from.max(symbol.prefix.number + 1);
        }
        self.answer_to(symbol, Verdict::Reject(reason));
    }

    /// Rejects a message if it has begun and has not ended. Returns its state.
    fn end_held(
        &mut self,
        name: SessionId,
        id: MessageId,
        reason: RejectReason,
    ) -> Option<Incoming> {
        let window = &mut self.sessions.get_mut(&name)?.window;
        window.unended(id).is_some().then_some(())?;
        self.end(name, id, Ending::Rejected(reason))
    }

    /// Puts a complete message into the application's queue. Returns the verdict to send. From then
    /// on, its STOP is true, whenever it leaves.
    fn deliver(&mut self, name: SessionId, id: MessageId) -> Option<Verdict> {
        let session = self.sessions.get_mut(&name)?;
        let digest = session.window.unended(id)?.digest(id, &session.digest);
        let peer = session.peer;
        let incarnation = session.incarnation;
        let has_left = session.has_left;
        let mut incoming = self.end(name, id, Ending::Delivered(digest))?;
        let arrivals = incoming.arrivals.report();
        let took = incoming.last_progress.saturating_since(incoming.began);
        self.latencies.record(took);
        emit(&self.observer, || Observation::Received { peer, message: id, took });
        if let Some(session) = self.sessions.get_mut(&name) {
            session.keep_arrivals(id, &incoming.arrivals);
            session.counts.delivered += 1;
            session.counts.bytes_delivered += incoming.layout.length() as u64;
        }
        let role = incoming.role;
        let arrived_at = incoming.last_progress;
        let bytes = self.recycler.pool.deliver(core::mem::take(&mut incoming.bytes));
        self.recycler.put_message(incoming);
        self.counters.messages_delivered += 1;
        self.counters.bytes_delivered += bytes.len() as u64;
        tracing::debug!(%peer, id = id.0, bytes = bytes.len(), "message received");
        let message = Message { peer, incarnation, id, role, arrived_at, bytes };
        self.events.push_back(match role {
            Role::Response => ReceiverEvent::Response(message),
            Role::Withdrawal => ReceiverEvent::Withdrawal(message),
            // Nobody waits for a response.
            Role::Request if has_left => return Some(Verdict::Delivered { digest, arrivals }),
            Role::Plain | Role::Request => {
                self.inboxes[role as usize].push(message);
                ReceiverEvent::Readable(role)
            }
        });
        Some(Verdict::Delivered { digest, arrivals })
    }

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

    /// Removes the deadline, the pulls and the queue entry of a message that is no longer held.
    pub(super) fn detach(&mut self, name: SessionId, id: MessageId, incoming: &mut Incoming) {
        self.timers.remove((name, id));
        self.pulls.leave(incoming, (name, id));
        let waiting = &mut self.inboxes[incoming.role as usize].waiting;
        if !waiting.is_empty() {
            waiting.serve((name, id), TURN);
            waiting.remove((name, id));
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

    /// Tells the peers of all sessions that these have ended, and what was not delivered in them.
    pub(super) fn end_sessions(&mut self) {
        // To all, also those that never sent a packet: without it, the next message to this
        // endpoint ends at its deadline as perhaps delivered, and cannot safely go elsewhere.
        let mut names: Vec<_> = self.sessions.keys().copied().collect();
        // Sorted, so that the order does not change from run to run.
        names.sort_unstable();
        for name in names {
            let Some(session) = self.sessions.get(&name) else { continue };
            let certificate = session.window.certificate();
            // Their STOPs may be lost, and no symbol requests them again. The newest are queued last: if
            // there are too many, the oldest are dropped.
            let delivered: Vec<_> =
                session.window.delivered_from(MessageId(0)).take(MAX_FINAL_STOPS).collect();
            for (message, digest) in delivered.into_iter().rev() {
                let verdict = Verdict::Delivered { digest, arrivals: Counted::new() };
                let acknowledged = NONE_ACKNOWLEDGED;
                let answer = Answer { message, block: 0, acknowledged, verdict };
                self.answer(name, None, answer, MIN_SYMBOL_LEN);
            }
            self.report(name, Report::Ended(certificate));
        }
    }

    /// Drops what was collected of a message, as if it had never begun. Returns its role, and whether
    /// it was whole.
    pub(super) fn drop_message(&mut self, name: SessionId, id: MessageId) -> Option<(Role, bool)> {
        let mut incoming = self.update(name, |session| session.window.forget(id)).flatten()?;
        self.detach(name, id, &mut incoming);
        let role = incoming.role;
        let is_whole = incoming.is_whole();
        self.recycler.put_message(incoming);
        Some((role, is_whole))
    }

    /// Forgets a message as if it had never begun.
    pub(super) fn forget_message(&mut self, name: SessionId, id: MessageId) {
        let Some((role, is_whole)) = self.drop_message(name, id) else { return };
        if is_whole {
            self.counters.messages_dropped += 1;
            // The next waiting message may be shorter.
            self.deliver_waiting(role);
        } else {
            self.counters.decoders_expired += 1;
        }
    }
}
